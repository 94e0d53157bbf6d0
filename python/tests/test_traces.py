# SPDX-License-Identifier: Apache-2.0
"""Records calls of an engine and judges them."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy as np

import plumb_kernels as pk
from plumb_kernels import traces
from plumb_kernels._run import plumb_program
from plumb_kernels._trace_tensors import describe_tensor

RANDOM = np.random.default_rng(7)


def rms_norm(x, eps):
    numbers = pk.float32(x)
    return pk.bf16(numbers / np.sqrt(np.mean(numbers * numbers, axis=-1, keepdims=True) + np.float32(eps)))


class Norm:
    """A module of an engine."""

    def __init__(self, eps=1e-6):
        self.eps = eps

    def forward(self, x):
        return rms_norm(x, self.eps)


def norm_taps(recorder):
    def describe(module, x):
        return {"op": "rms_norm", **recorder.place_of(module), "before": {"x": x}, "scalars": {"eps": 1e-6}}

    return [traces.Tap(Norm, "forward", describe, lambda result, *_: {"out": result})]


class Model:
    def __init__(self, *eps):
        self.layers = [Norm(one) for one in eps]

    def named_modules(self):
        return [(f"layers.{i}.norm", layer) for i, layer in enumerate(self.layers)]

    def run(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x


class Traces(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = os.path.join(self._folder.name, "trace")

    def x(self, rows=4):
        return pk.bf16(RANDOM.standard_normal((rows, 96)))

    def test_a_call_within_a_call_says_when_it_began(self):
        trace = traces.Trace(self.folder)
        x = self.x()
        with trace.step(0) as step:
            step.call(name="first", after={"out": x})
            outer = step.begin(name="outer", before={"x": x})
            step.call(name="inner", after={"out": x})
            outer.end({"out": x})
        self.assertEqual([(one["name"], one.get("began")) for one in step._calls], [("first", None), ("inner", None), ("outer", 1)])

    def test_the_end_of_a_recording_is_marked(self):
        trace = traces.Trace(self.folder)
        with trace.step(0):
            pass
        marker = os.path.join(self.folder, "rank-0", "finished")
        self.assertFalse(os.path.exists(marker))
        trace.finish()
        self.assertTrue(os.path.exists(marker))

    def test_a_wrong_call_becomes_a_file_that_makes_it_again(self):
        trace = traces.Trace(self.folder)
        x = self.x()
        with trace.step(0) as step:
            step.call("rms_norm", before={"x": x}, after={"out": x}, scalars={"eps": 1e-6}, invoke="out = norm(x, eps)")
        trace.finish()
        file = os.path.join(self._folder.name, "repro.py")
        subprocess.run([plumb_program(), "judge", self.folder, "--repro", file], capture_output=True)
        with open(file, encoding="utf-8") as text:
            self.assertIn("out = norm(x, eps)  # a line of the trace", text.read())

    def test_record_marks_its_end(self):
        self.recorded(Model(1e-6))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "rank-0", "finished")))

    def recorded(self, model, steps=2, taps=norm_taps, **options):
        with traces.record(self.folder, taps, **options) as recorder:
            recorder.name_modules(model)
            for _ in range(steps):
                with recorder.step():
                    model.run(self.x())
        return recorder

    def test_a_trace_says_which_engine_made_it(self):
        engine = types.ModuleType("sglang")
        engine.__version__ = "0.5"
        with unittest.mock.patch.dict(sys.modules, {"sglang": engine}):
            trace = traces.Trace(self.folder)
            given = traces.Trace(self.folder + "-given", provenance={"engine": "mine", "version": "2"})
        self.assertEqual((trace.provenance["engine"], trace.provenance["version"]), ("sglang", "0.5"))
        self.assertEqual((given.provenance["engine"], given.provenance["version"]), ("mine", "2"))

    def test_a_profile_says_what_a_call_does_not(self):
        trace = traces.Trace(self.folder, provenance={"engine": "mine"})
        x, weight = self.x(), pk.bf16(1 + 0.3 * RANDOM.standard_normal(96))
        numbers = pk.float32(x)
        once = numbers / np.sqrt(np.mean(numbers * numbers, axis=-1, keepdims=True) + np.float32(1e-6)) * pk.float32(weight)
        with trace.step(0) as step:
            step.begin("rms_norm", before={"x": x, "weight": weight}, scalars={"eps": 1e-6}).end({"out": pk.bf16(once)})
        profile = os.path.join(self._folder.name, "mine.toml")
        for rounding, passes in (("once", True), ("twice", False)):
            with open(profile, "w") as file:
                file.write(f'engine = "mine"\n[[profile]]\n[profile.ops.rms_norm]\nrounding = "{rounding}"\n')
            report = traces.judge(self.folder, profiles=[profile])
            self.assertEqual(report.passed, passes, report)
            self.assertEqual(report.summary["profiles"]["rms_norm"], f"{profile}:3")

    def test_right_calls_pass(self):
        original = Norm.forward
        self.recorded(Model(1e-6, 1e-6))
        self.assertIs(Norm.forward, original)
        report = traces.judge(self.folder)
        self.assertTrue(report, report)
        self.assertEqual(report.summary["total"]["passed"], 4)

    def test_the_first_wrong_call_is_named(self):
        self.recorded(Model(1e-6, 0.05, 0.05))
        report = traces.judge(self.folder)
        self.assertFalse(report)
        self.assertIn("FIRST WRONG CALL  step 0, call 1 of 3, layer 1: rms_norm (layers.1.norm)", str(report))
        self.assertEqual(report.summary["total"]["failed"], 4)
        self.assertTrue(traces.judge(self.folder, call="0/1/0"))
        self.assertFalse(traces.judge(self.folder, call="0/1/2"))

    def test_only_what_is_asked_for_is_recorded(self):
        self.recorded(Model(1e-6, 1e-6, 1e-6), steps=3, layers=[1])
        self.assertEqual(traces.judge(self.folder).summary["total"]["calls"], 3)

    def test_a_budget_ends_a_step(self):
        recorder = self.recorded(Model(1e-6, 1e-6, 1e-6), budget=1)
        self.assertEqual(recorder.left_out, 4)
        self.assertEqual(traces.judge(self.folder).summary["total"]["calls"], 2)

    def test_what_changes_in_place_stands_in_both(self):
        x, residual, weight = self.x(), self.x(), pk.bf16(RANDOM.standard_normal(96))
        trace = traces.Trace(self.folder)
        with trace.step(0) as step:
            right = {name: one.stored for name, one in pk.reference("fused_add_rms_norm", x_before=x, residual_before=residual, weight=weight).items()}
            call = step.begin("fused_add_rms_norm", before={"x": x, "residual": residual, "weight": weight})
            x[:], residual[:] = right["x"], right["residual"]
            call.end({"x": x, "residual": residual})
        self.assertTrue(traces.judge(self.folder))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
    def test_a_tensor_of_torch_may_have_no_touched_blocks(self):
        import torch

        cache = torch.arange(12.0).reshape(4, 3)
        self.assertEqual(describe_tensor(traces.Described(cache, blocks=[]), False).data.size, 0)
        stored = describe_tensor(traces.Described(cache, blocks=[2, 1]), False)
        self.assertEqual(stored.data.view(np.float32).tolist(), [3, 4, 5, 6, 7, 8])

    def test_a_redacted_trace_is_not_judged(self):
        self.recorded(Model(1e-6), redact=True)
        with self.assertRaisesRegex(traces.BadTrace, "no call was judged"):
            traces.judge(self.folder)

    def test_constants_are_stored_once(self):
        x, weight = self.x(), pk.bf16(np.ones(96))
        trace = traces.Trace(self.folder)
        for number in range(3):
            with trace.step(number) as step:
                out = rms_norm(x, 1e-6)
                step.call("rms_norm", before={"x": x, "weight": traces.Described(weight, constant=True)}, after={"out": out})
        names = sorted(os.listdir(os.path.join(self.folder, "rank-0")))
        self.assertEqual(names, ["constants-000000.h5", "step-000000.h5", "step-000001.h5", "step-000002.h5"])
        self.assertEqual(traces.judge(self.folder).summary["total"]["passed"], 3)

    def test_a_step_that_raises_is_written(self):
        trace = traces.Trace(self.folder)
        with self.assertRaises(ZeroDivisionError), trace.step(0) as step:
            x = self.x()
            step.call("rms_norm", before={"x": x}, after={"out": rms_norm(x, 1e-6)}, scalars={"eps": 1e-6})
            1 / 0
        self.assertTrue(traces.judge(self.folder))

    def test_a_recording_is_not_overwritten(self):
        self.recorded(Model(1e-6))
        with self.assertRaisesRegex(traces.BadTrace, "has a recording already"):
            traces.Trace(self.folder)

    def test_what_no_trace_can_hold_is_refused(self):
        trace = traces.Trace(self.folder)
        with trace.step(0) as step:
            with self.assertRaisesRegex(traces.BadTrace, "no tensors of complex64"):
                step.call(name="fft", before={"x": np.zeros(3, np.complex64)}, after={})
            with self.assertRaisesRegex(traces.BadTrace, "neither a number nor a word"):
                step.begin("rms_norm", scalars={"eps": [1]})
            with self.assertRaisesRegex(traces.BadTrace, "not a finite number"):
                step.begin("rms_norm", scalars={"eps": float("nan")})
            with self.assertRaisesRegex(traces.BadTrace, "a name or an op"):
                step.begin()

    def test_a_missing_trace_is_one_line(self):
        with self.assertRaisesRegex(traces.BadTrace, "No such file or directory$"):
            traces.judge(self.folder)


if __name__ == "__main__":
    unittest.main()
