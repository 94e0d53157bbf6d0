#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/map.svg shows the includes of the source tree, and the check reports a picture that is out of date."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def draw(*words):
    return subprocess.run([sys.executable, "-B", ROOT / "docs/draw_map.py", *words], capture_output=True, text=True)


class Map(unittest.TestCase):
    def planted(self, include):
        """A small tree with a picture, to which one more include is then added."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for name in ("docs", "tests", "reference", "process", "golden"):
            (root / name).mkdir()
        shutil.copy(ROOT / "tests/source_tree_test.cpp", root / "tests")
        (root / "golden/store.cpp").write_text('#include "process/child.h"\n')
        (root / "process/child.h").write_text("")
        self.assertEqual(draw("--root", root).returncode, 0)
        self.assertEqual(draw("--root", root, "--check").returncode, 0)
        (root / "golden/model.h").write_text(include)
        return draw("--root", root, "--check")

    def test_is_up_to_date(self):
        checked = draw("--check")
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_a_new_arrow_makes_it_old(self):
        checked = self.planted('#include "reference/bound.h"\n')
        self.assertEqual(checked.returncode, 1)
        self.assertIn("docs/map.svg is out of date", checked.stderr)

    def test_an_include_of_a_unit_that_was_included_already_does_not(self):
        self.assertEqual(self.planted('#include "process/run.h"\n').returncode, 0)

    def test_a_circle_is_named(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for name in ("docs", "tests", "hdf5", "golden"):
            (root / name).mkdir()
        shutil.copy(ROOT / "tests/source_tree_test.cpp", root / "tests")
        (root / "golden/a.h").write_text('#include "hdf5/a.h"\n')
        (root / "hdf5/a.h").write_text('#include "golden/a.h"\n')
        self.assertIn("a circle of includes", draw("--root", root).stderr)


if __name__ == "__main__":
    unittest.main()
