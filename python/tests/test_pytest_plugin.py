# SPDX-License-Identifier: Apache-2.0
"""The pytest plug-in: one test per case. Skipped if pytest is not installed."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import plumb_kernels

KERNELS = """
import numpy as np
from plumb_kernels import Unsupported, bf16, float32, kernel

@kernel("rms_norm")
def norm(x, weight, out, eps, rounding):
    if len(x) == 1:
        raise Unsupported("one row")
    values = float32(x)
    values = values / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + np.float32(eps))
    out[:] = bf16(values * float32(weight))  # wrong for rounding="twice"
"""
OPS = """
from plumb_kernels import Input, Output, op

@op(sizes={"tokens": [4, 1], "hidden": 96})
def twice(x: Input("bf16", "tokens", "hidden")) -> Output("f32", "tokens", "hidden"):
    return x * 2
"""
OWN_KERNELS = """
import numpy as np
from plumb_kernels import float32, kernel

@kernel("twice")
def wrong(x, out):
    out[...] = float32(x) * np.float32(3)
"""
WRONG = "kernels.py::rms_norm/v4_pro_hidden_twice/eager@sim-sm90"


@unittest.skipUnless(importlib.util.find_spec("pytest"), "no pytest here")
class PytestPlugin(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "kernels.py").write_text(KERNELS)

    def pytest(self, *words):
        package = str(Path(plumb_kernels.__file__).parent.parent)
        environment = {**os.environ, "PYTHONPATH": package, "PLUMB_PROGRAM": plumb_kernels._run.plumb_program()}
        # An installed package is registered as a plug-in already.
        loaded = [] if list(importlib.metadata.entry_points(group="pytest11", name="plumb")) else ["-p", "plumb_kernels.pytest_plugin"]
        command = [sys.executable, "-m", "pytest", *loaded, "--plumb", "kernels.py", "--plumb-platform", "sim-sm90", *words]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def test_a_test_for_each_case_named_as_the_case(self):
        listed = self.pytest("--collect-only", "-q").stdout
        names = re.findall(r"^kernels\.py::(.*)@sim-sm90$", listed, re.M)
        self.assertIn("rms_norm/v4_pro_hidden/full_graph", names)
        self.assertEqual(names, plumb_kernels._run.list_cases(str(self.folder / "kernels.py"), "smoke"))

    def test_ops_of_a_file_have_tests(self):
        (self.folder / "my_ops.py").write_text(OPS)
        (self.folder / "kernels.py").write_text(OWN_KERNELS)
        ended = self.pytest("--plumb-ops", "my_ops.py", "-rf", "-k", "twice")
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertIn("kernels.py::twice/usual/eager@sim-sm90", ended.stdout)
        self.assertRegex(ended.stdout, r"--ops \S*my_ops.py")
        (self.folder / "kernels.py").write_text(OWN_KERNELS.replace("3)", "2)"))
        ended = self.pytest("--plumb-ops", "my_ops.py", "-k", "twice")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_failures_have_plumbs_text_and_lf_runs_them_again(self):
        ended = self.pytest("-rfs")
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertIn("FAILED " + WRONG, ended.stdout)
        self.assertIn("elements beyond their bound in 4 of 4 rows (rows 0-3)", ended.stdout)
        self.assertIn("reproduce: plumb run --case rms_norm/v4_pro_hidden_twice/eager --platform sim-sm90", ended.stdout)
        self.assertRegex(ended.stdout, r"SKIPPED \[\d+\].*one row")
        again = self.pytest("--lf", "-q").stdout
        failed = re.search(r"(\d+) failed", ended.stdout).group(1)
        self.assertRegex(again, rf"{failed} failed, \d+ deselected")

    def test_k_chooses(self):
        ended = self.pytest("-k", "v4_pro_hidden/eager or kv_latent_slice", "-v")
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("kernels.py::rms_norm/kv_latent_slice/full_graph@sim-sm90 PASSED", ended.stdout)
        self.assertNotIn(WRONG, ended.stdout)

    def test_a_file_that_cannot_be_imported_is_an_error_of_collection(self):
        (self.folder / "kernels.py").write_text("import absent_module\n")
        ended = self.pytest()
        self.assertEqual(ended.returncode, 2, ended.stdout)
        self.assertIn("cannot be imported: ModuleNotFoundError", ended.stdout)

    @unittest.skipUnless(importlib.util.find_spec("xdist"), "no pytest-xdist here")
    def test_xdist_finds_the_same(self):
        ended = self.pytest("-n", "2", "-q")
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertIn("FAILED " + WRONG, ended.stdout)


if __name__ == "__main__":
    unittest.main()
