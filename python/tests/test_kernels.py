# SPDX-License-Identifier: Apache-2.0
"""@kernel and run() with numpy alone: python -m unittest discover python/tests

They need the program plumb (PLUMB_PROGRAM, or where this build put it).
"""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
from pathlib import Path

import numpy as np
import plumb_kernels as plumb

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/plugin/python/kernels.py"
FIDELITY = Path(__file__).resolve().parents[1] / "fidelity"
HEAD = """
import os, sys, threading, time
import numpy as np
import plumb_kernels
from plumb_kernels import bf16, float32, kernel, Unsupported

def norm(x, weight, out, eps, rounding):
    values = float32(x)
    values = values / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + np.float32(eps))
    values = float32(bf16(values)) if rounding == "twice" else values
    out[:] = bf16(values if weight is None else values * float32(weight))
"""


class KernelFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, text, name="kernels.py", head=HEAD):
        path = self.folder / name
        path.write_text(head + textwrap.dedent(text))
        return str(path)

    def run_file(self, text, case="rms_norm/v4_pro_hidden/eager", platform="sim-sm90", **more):
        return plumb.run(self.file(text), case=case, platform=platform, **more)

    def only_failure(self, text, **more):
        report = self.run_file(text, **more)
        self.assertFalse(report.passed, report)
        self.assertEqual([one.outcome for one in report.cases], ["failed"], report)
        return report.cases[0].text

    def refused(self, text, **more):
        with self.assertRaises(plumb.CannotRun) as caught:
            self.run_file(text, **more)
        said = str(caught.exception)
        self.assertNotIn("\n", said)
        return said


class OptionalOutputs(KernelFiles):
    """Attention is judged only on the outputs that it has."""

    def outcome(self, name, *change):
        for file in ("formats.py", "sparse_mla_kernels.py"):
            text = (FIDELITY / file).read_text()
            (self.folder / file).write_text(text.replace(*change) if change else text)
        report = plumb.run(
            f"{self.folder / 'sparse_mla_kernels.py'}::{name}",
            case="sparse_mla_decode/edge_lengths_ragged/full_graph",
            platform="sim-sm90",
        )
        self.assertEqual(len(report.cases), 1)
        return report.cases[0]

    def test_right_attention_passes_with_and_without_lse_and_plan(self):
        for name in ("flash_mla", "flash_mla_in_one_pass", "flash_mla_without_lse", "rocm_sparse_attn_decode"):
            self.assertEqual(self.outcome(name).outcome, "passed", self.outcome(name))

    def test_out_is_judged_where_it_is_all_that_there_is(self):
        wrong = self.outcome("rocm_sparse_attn_decode", "self.sum * rescale +", "self.sum +")
        self.assertEqual(wrong.outcome, "failed")
        self.assertIn("out: ", wrong.text)

    def test_lse_is_judged_where_it_is_promised(self):
        in_base_2 = ("softmax.lse() * LN2", "softmax.lse()")
        self.assertIn("lse: ", self.outcome("flash_mla_in_one_pass", *in_base_2).text)
        self.assertEqual(self.outcome("flash_mla_without_lse", *in_base_2).outcome, "passed")

    def test_a_plan_is_judged_where_it_is_promised(self):
        late = ("payload = -(-sum", "payload = 1 - (-sum")
        self.assertIn("tiles: ", self.outcome("flash_mla_without_lse", *late).text)
        self.assertEqual(self.outcome("flash_mla_in_one_pass", *late).outcome, "passed")


class Declarations(KernelFiles):
    def test_a_failure_names_the_declaration_that_is_missing(self):
        text = self.only_failure(
            """
            @kernel("rms_norm", contract={"rounding": "twice"})
            def once(x, weight, out, eps):
                norm(x, weight, out, eps, "once")
            """
        )
        self.assertIn("right if rounding = once: declare it", text)

    def test_a_contract_may_be_written_as_reports_print_it(self):
        report = self.run_file(
            """
            @kernel("rms_norm", contract="rounding=once")
            def once(x, weight, out, eps):
                norm(x, weight, out, eps, "once")
            """
        )
        self.assertTrue(report.passed, report)
        refused = self.refused('kernel("rms_norm", contract="rounding")(lambda x: None)\n')
        self.assertIn("contract: rounding is None; a value is one word", refused)


class Outcomes(KernelFiles):
    def test_right_kernels_pass_every_case_on_every_simulated_platform(self):
        report = plumb.run(EXAMPLE)
        self.assertEqual({one.case.split("/")[0] for one in report.cases}, {"rms_norm", "top_k_per_row_decode"})
        self.assertTrue(report.passed, report)
        self.assertTrue(report.isolated)
        self.assertEqual({one.outcome for one in report.cases}, {"passed"}, report)
        self.assertEqual({one.platform for one in report.cases}, {"sim-sm90", "sim-gfx942", "sim-gfx950"})
        scenarios = {one.case.split("/")[2] for one in report.cases}
        self.assertLessEqual({"eager", "full_graph", "concurrent"}, scenarios)

    def test_a_wrong_kernel_fails_with_plumbs_text(self):
        text = self.only_failure(
            """
            @kernel("rms_norm")
            def shifted(x, weight, out, eps, rounding):
                norm(np.roll(x, 1, axis=0), weight, out, eps, rounding)
            """
        )
        self.assertIn("beyond their bound", text)
        self.assertIn("reproduce: plumb run --case rms_norm/v4_pro_hidden/eager --platform sim-sm90", text)

    def test_a_kernel_that_writes_nothing_fails(self):
        self.assertIn("out: ", self.only_failure('@kernel("rms_norm")\ndef idle(out):\n    pass\n'))

    def test_an_exception_is_its_type_its_message_and_the_users_line(self):
        text = self.only_failure(
            """
            def helper(x):
                return x.shape["rows"]

            @kernel("rms_norm")
            def broken(x, out):
                helper(x)
            """
        )
        self.assertIn("broken raised TypeError: ", text)
        self.assertRegex(text, r"\(kernels\.py:\d+: return x\.shape\[\"rows\"\]\)")

    def test_sys_exit_is_an_exception(self):
        self.assertIn("raised SystemExit: 0", self.only_failure('@kernel("rms_norm")\ndef leaves(out):\n    sys.exit(0)\n'))

    def test_a_crash_fails_its_case_and_the_next_one_runs(self):
        report = self.run_file(
            """
            @kernel("rms_norm")
            def crashes(x, weight, out, eps, rounding):
                if x.shape[1] == 7168:
                    os.abort()
                norm(x, weight, out, eps, rounding)
            """,
            case=["rms_norm/v4_pro_hidden/eager", "rms_norm/kv_latent_slice/eager"],
        )
        outcomes = {one.case: one for one in report.cases}
        self.assertIn("crash: its process ended with signal 6", outcomes["rms_norm/v4_pro_hidden/eager"].text)
        self.assertEqual(outcomes["rms_norm/kv_latent_slice/eager"].outcome, "passed", report)

    def test_a_fault_inside_the_interpreter_costs_its_case_alone(self):
        text = """
            @kernel("rms_norm", numerics={"deterministic": 1})
            def wild(x, weight, out, eps, rounding):
                if x.shape[1] == 7168:
                    np.lib.stride_tricks.as_strided(x.reshape(-1), shape=(2,), strides=(1 << 40,)).sum()
                norm(x, weight, out, eps, rounding)
            """
        report = self.run_file(
            text,
            case=[f"rms_norm/v4_pro_hidden/{scenario}" for scenario in ("eager", "full_graph", "concurrent")]
            + [f"rms_norm/kv_latent_slice/{scenario}" for scenario in ("eager", "full_graph")],
            jobs=1,
            timeout=60,
        )
        outcomes = {one.case: one.outcome for one in report.cases}
        self.assertEqual({outcomes[case] for case in outcomes if "v4_pro" in case}, {"failed"}, report)
        self.assertEqual({outcomes[case] for case in outcomes if "latent" in case}, {"passed"}, report)
        for one in report.failures:
            self.assertNotIn("timeout", one.text)
            self.assertIn("out_of_bounds", one.text)

    def test_a_hang_ends_with_the_timeout(self):
        text = self.only_failure('@kernel("rms_norm")\ndef hangs(out):\n    time.sleep(1000)\n', timeout=3)
        self.assertIn("timeout: no result after 3 s", text)

    def test_a_run_that_stops_has_not_passed(self):
        said = {
            "plugin": {"ops": ["rms_norm"]},
            "cases": [{"case": "rms_norm/one_token/eager", "platform": "sim-sm90", "outcome": "passed", "reason": ""}],
            "interrupted": {"why": "no space left", "done": 1, "cases": 3},
        }
        stops = self.folder / "plumb"
        stops.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[sys.argv.index('--json') + 1], 'w').write({json.dumps(said)!r})\nsys.exit(2)\n")
        stops.chmod(0o755)
        with unittest.mock.patch.dict(os.environ, PLUMB_PROGRAM=str(stops)):
            report = self.run_file("")
        self.assertEqual([one.outcome for one in report.cases], ["passed"])
        self.assertFalse(report.passed)
        self.assertIn("interrupted: no space left: 1 of 3 cases done", repr(report))

    def test_what_a_file_prints_is_in_no_report(self):
        report = self.run_file('print("loading")\n\n@kernel("rms_norm")\ndef loud(x, weight, out, eps, rounding):\n    print("running")\n    norm(x, weight, out, eps, rounding)\n')
        self.assertTrue(report.passed, report)
        listed = plumb._run.list_cases(str(self.folder / "kernels.py"), "smoke")
        self.assertEqual({name.split("/")[0] for name in listed}, {"rms_norm"})

    def test_a_write_outside_a_tensor_is_found(self):
        text = self.only_failure(
            """
            @kernel("rms_norm")
            def spills(x, weight, out, eps, rounding):
                norm(x, weight, out, eps, rounding)
                rows = np.lib.stride_tricks.as_strided(out, (len(out) + 1, out.shape[1]))
                rows[-1, :8] = 7
            """
        )
        self.assertRegex(text, "guard zone damaged|crash: its process ended with signal 11")


class Skips(KernelFiles):
    def skipped(self, text, why, **more):
        with self.subTest(text=text):
            words = dict(case="rms_norm/v4_pro_hidden/*", **more)
            report = self.run_file(text, **words)
            self.assertFalse(report.passed)
            self.assertEqual({one.outcome for one in report.cases}, {"skipped"}, report)
            for one in report.cases:
                self.assertTrue(one.reason.endswith(why), one.reason)

    def test_unsupported_skips_eagerly_captured_and_side_by_side(self):
        self.skipped('@kernel("rms_norm")\ndef no(out):\n    raise Unsupported("not 7168 columns")\n', "not 7168 columns")

    def test_supports_is_asked_before_the_launch(self):
        self.skipped('@kernel("rms_norm", supports=lambda x: x.shape[1] < 512 or "too wide")\ndef no(out):\n    os.abort()\n', "too wide")
        self.skipped('@kernel("rms_norm", supports=lambda hidden: False)\ndef no(out):\n    os.abort()\n', "no does not support the call")

    def test_platforms_that_a_kernel_is_not_for(self):
        self.skipped('@kernel("rms_norm", platforms="cuda-*")\ndef no(out):\n    os.abort()\n', "no is for cuda-*")

    def test_an_exception_of_supports_fails_the_case(self):
        text = self.only_failure('@kernel("rms_norm", supports=lambda x: x.rows < 3)\ndef no(out):\n    pass\n')
        self.assertIn("'Metadata' object has no attribute 'rows'", text)

    def test_numbers_are_no_bits(self):
        text = self.only_failure('@kernel("rms_norm")\ndef norm(x, out):\n    out[:] = float32(x)\n')
        self.assertIn("norm raised TypeError: bf16 is stored as bits: out[...] = plumb_kernels.bf16(numbers)", text)

    def test_outputs_that_nobody_wrote(self):
        text = self.only_failure('@kernel("rms_norm")\ndef norm(x, out):\n    return x\n')
        self.assertRegex(text, "never written|is zero, as before the launch")


class Refusals(KernelFiles):
    def test_an_argument_that_the_op_does_not_have(self):
        said = self.refused('@kernel("rms_norm")\ndef norm_of(x, wieght, out):\n    pass\n')
        self.assertIn("rms_norm: norm_of takes wieght, which is not an argument of rms_norm (did you mean weight?)", said)
        with self.assertRaises(plumb.BadKernel):
            plumb.kernel("rms_norm")(lambda *rest: None)
        with self.assertRaises(plumb.BadKernel):
            plumb.kernel("rms_nrom")
        with self.assertRaises(plumb.BadKernel):
            plumb.kernel("rms_norm", numerics={"product": "fp32"})(lambda out: None)
        with self.assertRaisesRegex(plumb.BadKernel, "words are fp32, sm90_bf16, sm90_fp8, 24_bits"):
            plumb.kernel("rms_norm", numerics={"sum_unit": "sm80"})(lambda out: None)

    def test_files_that_are_no_plugins(self):
        self.assertIn("cannot be imported: ModuleNotFoundError: No module named 'absent_module'", self.refused("import absent_module\n"))
        self.assertIn("cannot be imported: SyntaxError", self.refused("def f(:\n"))
        self.assertIn("has no @kernel function", self.refused("x = 1\n"))
        self.assertIn("two kernels for rms_norm: a and b", self.refused('@kernel("rms_norm")\ndef a(out): pass\n@kernel("rms_norm")\ndef b(out): pass\n'))
        self.assertIn("among the numerics", self.refused('@kernel("rms_norm", numerics={"chain": 1})\ndef a(out): pass\n'))
        self.assertIn("its process ended with signal 6", self.refused("os.abort()\n"))
        with self.assertRaisesRegex(plumb.CannotRun, "absent.py: No such file or directory"):
            plumb.run(str(self.folder / "absent.py"))

    def test_an_interpreter_that_serves_nothing(self):
        command = [plumb._run.plumb_program(), "run", "--plugin", str(EXAMPLE), "--json", ""]
        for python, why in (("/absent/python", "cannot be run"), ("/bin/false", "cannot import plumb_kernels")):
            ended = subprocess.run(command, env={**os.environ, "PLUMB_PYTHON": python}, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(why, ended.stderr)
            self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)

    def test_an_interpreter_without_the_package_says_so_in_a_line(self):
        (self.folder / "plumb_kernels").mkdir()
        (self.folder / "plumb_kernels/__init__.py").write_text("import there_is_no_such_module\n")
        for option in ("--plugin", "--ops"):
            command = [plumb._run.plumb_program(), "run", option, str(EXAMPLE), "--json", ""]
            environment = {**os.environ, "PLUMB_PYTHON": sys.executable, "PYTHONPATH": str(self.folder)}
            ended = subprocess.run(command, env=environment, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn("cannot import plumb_kernels: ModuleNotFoundError: No module named 'there_is_no_such_module'", ended.stderr)
            self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)

    def test_a_library_of_another_version(self):
        command = [plumb._run.sys.executable, "-m", "plumb_kernels._worker", "0", str(EXAMPLE)]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("is for plumb itself", ended.stderr)


class Arguments(KernelFiles):
    def test_they_have_the_names_shapes_and_strides_of_the_op(self):
        report = self.run_file(
            """
            @kernel("rms_norm")
            def strided(x, weight, out, tokens, hidden, x_row_stride, out_row_stride, rounding, eps, platform, stream, **rest):
                assert x.shape == (tokens, hidden) and x.dtype == np.uint16, x
                assert x.strides == (2 * x_row_stride, 2) and x_row_stride > hidden, x.strides
                assert out.strides == (2 * out_row_stride, 2) and out_row_stride == hidden, out.strides
                assert isinstance(eps, float) and rounding in ("once", "twice")
                assert platform == "sim-sm90" and stream is None and not rest, rest
                norm(x, weight, out, eps, rounding)
            """,
            case="rms_norm/kv_latent_slice",
        )
        self.assertTrue(report.passed, report)
        self.assertEqual({one.outcome for one in report.cases}, {"passed"}, report)

    def test_an_absent_tensor_is_none(self):
        report = self.run_file(
            """
            @kernel("rms_norm", numerics={"deterministic": True, "sum_unit": "24_bits", "sum_step": 8})
            def norm_of(x, weight, out, eps, rounding):
                if weight is not None:
                    raise Unsupported("a weight")
                norm(x, weight, out, eps, rounding)
            """,
            case="rms_norm/*/eager",
            tier="default",
        )
        outcomes = {one.outcome for one in report.cases}
        self.assertEqual(outcomes, {"passed", "skipped"}, report)

    def test_all_ops_name_theirs(self):
        for op in plumb.ops():
            kinds = plumb.launch_arguments(op)
            self.assertLessEqual(set(kinds.values()), {"tensor", "integer", "real", "word"}, op)
            self.assertTrue(all(name.isidentifier() for name in kinds), op)
        self.assertEqual(plumb.launch_arguments("rms_norm")["rounding"], "word")

    def test_tensors_of_every_op_lie_in_their_memory(self):
        path = self.file(
            """
            def touch(arguments):
                arrays = [one for one in arguments.values() if isinstance(one, np.ndarray) and one.size]
                for one in arrays:
                    one[tuple(size - 1 for size in one.shape)] + (one.sum() if one.size < 1e7 else 0)
                assert arrays

            def kernel_of(op):
                def reads(**arguments):
                    touch(arguments)
                return kernel(op)(reads)

            for op in plumb_kernels.ops():
                globals()["reads_" + op] = kernel_of(op)
            """
        )
        report = plumb.run(path, platform="sim-gfx942", options=["--no-diagnosis"])
        self.assertEqual(len({one.case.split("/")[0] for one in report.cases}), 59)
        for one in report.cases:
            self.assertEqual(one.outcome, "failed", one)  # the kernels write nothing
            self.assertNotRegex(one.text, "crash|raised|out_of_bounds|guard zone", one)

    def test_cases_run_under_the_declared_contract(self):
        once = """
            @kernel("rms_norm", contract={"rounding": "%s"})
            def once(x, weight, out, eps):
                norm(x, weight, out, eps, "once")
        """
        twice = "rms_norm/v4_pro_hidden_twice/eager"
        self.assertTrue(self.run_file(once % "once", case=twice).passed)
        self.assertIn("beyond their bound", self.only_failure(once % "twice", case=twice))
        self.assertIn("rms_norm: rounding is once or twice, not thrice", self.refused(once % "thrice"))
        self.assertIn("'on ce'; a value is one word", self.refused(once % "on ce"))

    def test_a_promise_that_is_not_kept_fails(self):
        text = """
            count = 0

            @kernel("rms_norm", numerics={"deterministic": 1})
            def restless(x, weight, out, eps, rounding):
                global count
                count += 1
                norm(x, weight, out, eps, rounding)
                out[:, 3] ^= count & 1  # one unit in the last place
            """
        self.assertIn("replay differs from eager", self.only_failure(text, case="rms_norm/v4_pro_hidden/full_graph"))


class Functions(KernelFiles):
    def test_functions_of_a_file_run_isolated(self):
        path = self.file('@kernel("rms_norm")\ndef first(x, weight, out, eps, rounding):\n    norm(x, weight, out, eps, rounding)\n\n@kernel("rms_norm")\ndef second(out):\n    pass\n')
        names = {}
        exec(compile(Path(path).read_text(), path, "exec"), names)
        right = plumb.run(names["first"], case="rms_norm/v4_pro_hidden/eager", platform="sim-sm90")
        self.assertTrue(right.passed, right)
        self.assertFalse(plumb.run([names["second"]], case="rms_norm/v4_pro_hidden/eager", platform="sim-sm90").passed)

    def test_a_file_of_a_package_imports_its_neighbours(self):
        package = self.folder / "engine"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "common.py").write_text(HEAD)
        path = package / "kernels.py"
        path.write_text('from plumb_kernels import kernel\nfrom .common import norm\n\n@kernel("rms_norm")\ndef of_package(x, weight, out, eps, rounding):\n    norm(x, weight, out, eps, rounding)\n')
        report = plumb.run(path, case="rms_norm/v4_pro_hidden/eager", platform="sim-sm90")
        self.assertTrue(report.passed, report)

    def test_functions_of_no_file_run_in_this_process_and_the_report_says_so(self):
        names = {}
        exec(HEAD + '@kernel("rms_norm")\ndef here(x, weight, out, eps, rounding):\n    norm(x, weight, out, eps, rounding)\n', names)
        with self.assertRaisesRegex(plumb.BadKernel, "isolated=False"):
            plumb.run(names["here"])
        report = plumb.run(names["here"], isolated=False, platform="sim-gfx942")
        self.assertTrue(report.passed, report)
        self.assertIn("not isolated", repr(report))
        self.assertEqual({one.outcome for one in report.cases}, {"passed"}, report)
        exec(HEAD + '@kernel("rms_norm")\ndef here(out):\n    raise ValueError("not today")\n', names)
        report = plumb.run(names["here"], case="rms_norm/v4_pro_hidden/eager", isolated=False, platform="sim-sm90")
        self.assertFalse(report.passed)
        self.assertIn("here raised ValueError: not today", repr(report))
        exec(HEAD + '@kernel("rms_norm")\ndef here(out):\n    raise Unsupported("not here")\n', names)
        report = plumb.run(names["here"], case="rms_norm/v4_pro_hidden/*", isolated=False, platform="sim-sm90")
        self.assertEqual({one.outcome for one in report.cases}, {"skipped"}, report)


if __name__ == "__main__":
    unittest.main()
