# SPDX-License-Identifier: Apache-2.0
"""Calls inside graphs, sampled rows and shadow steps, with graphs of numpy functions."""

import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest
import unittest.mock

import numpy as np

import plumb_kernels as pk
from plumb_kernels import _background_writer, traces
from plumb_kernels._background_writer import BackgroundWriter
from plumb_kernels._environment import parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from numpy_graphs import NumpyGraph, NumpyGraphs, launch

RANDOM = np.random.default_rng(3)
HIDDEN = 32


def rms_norm(x, eps=1e-6):
    numbers = pk.float32(x)
    return pk.bf16(numbers / np.sqrt(np.mean(numbers * numbers, axis=-1, keepdims=True) + np.float32(eps)))


class Engine:
    """A small engine: buffers with fixed addresses, two layers, and a cache with blocks that slots choose."""

    def __init__(self, rows=4, eps=(1e-6, 1e-6)):
        self.eps = list(eps)
        self.x, self.out = (pk.bf16(np.zeros((rows, HIDDEN))) for _ in range(2))
        self.slots = np.zeros(rows, np.int64)
        self.cache = np.zeros((8, HIDDEN), np.uint16)
        self.scale = 1.0
        self.branch = "copy"
        self.graph = None

    def next_batch(self, slots=None):
        self.x[:] = pk.bf16(RANDOM.standard_normal(self.x.shape))
        self.slots[:] = np.arange(len(self.slots)) if slots is None else slots

    def norm(self, layer, x, out):
        launch(lambda: out.__setitem__(..., rms_norm(x, self.eps[layer])))

    def insert(self, layer, source, slots, cache):
        launch(lambda: cache.__setitem__(slots, source))

    def multiply(self, x, scale):
        launch(lambda: x.__setitem__(..., pk.bf16(pk.float32(x) * scale)))

    def other_branch(self, x):
        launch(lambda: x.__setitem__(0, x[1]))

    def step(self):
        self.norm(0, self.x, self.out)
        self.insert(0, self.out, self.slots, self.cache)
        self.multiply(self.out, self.scale)
        if self.branch == "other":
            self.other_branch(self.out)
        self.norm(1, self.out, self.x)
        self.insert(1, self.x, self.slots, self.cache)

    def captured(self, call=None):
        graph = NumpyGraph()
        graph.capture_begin()
        (call or self.step)()
        graph.capture_end()
        return graph

    def state(self):
        return {"x": self.x, "out": self.out, "cache": self.cache}


def taps(recorder, blocks=None, engine=None):
    def norm(self, layer, x, out):
        return {"op": "rms_norm", "name": "norm", "layer": layer, "before": {"x": x}, "scalars": {"eps": 1e-6}, "rows": ["x", "out"]}

    def insert(self, layer, source, slots, cache):
        cache = traces.Described(cache, blocks=blocks, at_most=4)
        return {"name": "insert", "layer": layer, "before": {"source": source, "slots": slots, "cache": cache}}

    def other(self, x):
        return {"name": "other_branch", "before": {"x": x}}

    def multiply(self, x, scale):
        return {"name": "multiply", "before": {"x": x}, "scalars": {"scale": scale}}

    return [
        traces.Tap(Engine, "norm", norm, lambda result, self, layer, x, out: {"out": out}),
        traces.Tap(Engine, "insert", insert, lambda result, self, layer, source, slots, cache: {"cache": traces.Described(cache, blocks=blocks, at_most=4)}),
        traces.Tap(Engine, "multiply", multiply, lambda result, self, x, scale: {"x": x}),
        traces.Tap(Engine, "other_branch", other, lambda result, self, x: {"x": x}),
    ]


def stepping_taps(recorder):
    return [*taps(recorder), traces.Tap(Engine, "step", step=True)]


class GraphTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = os.path.join(self._folder.name, "trace")
        self.device = NumpyGraphs()
        self.kept = []  # (step, calls, data) of each written step

    @contextlib.contextmanager
    def recorded(self, taps=taps, **options):
        """Also keeps what is written, in self.kept."""
        writes = traces.Trace._write

        def write(trace, name, step, calls, data):
            self.kept.append((step, calls, dict(data)))
            writes(trace, name, step, calls, data)

        traces.Trace._write = write
        try:
            with traces.record(self.folder, taps, device=self.device, graph_bytes=1 << 16, **options) as recorder:
                yield recorder
        finally:
            traces.Trace._write = writes

    def calls(self, step=0):
        return next(calls for number, calls, _ in self.kept if number == step)

    def values(self, tensor, dtype=np.uint16):
        return next(np.frombuffer(data[tensor["data"]], dtype) for _, _, data in self.kept if tensor["data"] in data)


class GraphCalls(GraphTest):
    def test_each_replay_has_its_own_values(self):
        engine = Engine()
        with self.recorded() as recorder:
            graph = engine.captured()
            for step in range(3):
                engine.next_batch()
                with recorder.step():
                    graph.replay()
        self.assertEqual([call["replay"] for step in range(3) for call in self.calls(step)], [0] * 5 + [1] * 5 + [2] * 5)
        self.assertEqual([call["name"] for call in self.calls()], ["norm", "insert", "multiply", "norm", "insert"])
        report = traces.judge(self.folder)
        self.assertTrue(report, report)
        self.assertEqual(report.summary["total"]["passed"], 6)

    def test_a_wrong_call_of_a_graph_is_found(self):
        engine = Engine(eps=(1e-6, 0.5))
        with self.recorded() as recorder:
            graph = engine.captured()
            engine.next_batch()
            graph.replay()  # before the first step
            with recorder.step():
                graph.replay()
        report = traces.judge(self.folder)
        self.assertIn("FIRST WRONG CALL  step 0, call 3 of 5, layer 1: rms_norm (norm), replay 1", str(report))

    def test_eager_calls_and_replays_stand_in_their_order(self):
        engine = Engine()
        with self.recorded() as recorder:
            first = engine.captured(lambda: engine.norm(0, engine.x, engine.out))
            last = engine.captured(lambda: engine.norm(1, engine.out, engine.x))
            engine.next_batch()
            with recorder.step():
                first.replay()
                engine.insert(0, engine.out, engine.slots, engine.cache)
                last.replay()
                first.replay()
        self.assertEqual([(call["name"], call["layer"], call.get("replay")) for call in self.calls()], [("norm", 0, 0), ("insert", 0, None), ("norm", 1, 0), ("norm", 0, 1)])
        self.assertTrue(traces.judge(self.folder))

    def test_two_writers_of_a_cache_have_what_each_of_them_saw(self):
        engine, wanted = Engine(), [2, 3]
        with self.recorded(lambda recorder: taps(recorder, lambda: wanted)) as recorder:
            graph = engine.captured()
            engine.next_batch([0, 2, 3, 5])
            with recorder.step():
                graph.replay()
            wanted[:] = range(5)  # more blocks than a call has room for
            with recorder.step():
                graph.replay()
        first, second = (call for call in self.calls() if call["name"] == "insert")
        self.assertEqual(first["before"]["cache"]["blocks"], [2, 3])
        self.assertFalse(self.values(first["before"]["cache"]).any())
        self.assertEqual(first["after"]["cache"]["data"], second["before"]["cache"]["data"])
        np.testing.assert_array_equal(self.values(second["after"]["cache"]).reshape(2, -1), engine.x[[1, 2]])
        self.assertNotIn("data", self.calls(1)[1]["before"]["cache"])
        self.assertEqual(recorder.graphs.without_room, 4)

    def test_numbers_that_are_read_at_a_replay_are_those_of_the_replay(self):
        engine, intended = Engine(), np.arange(4)

        def current(recorder):
            def describe(self, layer, source, slots, cache):
                return {"name": "insert", "before": {"slots": lambda: intended}, "scalars": {"scale": lambda: engine.scale, "frozen": engine.scale}}

            return [traces.Tap(Engine, "insert", describe)]

        with self.recorded(current) as recorder:
            graph = engine.captured()
            engine.scale, intended = 2.5, intended[::-1]
            with recorder.step():
                graph.replay()
        self.assertEqual(self.calls()[0]["scalars"], {"scale": 2.5, "frozen": 1.0})
        np.testing.assert_array_equal(self.values(self.calls()[0]["before"]["slots"], np.int64), [3, 2, 1, 0])

    def test_a_replay_waits_until_the_copies_of_the_one_before_are_made(self):
        for waits in True, False:
            with self.subTest(waits=waits), tempfile.TemporaryDirectory() as self.folder:
                self.device, self.kept, engine, seen = NumpyGraphs(), [], Engine(), []
                if not waits:
                    self.device.wait_for = lambda mark: None
                with self.recorded() as recorder:
                    graph = engine.captured()
                    with recorder.step():
                        for _ in range(2):
                            engine.next_batch()
                            seen.append(engine.x.copy())
                            graph.replay()
                first = self.values(self.calls()[0]["before"]["x"]).reshape(seen[0].shape)
                self.assertEqual(np.array_equal(first, seen[0]), waits)

    def test_afterwards_the_class_is_itself_and_graphs_keep_their_buffers(self):
        before = dict(vars(NumpyGraph)), dict(vars(Engine))
        engine = Engine()
        with self.recorded():
            graph = engine.captured()
        self.assertEqual((dict(vars(NumpyGraph)), dict(vars(Engine))), before)
        engine.next_batch()
        graph.replay()
        self.assertIs(graph._plumb_calls.arena.bytes, self.device.arenas[0])
        self.assertEqual(len(engine.captured().nodes), 5)

    def test_graphs_from_before_the_recording_are_counted(self):
        engine = Engine()
        graph = engine.captured()
        with self.recorded() as recorder, self.assertWarnsRegex(UserWarning, "captured in front of the recording"):
            for _ in range(2):
                with recorder.step():
                    graph.replay()
        self.assertEqual(recorder.graphs_without_calls, 1)

    def test_a_budget_ends_a_step_of_replays(self):
        engine = Engine()
        with self.recorded(budget=1) as recorder:
            graph = engine.captured()
            with recorder.step():
                graph.replay()
                graph.replay()
        self.assertEqual((len(self.calls()), recorder.left_out), (5, 5))

    def test_a_graph_without_room_has_no_values(self):
        engine = Engine(rows=300)
        with self.recorded() as recorder:
            graph = engine.captured(lambda: [engine.norm(0, engine.x, engine.out) for _ in range(8)])
            with recorder.step():
                graph.replay()
        self.assertEqual(sum("data" not in call[side][name] for call in self.calls() for side, name in [("before", "x"), ("after", "out")]), recorder.graphs.without_room)
        self.assertGreater(recorder.graphs.without_room, 0)

    def test_a_file_that_cannot_be_written_ends_the_recording(self):
        engine = Engine()
        with self.assertRaises(OSError):
            with self.recorded() as recorder:
                graph = engine.captured()
                for name in sorted(os.listdir(recorder.trace.folder)):
                    os.remove(os.path.join(recorder.trace.folder, name))
                os.rmdir(recorder.trace.folder)
                with recorder.step():
                    graph.replay()

    def test_a_skipped_copy_and_a_late_copy_are_found(self):
        for broken in "skipped", "late":
            with self.subTest(broken), tempfile.TemporaryDirectory() as self.folder:
                device = self.device = NumpyGraphs()
                if broken == "skipped":
                    copy = device.copy
                    device.copy = lambda tensor, side: copy(tensor, side) if tensor.dtype != np.uint16 else None
                else:
                    late, fetched = {}, device.fetched

                    def before(fetch):
                        now = fetched(fetch)
                        earlier, late["new"] = late.get("new", np.zeros_like(now)), now
                        return earlier

                    device.fetched = before
                engine = Engine()
                with self.recorded() as recorder:
                    graph, shadow = engine.captured(), recorder.shadow(state=engine.state)
                    for _ in range(2):
                        engine.next_batch()
                        shadow.step(graph.replay, engine.step)
                self.assertFalse(shadow.passed)
                self.assertIn("FIRST WRONG CALL", shadow.reports[0].text)


class EndedStep:
    """A fake step of replays."""

    def __init__(self, log, name, size=1, replays=True):
        self.log, self.name, self.bytes, self.replays, self.is_copied = log, name, size, replays, False

    def has_replays(self):
        return self.replays

    def copied(self):
        return self.is_copied

    def write(self):
        if self.name == "broken":
            raise OSError("the disk is full")
        self.log.append(self.name)


class Writer(unittest.TestCase):
    def setUp(self):
        self.log = []
        self.writer = BackgroundWriter(memory=10)
        self.addCleanup(self.writer.close)
        late = unittest.mock.patch.object(_background_writer, "_LATEST_SECONDS", 60)
        late.start()
        self.addCleanup(late.stop)

    def submit(self, *more, **named):
        step = EndedStep(self.log, *more, **named)
        self.writer.submit(step)
        return step

    def wait_for(self, *names):
        for _ in range(500):
            if self.log == list(names):
                return
            time.sleep(0.01)
        self.assertEqual(self.log, list(names))

    def test_a_step_is_written_while_the_device_is_busy_and_its_copies_are_over(self):
        first, second = self.submit("first"), self.submit("second")
        time.sleep(0.05)
        self.writer.device_is_busy()
        self.assertEqual(self.log, [])
        first.is_copied = True
        time.sleep(0.05)
        self.assertEqual(self.log, [])
        self.writer.device_is_busy()
        self.wait_for("first")
        second.is_copied = True
        self.writer.device_is_busy()
        self.wait_for("first", "second")

    def test_a_step_without_replays_is_written_at_once(self):
        self.submit("eager", replays=False)
        self.wait_for("eager")

    def test_without_a_launch_a_step_is_written_a_little_later(self):
        with unittest.mock.patch.object(_background_writer, "_LATEST_SECONDS", 0.01):
            self.submit("last")
            self.wait_for("last")

    def test_the_engine_waits_when_the_memory_is_full(self):
        self.submit("one", 6)
        self.submit("two", 4)
        self.assertEqual(self.log, [])
        self.submit("three", 1)
        self.writer.device_is_busy()
        self.assertEqual(self.log[:1], ["one"])

    def test_the_engine_waits_for_memory_after_eager_steps_too(self):
        self.submit("one", 6)
        self.submit("two", 5, replays=False)
        self.assertEqual(self.log[:1], ["one"])

    def test_an_error_is_raised_once_in_the_thread_of_the_engine(self):
        self.submit("broken")
        with self.assertRaisesRegex(OSError, "the disk is full"):
            self.writer.flush()
        self.submit("next")
        self.writer.flush()
        self.assertEqual(self.log, ["next"])

    def test_the_interval_of_threads_is_as_before(self):
        before = self.writer._switch
        self.assertLess(sys.getswitchinterval(), before)
        self.writer.close()
        self.assertEqual(sys.getswitchinterval(), before)


class Sampling(GraphTest):
    def test_chosen_rows_make_a_smaller_call(self):
        engine = Engine(rows=200)
        with self.recorded(rows=24) as recorder:
            graph = engine.captured()
            for _ in range(2):
                engine.next_batch(np.arange(200) % 8)
                with recorder.step():
                    x = engine.x.copy()
                    graph.replay()
                    engine.norm(0, engine.out, engine.x)
        graphed, _, eager = self.calls()
        self.assertEqual((graphed["rows_of"], len(graphed["rows"]), graphed["before"]["x"]["shape"]), (200, 24, [24, HIDDEN]))
        self.assertEqual((graphed["rows"][0], graphed["rows"][-1]), (0, 199))
        self.assertEqual(graphed["rows"], eager["rows"])
        self.assertNotEqual(graphed["rows"], self.calls(1)[0]["rows"])
        np.testing.assert_array_equal(self.values(self.calls(1)[0]["before"]["x"]).reshape(24, -1), x[self.calls(1)[0]["rows"]])
        report = traces.judge(self.folder)
        self.assertTrue(report, report)
        self.assertEqual(report.summary["total"]["passed"], 6)

    def test_few_rows_are_all_stored(self):
        engine = Engine(rows=4)
        with self.recorded(rows=24) as recorder:
            graph = engine.captured()
            with recorder.step():
                graph.replay()
        self.assertNotIn("rows", self.calls()[0])
        self.assertEqual(self.calls()[0]["before"]["x"]["shape"], [4, HIDDEN])

    def test_rows_of_different_number_are_refused(self):
        trace = traces.Trace(self.folder)
        from plumb_kernels._row_sampler import RowSampler

        with trace.step(0, RowSampler(2)) as step, self.assertRaisesRegex(traces.BadTrace, "have 3 and 4 rows"):
            step.begin(name="op", before={"x": np.zeros((3, 2)), "y": np.zeros(4)}, rows=["x", "y"])


class Environment(GraphTest):
    def run_with(self, **variables):
        """Runs a process that takes two steps of an engine and records as a plug-in entry point does."""
        return self.run_program(
            "from plumb_kernels import traces; import test_graph_traces as t; r = traces.from_environment(); e = t.Engine(); [(e.next_batch(), e.step()) for _ in range(2)]",
            **variables,
        )

    def run_program(self, program, **variables):
        environment = {**os.environ, **variables}
        environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *filter(None, sys.path)])
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    def test_a_worker_process_is_recorded(self):
        done = self.run_with(PLUMB_RECORD=f"{self.folder}:layers=1,steps=0-1", PLUMB_TAPS="test_graph_traces:stepping_taps", RANK="3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["rank-3"])
        report = traces.judge(self.folder)
        self.assertEqual((report.passed, report.summary["total"]["passed"], report.summary["total"]["calls"]), (True, 2, 4), report)

    def test_a_forked_worker_is_recorded(self):
        """An engine may load its plug-ins before it forks its workers."""
        self.run_forks("before")
        self.assertEqual(sorted(os.listdir(self.folder)), ["rank-0", "rank-1"])
        for rank in range(2):
            self.assertIn("finished", os.listdir(os.path.join(self.folder, f"rank-{rank}")))
        report = traces.judge(self.folder)
        self.assertEqual((report.passed, report.summary["total"]["calls"]), (True, 8), report)

    def test_a_process_forked_after_the_first_step_leaves_the_trace_to_its_parent(self):
        self.run_forks("after")
        self.assertEqual(os.listdir(self.folder), ["rank-7"])
        self.assertEqual(traces.judge(self.folder).summary["total"]["calls"], 2)

    def run_forks(self, when):
        """Forks two workers that take two steps, before or after the parent's first step."""
        done = self.run_program(
            f"""
import multiprocessing, os
from plumb_kernels import traces
import test_graph_traces as t

def work(rank):
    os.environ["RANK"] = str(rank)
    take(2)

def take(steps):
    engine = t.Engine()
    for _ in range(steps):
        engine.next_batch()
        engine.step()

assert traces.from_environment() is traces.from_environment()
if {when == "after"}:
    take(1)
for rank in range(2):
    worker = multiprocessing.get_context("fork").Process(target=work, args=[rank])
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
""",
            PLUMB_RECORD=f"{self.folder}:layers=1", PLUMB_TAPS="test_graph_traces:stepping_taps", RANK="7",
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_engines_find_it(self):
        with open(os.path.join(os.path.dirname(__file__), "../../pyproject.toml"), "rb") as file:
            groups = tomllib.load(file)["project"]["entry-points"]
        for group in ("vllm.general_plugins", "sglang.srt.plugins"):
            entry = importlib.metadata.EntryPoint("plumb", groups[group]["plumb"], group)
            self.assertIs(entry.load(), traces.from_environment)

    def test_without_the_variable_nothing_happens(self):
        self.assertEqual(self.run_with().returncode, 0)
        self.assertFalse(os.path.exists(self.folder))

    def test_what_is_not_understood_is_refused(self):
        self.assertIn("PLUMB_TAPS=MODULE:FUNCTION has to name the taps", self.run_with(PLUMB_RECORD=self.folder).stderr)
        self.assertEqual(parse("C:/x:rows=24,budget=2G,ops=a+b,layers=1+4-6"), ("C:/x", {"rows": 24, "budget": 2 << 30, "ops": ["a", "b"], "layers": [1, 4, 5, 6]}))
        self.assertEqual(parse("C:/x"), ("C:/x", {}))
        with self.assertRaisesRegex(traces.BadTrace, "no option 'row'"):
            parse("x:row=1")
        with self.assertRaisesRegex(traces.BadTrace, "rows=many is not understood"):
            parse("x:rows=many")


if __name__ == "__main__":
    unittest.main()
