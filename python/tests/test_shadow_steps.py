# SPDX-License-Identifier: Apache-2.0
"""Shadow steps find graph errors also for ops that plumb does not know."""

import json
import os
import sys
import tempfile
import unittest

import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_graph_traces import Engine, GraphTest, taps

from plumb_kernels import traces
from plumb_kernels._shadow_compare import nan_of
from numpy_graphs import launch


def unknown(recorder):
    """Taps without op names, so that plumb knows none of the ops."""

    def tap(one):
        describe = one.describe
        return traces.Tap(one.owner, one.attribute, lambda *given: {**describe(*given), "op": ""}, one.after)

    return [tap(one) for one in taps(recorder)]


class ShadowSteps(GraphTest):
    def shadowed(self, engine, change=lambda engine: None, steps=2, taps=unknown, graphed=None, between=None, **live):
        """Runs shadow steps with a graph that is captured first. `change` alters the engine after the capture."""
        with self.recorded(taps) as recorder:
            graph, self.shadow = engine.captured(), recorder.shadow(state=engine.state)
            change(engine)
            for step in range(steps):
                engine.next_batch()
                if between:
                    between(engine, step)
                self.shadow.step(lambda: (graphed or graph.replay)(), engine.step, **live)
        return self.shadow.reports[-1]

    def kinds(self, report):
        return {one["kind"] for one in report.summary["findings"]}

    def test_right_graphs_pass(self):
        report = self.shadowed(Engine(), steps=3)
        self.assertTrue(self.shadow.passed, report)
        self.assertEqual((report.summary["calls"], report.summary["tensors"]), (6, 2 * 2 + 2 * 4 + 2 + 3))
        with open(os.path.join(self.folder, "rank-0", "shadow-000002.json")) as file:
            self.assertEqual(json.load(file), report.summary)

    def test_nothing_compared_is_not_passed(self):
        with self.recorded(lambda recorder: []) as recorder:
            shadow = recorder.shadow()
            shadow.step(lambda: None, lambda: None)
        self.assertFalse(shadow.passed)
        self.assertIn("nothing was compared", str(shadow.reports[0]))

    def test_the_state_is_that_of_the_graphed_step(self):
        engine = Engine()
        with self.recorded(unknown) as recorder:
            graph, shadow = engine.captured(), recorder.shadow(state=engine.state)
            engine.next_batch()
            engine.multiply(engine.cache, 0)
            expected = Engine()
            for mine, theirs in zip(expected.state().values(), engine.state().values()):
                mine[:] = theirs
            expected.slots[:] = engine.slots
            expected.step()
            self.assertEqual(shadow.step(lambda: (graph.replay(), "graphed")[1], lambda: (engine.step(), engine.x.fill(0))), "graphed")
        np.testing.assert_array_equal(engine.x, expected.x)

    def test_one_step_in_so_many_is_compared(self):
        engine = Engine()
        with self.recorded(unknown) as recorder:
            graph, shadow = engine.captured(), recorder.shadow(every=3, state=engine.state)
            for _ in range(7):
                engine.next_batch()
                shadow.step(graph.replay, engine.step)
        self.assertEqual([one.summary["step"] for one in shadow.reports], [0, 3, 6])
        self.assertEqual(len([step for step, calls, _ in self.kept if calls]), 7)

    def test_a_frozen_scalar(self):
        report = self.shadowed(Engine(), lambda engine: setattr(engine, "scale", 2.0))
        self.assertIn("replay 1: scalars of the capture\n      scale is 1.0, eagerly 2.0", str(report))
        self.assertTrue(str(report).startswith("FIRST WRONG CALL  step 1, multiply"))

    def test_metadata_that_is_not_refreshed(self):
        def between(engine, step):
            engine.slots = np.arange(4) + step  # the graph keeps the first array

        report = self.shadowed(Engine(), lambda engine: None, between=between)
        self.assertIn("layer 0: insert, replay 1: metadata differs from eager's", str(report))
        self.assertIn("before slots: 4 of 4 elements differ, in 4 of 4 rows; the first is [0]: 0x0, eagerly 0x1; it holds the values of replay 0: not refreshed", str(report))
        self.assertRegex(str(report), r"the graph reads it at 0x\w+ \(used\), eager at 0x")

    def test_metadata_that_is_one_step_late(self):
        engine = Engine()
        captured = engine.slots

        def between(engine, step):
            captured[:] = np.arange(4) + max(0, step - 1)
            engine.slots = np.arange(4) + step

        report = self.shadowed(engine, steps=4, between=between)
        self.assertIn("refreshed one step late", str(report))

    def test_memory_that_was_freed(self):
        for state, words in ("free", "was freed since the capture"), ("used", "another tensor re-uses it"):
            with self.subTest(state), tempfile.TemporaryDirectory() as self.folder:
                engine = Engine()
                self.device.freed.clear()
                report = self.shadowed(engine, lambda engine: self.device.freed.update({engine.slots.__array_interface__["data"][0]: state}), steps=1)
                self.assertIn("insert, replay 0: reads memory that was freed since the capture\n      before slots: its memory at 0x", str(report))
                self.assertIn(words, str(report))

    def test_memory_of_graphs_may_be_gone(self):
        report = self.shadowed(Engine(), lambda engine: self.device.freed.update({engine.slots.__array_interface__["data"][0]: "pool"}))
        self.assertTrue(report, report)

    def test_a_branch_of_the_capture(self):
        report = self.shadowed(Engine(), lambda engine: setattr(engine, "branch", "other"))
        self.assertIn("other_branch: not in the graphed step", str(report))

    def test_other_kernels_and_grids(self):
        grid = [4, 1]

        def launching(recorder):
            def observed(x, scale):
                recorder.launched("multiply_kernel", grid, {"blocks": grid[0]})

            original = Engine.multiply
            self.addCleanup(setattr, Engine, "multiply", original)
            Engine.multiply = lambda self, x, scale: (observed(x, scale), original(self, x, scale))[1]
            return unknown(recorder)

        report = self.shadowed(Engine(), lambda engine: grid.__setitem__(0, 8), taps=launching)
        self.assertIn("multiply_kernel: grid [4, 1], eagerly [8, 1]", str(report))
        self.assertEqual(self.kinds(report), {"kernels", "scalars"})

    def test_outputs_that_differ_from_equal_inputs(self):
        report = self.shadowed(Engine(), lambda engine: engine.eps.__setitem__(1, 0.5))
        self.assertTrue(report, "both read the same number")
        engine = Engine()
        frozen = engine.eps[:]

        def graphed():
            engine.eps, now = frozen, engine.eps
            self.graph.replay()
            engine.eps = now

        with tempfile.TemporaryDirectory() as self.folder, self.recorded(unknown) as recorder:
            self.graph, shadow = engine.captured(), recorder.shadow(state=engine.state)
            engine.eps = [1e-6, 0.5]
            engine.next_batch()
            shadow.step(graphed, engine.step)
        self.assertRegex(str(shadow.reports[0]), r"layer 1: norm, replay 0: outputs differ .*\n      after out: \d+ of 128 elements differ, in 4 of 4 rows; the first is \[0, 0\]")

    def test_nan_in_padding(self):
        def mixing(self, x):
            launch(lambda: x.__setitem__(0, x[3]))

        engine = Engine()
        original = Engine.other_branch
        self.addCleanup(setattr, Engine, "other_branch", original)
        Engine.other_branch = mixing
        engine.branch = "other"
        engine.next_batch = lambda: (Engine.next_batch(engine), engine.x.__setitem__(3, 0x7FC0))
        report = self.shadowed(engine, live=3, padded=4)
        self.assertIn("other_branch, replay 1: NaN in padding reaches a live row\n      NaN in rows of x from row 3 on is NaN in live rows of x", str(report))

    def test_padding_that_changes_what_live_rows_share(self):
        engine = Engine()
        captured = engine.slots

        def between(engine, step):
            captured[:], engine.slots = [0, 1, 2, 5], np.array([0, 1, 2, 3])

        report = self.shadowed(engine, between=between, live=3, padded=4)
        self.assertIn("layer 0: insert, replay 1: rows of padding change its results", str(report))
        self.assertIn("rows of padding differ in slots", str(report))
        self.assertNotIn("metadata", self.kinds(report))

    def test_indices_that_a_call_of_the_step_wrote_are_no_metadata(self):
        engine = Engine()
        engine.eager = False

        class Choice:
            def choose(self, slots):
                launch(lambda: slots.__setitem__(..., 1 if engine.eager else 0))

        def choosing(recorder):
            return [*unknown(recorder), traces.Tap(Choice, "choose", lambda self, slots: {"name": "choose"}, lambda result, self, slots: {"slots": slots})]

        choice, step = Choice(), engine.step
        engine.step = lambda: (choice.choose(engine.slots), step())

        def eager():
            engine.eager = True
            engine.step()
            engine.eager = False

        with self.recorded(choosing) as recorder:
            graph, shadow = engine.captured(), recorder.shadow(state=engine.state)
            engine.next_batch()
            shadow.step(graph.replay, eager)
        self.assertIn("choose, replay 0: outputs differ", str(shadow.reports[0]))
        self.assertNotIn("metadata", self.kinds(shadow.reports[0]))

    def test_padding_itself_is_not_compared(self):
        engine = Engine()
        steps = iter(range(100))
        engine.next_batch = lambda: (Engine.next_batch(engine, [0, 1, 2, 7]), engine.x.__setitem__(3, next(steps)))
        original = engine.step
        engine.step = lambda: (engine.x.__setitem__(3, 7), original())[1] if engine.eager else original()
        engine.eager = False
        with self.recorded(unknown) as recorder:
            graph = engine.captured()
            shadow = recorder.shadow(state=lambda: {"out": engine.out})
            engine.next_batch()
            engine.eager = True
            shadow.step(graph.replay, engine.step, live=3, padded=4)
        found = [one for one in shadow.reports[0].summary["findings"] if "cache" not in one["text"]]
        self.assertEqual(found, [])

    def test_state_that_no_call_wrote(self):
        engine = Engine()
        hidden = np.zeros(4, np.int64)

        with self.recorded(unknown) as recorder:
            graph = engine.captured()
            shadow = recorder.shadow(state=lambda: {**engine.state(), "lengths": hidden})
            engine.next_batch()
            shadow.step(lambda: (graph.replay(), hidden.__iadd__(1)), lambda: (engine.step(), hidden.__iadd__(2)))
        self.assertIn("state behind the step: the state behind the step differs from eager's\n      after lengths: 4 of 4 elements", str(shadow.reports[0]))

    def test_what_eager_itself_changes_is_not_compared(self):
        engine = Engine()
        random = np.random.default_rng(0)
        with self.recorded(unknown) as recorder:
            graph, shadow = engine.captured(), recorder.shadow(state=engine.state)
            engine.next_batch()
            noise = lambda: engine.x.__setitem__((0, 0), random.integers(1 << 14))
            shadow.step(lambda: (graph.replay(), noise()), lambda: (engine.step(), noise()))
        self.assertTrue(shadow.passed)
        self.assertEqual(shadow.reports[0].summary["unstable_tensors"], 1)

    def test_a_graph_from_before_the_recording_is_no_pass(self):
        engine = Engine()
        graph = engine.captured()
        with self.recorded(unknown) as recorder, self.assertWarns(UserWarning):
            shadow = recorder.shadow(state=engine.state)
            shadow.step(graph.replay, engine.step)
        self.assertEqual(self.kinds(shadow.reports[0]), {"not_recorded"})
        self.assertFalse(shadow.passed)

    def test_a_warm_up_inside_the_step_is_not_compared(self):
        engine = Engine()

        def graphed():
            saved = {name: one.copy() for name, one in engine.state().items()}
            engine.step()
            for name, one in engine.state().items():
                one[:] = saved[name]
            engine.captured().replay()

        report = self.shadowed(engine, graphed=graphed)
        self.assertTrue(report, report)

    def test_a_redacted_recording_has_no_shadow(self):
        with self.recorded(redact=True) as recorder, self.assertRaisesRegex(traces.BadTrace, "no values to compare"):
            recorder.shadow()

    def test_what_is_nan(self):
        self.assertEqual(nan_of("bf16", np.array([0x7F80, 0x7F81, 0xFFC0], np.uint16).view(np.uint8)).tolist(), [False, True, True])
        self.assertEqual(nan_of("e4m3fn", np.array([0x7E, 0x7F, 0xFF], np.uint8)).tolist(), [False, True, True])
        self.assertEqual(nan_of("f32", np.array([np.inf, np.nan], np.float32).view(np.uint8)).tolist(), [False, True])
        self.assertFalse(nan_of("i32", np.array([-1], np.int32).view(np.uint8)).any())


if __name__ == "__main__":
    unittest.main()
