#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One place has the version: the project() of CMakeLists.txt. The program, its reports, the Python package, the packages
and the change log say the same. PLUMB_PROGRAM names the program, PLUMB_BUILD its build folder."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["PLUMB_PROGRAM"]
CMAKE = (ROOT / "CMakeLists.txt").read_text()


def version():
    found = re.findall(r"^project\(plumb VERSION ([0-9.]+) ", CMAKE, re.M)
    assert len(found) == 1, found
    return found[0]


class Version(unittest.TestCase):
    def test_program(self):
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, version() + "\n")

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "plumb.json")
            subprocess.run([PROGRAM, "run", "--case", "rms_norm/hidden_1/eager", "--platform", "sim-sm90", "--goldens", "",
                            "--quiet", "--json", report], check=True, capture_output=True)
            self.assertEqual(json.loads(report.read_text())["run"]["plumb"], version())

    def test_python_package(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        self.assertNotIn("version", project["project"])
        self.assertEqual(project["project"]["dynamic"], ["version"])
        # As scikit-build-core reads it.
        source = project["tool"]["scikit-build"]["metadata"]["version"]
        found = re.search(source["regex"], (ROOT / source["input"]).read_text(), re.M)
        self.assertEqual(found["value"], version())

    def test_packages(self):
        build = pathlib.Path(os.environ["PLUMB_BUILD"])
        self.assertIn(f'set(CPACK_PACKAGE_VERSION "{version()}")', (build / "CPackConfig.cmake").read_text())
        self.assertIn(f'set(PACKAGE_VERSION "{version()}")', (build / "plumbConfigVersion.cmake").read_text())

    def test_change_log(self):
        heads = re.findall(r"^## ([0-9.]+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
        self.assertEqual(heads[0], version())

    def test_no_other_file_has_it(self):
        for file in ("pyproject.toml", "cmake/package.cmake", "cmake/install.cmake", "tools/CMakeLists.txt",
                     "golden/CMakeLists.txt", "python/plumb_kernels/__init__.py", "README.md", "docs/python.md"):
            self.assertNotIn(version(), (ROOT / file).read_text(), file)


if __name__ == "__main__":
    unittest.main()
