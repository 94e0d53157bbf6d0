# SPDX-License-Identifier: Apache-2.0
"""Ops whose reference is a Python function of tracked arrays, judged and run."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import plumb_kernels as pk
from plumb_kernels import BadKernel, Input, Output, kernel, op
from plumb_kernels import tracked as t
from plumb_kernels._run import plumb_program


@op(sizes={"tokens": [4, 1, 9], "hidden": [96, 100]})
def gated_norm(
    x: Input("bf16", "tokens", "hidden", says="rows"),
    gate: Input("bf16", "tokens", "hidden"),
    weight: Input("f32", "hidden") = None,
    eps: float = 1e-6,
) -> Output("bf16", "tokens", "hidden"):
    """y = x * sigmoid(gate); out = y / sqrt(mean(y^2) + eps) * weight."""
    y = x * t.sigmoid(gate)
    out = y * t.rsqrt(t.mean(y * y, axis=-1, keepdims=True) + eps)
    return out if weight is None else out * weight


@op(live="", sizes={"tokens": [5, 1], "rows": 12, "dim": [8, 3]}, rows=[{"name": "wide", "why": "A wide row.", "tier": "smoke", "dim": 40}])
def counted_rows(
    table: Input("f32", "rows", "2*dim", scale=0.1), ids: Input("i32", "tokens", below="rows")
) -> {"peaks": Output("f32", "rows"), "counts": Output("i32", "rows"), "twice": Output("i64", "tokens", 1)}:
    """The largest element of each row, how often ids names the row, and 2 * ids."""
    peaks = t.max(abs(table), axis=-1)
    return peaks, np.bincount(ids, minlength=table.shape[0]), 2 * ids[:, None]


def gated(x, gate, weight, eps):
    x, g = pk.float32(x), pk.float32(gate)
    y = x / (1 + np.exp(-g))
    out = y / np.sqrt((y * y).mean(-1, keepdims=True) + np.float32(eps))
    return out if weight is None else out * weight


def run(function, op_name, tier="smoke"):
    marked = kernel(op_name, numerics={"chains": 8, "deterministic": 1}, name="own")(function)
    return pk.run([marked], isolated=False, tier=tier, platform="sim-gfx942")


def _tall(x: Input("bf16", "n", "tall"), tall: bool = False) -> Output("bf16", "n"):
    return x[:, 0]


def _tall_without_value(x: Input("bf16", "n"), tall: bool) -> Output("bf16", "n"):
    return x


class OwnOps(unittest.TestCase):
    def test_a_right_kernel_passes_every_case(self):
        report = run(lambda x, gate, weight, eps, out: out.__setitem__(..., pk.bf16(gated(x, gate, weight, eps))), "gated_norm", "default")
        self.assertTrue(report.passed, report)
        names = {one.case for one in report.cases}
        for case in ("usual/eager", "usual/full_graph", "usual/concurrent", "rows_apart/eager", "tokens_9/eager", "without_weight/full_graph"):
            self.assertIn(f"gated_norm/{case}", names)

    def test_wrong_kernels_fail(self):
        def ignores_stride(x, gate, weight, eps, out):
            flat = np.lib.stride_tricks.as_strided(x, x.shape, (2 * x.shape[1], 2))
            out[...] = pk.bf16(gated(flat, gate, weight, eps))

        wrong = {
            "eps is lost": lambda x, gate, weight, eps, out: out.__setitem__(..., pk.bf16(gated(x, gate, weight, 0))),
            "weight is lost": lambda x, gate, weight, eps, out: out.__setitem__(..., pk.bf16(gated(x, gate, None, eps))),
            "0.2 % too large": lambda x, gate, weight, eps, out: out.__setitem__(..., pk.bf16(1.002 * gated(x, gate, weight, eps))),
            "last row": lambda x, gate, weight, eps, out: out.__setitem__(slice(0, -1), pk.bf16(gated(x, gate, weight, eps))[:-1]),
            "truncates": lambda x, gate, weight, eps, out: out.__setitem__(..., (gated(x, gate, weight, eps).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)),
            "ignores the stride": ignores_stride,
        }
        for name, function in wrong.items():
            report = run(function, "gated_norm")
            self.assertTrue(report.failures, name)

    def test_a_row_that_was_not_written_has_that_name(self):
        report = run(lambda x, gate, weight, eps, out: out.__setitem__(slice(1, None), pk.bf16(gated(x, gate, weight, eps))[1:]), "gated_norm")
        self.assertIn("never written", repr(report))

    def test_a_call_is_judged(self):
        rng = np.random.default_rng(3)
        x, gate = pk.bf16(rng.normal(size=(3, 64))), pk.bf16(rng.normal(size=(3, 64)))
        out = pk.bf16(gated(x, gate, None, 1e-6))
        self.assertTrue(pk.judge("gated_norm", x=x, gate=gate, out=out))
        self.assertFalse(pk.judge("gated_norm", x=x, gate=gate, out=out, eps=0.1))
        right = pk.reference("gated_norm", x=x, gate=gate)["out"]
        np.testing.assert_allclose(right.value, gated(x, gate, None, 1e-6), rtol=1e-5)
        self.assertTrue(np.all(right.bound > 0))
        with self.assertRaisesRegex(pk.BadCall, "gate has the shape"):
            pk.judge("gated_norm", x=x, gate=gate[:, :5], out=out)

    def test_integers_and_several_outputs(self):
        def right(table, ids, peaks, counts, twice):
            peaks[...] = np.abs(table).max(-1)
            counts[...] = np.bincount(ids, minlength=len(counts))
            twice[...] = 2 * ids[:, None]

        def wrong(table, ids, peaks, counts, twice):
            right(table, ids, peaks, counts, twice)
            counts[3] += 1

        report = run(right, "counted_rows")
        self.assertTrue(report.passed, report)
        self.assertIn("counted_rows/wide/eager", {one.case for one in report.cases})
        self.assertTrue(run(wrong, "counted_rows").failures)

    def test_sizes_may_be_sums(self):
        @op(sizes={"rows": [3, 1], "width": [4, 2]}, name="shifted", rows=[{"name": "wide", "why": 'Of "9" \\ more.', "width": 9}])
        def shifted(x: Input("f32", "rows", "2*width - 1")) -> Output("f32", "rows", "width-1"):
            return x[:, : x.shape[1] // 2]

        report = run(lambda x, out: out.__setitem__(..., x[:, : x.shape[1] // 2]), "shifted", "default")
        self.assertTrue(report.passed, report)
        self.assertIn("shifted/wide/eager", {one.case for one in report.cases})

    def test_flags_and_numbers_that_are_no_size(self):
        @op(sizes={"tokens": [4, 1], "hidden": 96, "power": [0, 3]})
        def powered(x: Input("bf16", "tokens", "hidden"), power: int, negated: bool = True) -> Output("f32", "tokens", "hidden"):
            y = x
            for _ in range(power):
                y = y * 2
            return -y if negated is True else y

        @kernel("powered")
        def right(x, power, negated, out):
            out[...] = pk.float32(x) * np.float32((-1 if negated else 1) * 2**power)

        @kernel("powered", name="always_negated")
        def always_negated(x, power, out):
            out[...] = pk.float32(x) * np.float32(-(2**power))

        report = pk.run([right], isolated=False, tier="default", platform="sim-sm90")
        self.assertTrue(report.passed, report)
        self.assertIn("powered/negated_0/eager", [one.case for one in report.cases])
        failed = pk.run([always_negated], isolated=False, tier="default", platform="sim-sm90").failures
        self.assertIn("powered/negated_0/eager", [one.case for one in failed])
        self.assertNotIn("powered/usual/eager", [one.case for one in failed])
        x = pk.bf16(np.ones((2, 3)))
        self.assertTrue(pk.judge("powered", x=x, power=1, negated=False, out=np.full((2, 3), 2, np.float32)))
        with self.assertRaisesRegex(BadKernel, "tall is a bool, and no size"):
            op(sizes={"n": 2})(_tall)
        with self.assertRaisesRegex(BadKernel, "tall is a bool, and sizes has values of it"):
            op(sizes={"n": 2, "tall": 3})(_tall)
        with self.assertRaisesRegex(BadKernel, "tall has no usual value: tall: bool = False"):
            op(sizes={"n": 2})(_tall_without_value)

    def test_arguments_are_those_of_the_signature(self):
        names = {one.name: one for one in pk.arguments("gated_norm")}
        self.assertEqual((names["x"].type, names["x"].shape, names["x"].says), ("bf16", "[tokens, hidden]", "rows"))
        self.assertIn("gated_norm", pk.ops())
        with self.assertRaisesRegex(BadKernel, "gates, which is not an argument of gated_norm .did you mean gate"):
            kernel("gated_norm")(lambda x, gates, out: None)


EXAMPLES = Path(__file__).resolve().parents[2] / "examples/own_ops"
OPS = """
from plumb_kernels import Input, Output, op
from plumb_kernels import tracked as t

@op(sizes={"tokens": [4, 1, 9], "hidden": [96, 100]})
def squared(x: Input("bf16", "tokens", "hidden"), scale: float = 2.0) -> Output("f32", "tokens", "hidden"):
    return x * x * scale
"""
KERNELS = """
import numpy as np
from plumb_kernels import float32, kernel

@kernel("squared", numerics={"deterministic": 1})
def right(x, scale, out):
    out[...] = float32(x) ** 2 * np.float32(scale)
"""


class Files(unittest.TestCase):
    """plumb run --ops: a worker process of the file computes the references."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def plumb(self, *words):
        package = str(Path(pk.__file__).resolve().parent.parent)
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PLUMB_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
        return subprocess.run([plumb_program(), *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def run_files(self, ops, kernels, *words):
        return self.plumb("run", "--ops", self.file("my_ops.py", ops), "--plugin", self.file("kernels.py", kernels), "--json", "", *words)

    def test_a_right_kernel_passes_and_a_wrong_one_fails(self):
        ended = self.run_files(OPS, KERNELS, "--op", "squared", "--platform", "sim-sm90", "--platform", "sim-gfx942")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout, r"[1-9]\d passed, 0 failed, 0 untrusted, 0 skipped")
        ended = self.run_files(OPS, KERNELS.replace("np.float32(scale)", "np.float32(1.999)"), "--op", "squared", "--tier", "smoke")
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        line = next(one for one in ended.stdout.splitlines() if "reproduce" in one)
        self.assertIn(f"--ops {self.folder}/my_ops.py", line)
        again = self.plumb(*line.split("plumb ", 1)[1].split())
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)

    def test_one_file_may_have_the_op_and_its_kernel(self):
        path = self.file("both.py", OPS + KERNELS)
        ended = self.plumb("run", "--ops", path, "--plugin", path, "--op", "squared", "--tier", "smoke", "--platform", "sim-sm90", "--json", "")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_bisect_case_asks_for_own_ops(self):
        path = self.file("both.py", OPS + KERNELS + "    out[2:] = 0\n")
        ended = self.plumb("bisect", "case", "squared/usual/eager", "--ops", path, "--plugin", path, "--platform", "sim-sm90", "--state", "", "--time", "10", "--quiet")
        if "built without bench and bisect" in ended.stderr:
            self.skipTest("this plumb has no bisect")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        found = next(one for one in ended.stdout.splitlines() if one.strip().startswith("plumb run"))
        self.assertIn(f"--ops {path}", found)
        again = self.plumb(*found.split()[1:], "--json", "")
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)

    def test_run_takes_files_of_ops(self):
        report = pk.run(self.file("kernels.py", KERNELS), ops=self.file("my_ops.py", OPS), platform="sim-sm90")
        self.assertTrue(report.passed, report)
        self.assertEqual({one.case.split("/")[0] for one in report.cases}, {"squared"})

    def test_lists_and_shows(self):
        path = self.file("my_ops.py", OPS)
        listed = self.plumb("list", "--ops", path, "--op", "squared")
        self.assertIn("squared/rows_apart/full_graph\n", listed.stdout, listed.stderr)
        self.assertIn("rms_norm ", self.plumb("list", "--ops").stdout)
        shown = self.plumb("show", "squared/usual/eager", "--ops", path)
        self.assertIn("squared", shown.stdout, shown.stderr)

    def refused(self, text, ops=None):
        path = ops or self.file("my_ops.py", text)
        ended = self.plumb("run", "--ops", path, "--op", "squared", "--json", "")
        self.assertEqual(ended.returncode, 2, ended.stdout + ended.stderr)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        return ended.stderr

    def test_files_that_declare_nothing_say_so_in_a_line(self):
        self.assertIn("declares no @op", self.refused("x = 1\n"))
        self.assertIn("my_ops.py: cannot be imported: SyntaxError", self.refused("x = (\n"))
        self.assertIn("sizes has no values of hidden", self.refused(OPS.replace(', "hidden": [96, 100]', "")))
        self.assertIn("there is an op rms_norm already", self.refused(OPS.replace("def squared", "def rms_norm")))
        self.assertIn("No such file", self.refused("", ops="missing.py"))

    def test_a_reference_that_fails_is_an_error_of_the_file(self):
        for reference, why in (
            ("return x * x * x.missing", "the reference raised AttributeError"),
            ("import os; os._exit(3)", "its process ended with exit code 3"),
            ("return x[:1]", r"declared [tokens, hidden]"),
        ):
            ended = self.run_files(OPS.replace("return x * x * scale", reference), KERNELS, "--op", "squared", "--platform", "sim-sm90")
            self.assertEqual(ended.returncode, 2, ended.stdout + ended.stderr)
            self.assertIn(why, ended.stderr)


class Examples(Files):
    """examples/own_ops: each right kernel passes the default tier, and each changed one fails."""

    CHANGES = {
        "engram_lookup": {
            "holes read the last row": ("np.where((buckets >= 0)[..., None], rows[np.maximum(buckets, 0)], np.float32(0))", "rows[buckets]"),
            "scales of another group": ("np.repeat(factors, 32, axis=1)\n    found", "np.repeat(factors[:, ::-1], 32, axis=1)\n    found"),
            "e4m3fnuz": ("- 7)", "- 8)"),
        },
        "lora_shrink": {
            "first adapter": ("a[of_token]", "a[0]"),
            "built-in scaling": ("np.float32(scaling)", "np.float32(0.5)"),
            "last column": ("(a[of_token] @ x[i])", "(a[of_token][:, :-1] @ x[i][:-1])"),
            "stored in bf16": ("np.float32(scaling) * (a[of_token] @ x[i])", "float32(bf16(np.float32(scaling) * (a[of_token] @ x[i])))"),
        },
        "gated_delta_step": {
            "delta of the old state": ("(v - (decayed *", "(v - (state *"),
            "reads the old state": ("bf16((new_state *", "bf16((state *"),
            "beta is lost": (").sum(2)) * beta[:, :, None]", ").sum(2))"),
            "base 2": ("np.exp(g)", "np.exp2(g)"),
            "scale in bf16": ("np.float32(scale)", "float32(bf16(scale))"),
            "state in bf16": ("new_state[...] = decayed + k[..., None] * delta[:, :, None, :]", "new_state[...] = float32(bf16(decayed + k[..., None] * delta[:, :, None, :]))"),
        },
    }

    def outcome(self, name, change=None, tier="default"):
        text = (EXAMPLES / f"{name}.py").read_text()
        if change is not None:
            self.assertIn(change[0], text)
            at = text.rindex(change[0])  # the last occurrence is in the kernel, which comes after the op
            text = (text[:at] + text[at:].replace(*change)).replace("import Input", "import bf16, float32, Input")
        path = self.file(f"{name}.py", text)
        return self.plumb("run", "--ops", path, "--plugin", path, "--op", name, "--tier", tier, "--platform", "sim-sm90", "--no-diagnosis", "--json", "")

    def test_right_kernels_pass_and_changed_ones_fail(self):
        for name, changes in self.CHANGES.items():
            self.assertLessEqual(len((EXAMPLES / f"{name}.py").read_text().splitlines()), 60)
            right = self.outcome(name)
            self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
            for what, change in changes.items():
                wrong = self.outcome(name, change, "smoke")
                self.assertEqual(wrong.returncode, 1, f"{name}: {what}\n{wrong.stdout}{wrong.stderr}")


class Refusals(unittest.TestCase):
    def refused(self, why, function, **how):
        with self.assertRaisesRegex(BadKernel, why):
            op(**{"sizes": {"n": 4}, **how})(function)

    def test_declarations_without_meaning(self):
        def ok(x: Input("f32", "n")) -> Output("f32", "n"):
            return x

        def optional(x: Input("f32", "n"), y: Input("f32", "n") = None) -> Output("f32", "n"):
            return x

        def no_output(x: Input("f32", "n")):
            return x

        def unknown(x: Input("f32", "m")) -> Output("f32", "n"):
            return x

        def no_array(x: Input("f32", "n"), y: str = "") -> Output("f32", "n"):
            return x

        def no_value(x: Input("f32", "n"), eps: float) -> Output("f32", "n"):
            return x

        self.refused("no_output returns Output", no_output)
        self.refused("sizes has no values of m", unknown)
        self.refused("y is an Input", no_array)
        self.refused("eps has no usual value", no_value)
        self.refused("there is an op rms_norm already", ok, name="rms_norm")
        self.refused("is not a size of the op", ok, live="tokens", name="a")
        self.refused("a row has a name and a why", ok, rows=[{"n": 3}], name="b")
        self.refused("there is a row usual already", ok, rows=[{"name": "usual", "why": "w"}], name="e")
        self.refused("there is a row without_y already", optional, rows=[{"name": "without_y", "why": "w"}], name="g")
        self.refused("'a b' is not a valid name of a row", ok, rows=[{"name": "a b", "why": "w"}], name="f")
        self.refused("there is no size m", ok, rows=[{"name": "r", "why": "w", "m": 3}], name="c")
        with self.assertRaisesRegex(BadKernel, "it is one of u8, i32"):
            Input("float32", "n")

    def test_a_reference_that_cannot_be_used_says_why(self):
        @op(sizes={"n": 4}, name="raises")
        def raises(x: Input("f32", "n")) -> Output("f32", "n"):
            raise RuntimeError("not today")

        @op(sizes={"n": 4}, name="too_short")
        def too_short(x: Input("f32", "n")) -> Output("f32", "n"):
            return x[:3]

        @op(sizes={"n": 4}, name="of_numpy")
        def of_numpy(x: Input("f32", "n")) -> Output("f32", "n"):
            return np.zeros(4)

        @op(sizes={"n": 4}, name="of_two")
        def of_two(x: Input("f32", "n")) -> {"a": Output("f32", "n"), "b": Output("f32", "n")}:
            return x

        x = np.zeros(4, np.float32)
        with self.assertRaisesRegex(pk.BadCall, "1 result for a, b"):
            pk.judge("of_two", x=x, a=x, b=x)
        for name, why in (
            ("raises", "raises: the reference raised RuntimeError: not today"),
            ("too_short", r"out has the shape \[3\]; declared \[n\] is \[4\]"),
            ("of_numpy", "out is f32, and the reference returns ndarray"),
        ):
            with self.assertRaisesRegex(pk.BadCall, why):
                pk.judge(name, x=x, out=x)


class Arrays(unittest.TestCase):
    """Tests operators with an op whose reference is a given expression."""

    def value(self, function, **inputs):
        name = f"of_{self.id().split('.')[-1]}"
        shapes = {key: list(one.shape) for key, one in inputs.items()}
        signature = ", ".join(f'{key}: Input("f32", {", ".join(map(str, shape))})' for key, shape in shapes.items())
        made = function(**{key: np.asarray(one, np.float64) for key, one in inputs.items()}, t=np)
        scope = {"Input": Input, "Output": Output, "function": function, "t": t}
        call = ", ".join(f"{key}={key}" for key in inputs)
        exec(f'def own({signature}) -> Output("f32", {", ".join(map(str, made.shape))}): return function({call}, t=t)', scope)
        op(sizes={}, name=name)(scope["own"])
        return pk.reference(name, **{key: np.asarray(one, np.float32) for key, one in inputs.items()})["out"].value, made

    def test_indices(self):
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

        def function(x, t):
            return t.concatenate([x[0, :, 1:3], x[1, ..., :2], -x[-1, :, None, 3][:, :] + 1 - 2 * x[0, :, :1] / 4], 1)

        value, made = self.value(function, x=x)
        np.testing.assert_allclose(value, made)

    def test_numbers_and_numpy_arrays_beside(self):
        x = np.linspace(1, 3, 6, dtype=np.float32).reshape(2, 3)
        beside = np.array([1.0, 2.0, 4.0])

        def function(x, t):
            return t.maximum(1 - beside * x, x / beside) + t.sqrt(2 / x) - (x - 1) * beside

        value, made = self.value(function, x=x)
        np.testing.assert_allclose(value, made, rtol=1e-6)

    def test_functions(self):
        x = np.linspace(0.5, 2, 8, dtype=np.float32).reshape(2, 4)

        def function(x, t):
            return t.exp(x) + t.log(x) + t.tanh(x) + t.sum(x, axis=1, keepdims=True) * t.mean(x, axis=0) - abs(x)

        value, made = self.value(function, x=x)
        np.testing.assert_allclose(value, made, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
