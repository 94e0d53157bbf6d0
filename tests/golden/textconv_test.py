#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks that git diff shows numbers of goldens: in a temporary repository, with the .gitattributes of this one and the git config
# line of docs/goldens.md.
#   textconv_test.py PLUMB SOURCE     the program, and the root of this repository
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUMB, SOURCE = "", ""
CASE = "mhc_pre/equal_logits"


class Textconv(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "HOME": self.folder, "GIT_CONFIG_NOSYSTEM": "1"}
        for name in [name for name in self.environment if name.startswith("GIT_") and name != "GIT_CONFIG_NOSYSTEM"]:
            del self.environment[name]
        self.git("init", "-q")
        shutil.copy(os.path.join(SOURCE, ".gitattributes"), self.folder)
        for platform in ("sim-sm90", "sim-gfx942"):
            subprocess.run([PLUMB, "golden", "regen", "--platform", platform, "--case", CASE, "--goldens", self.path("golden"),
                            "--reason", "a test"], check=True, capture_output=True)
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "goldens")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def git(self, *words, code=0):
        done = subprocess.run(["git", *words], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def configure(self):
        with open(os.path.join(SOURCE, "docs", "goldens.md")) as page:
            line = re.search(r"^    (git config diff\.plumb-golden\.textconv .*)$", page.read(), re.M)[1]
        subprocess.run(line.replace('"plumb ', f'"{PLUMB} '), shell=True, check=True, cwd=self.folder, env=self.environment)

    def shown(self, path, code=0):
        done = subprocess.run([PLUMB, "golden", "show", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def test_without_the_line_git_sees_bytes(self):
        shutil.copy(self.path("golden", "sim-gfx942", "mhc_pre.h5"), self.path("golden", "sim-sm90", "mhc_pre.h5"))
        self.assertIn("Binary files", self.git("diff"))

    def test_a_moved_golden_is_a_diff_of_numbers(self):
        self.configure()
        self.assertEqual(self.git("diff"), "")
        shutil.copy(self.path("golden", "sim-gfx942", "mhc_pre.h5"), self.path("golden", "sim-sm90", "mhc_pre.h5"))
        diff = self.git("diff", "--", "golden/sim-sm90/mhc_pre.h5")
        self.assertNotIn("Binary files", diff)
        self.assertIn("-goldens of mhc_pre on sim-sm90 (simulated)", diff)
        removed = set(re.findall(r"^-    row (\d+, \d+-\d+): ", diff, re.M))
        added = set(re.findall(r"^\+    row (\d+, \d+-\d+): ", diff, re.M))
        self.assertTrue(removed)
        self.assertEqual(removed, added)
        self.assertRegex(diff, r"(?m)^-    row \d+, \d+-\d+: .*0\.456118584")
        self.assertRegex(diff, r"(?m)^\+    row \d+, \d+-\d+: .*0\.456118375")
        self.assertLess(len(diff), len(self.shown(self.path("golden", "sim-sm90", "mhc_pre.h5"))[0]), "what stayed is left out")

    def test_the_text_is_always_the_same_and_has_all_that_a_golden_has(self):
        path = self.path("golden", "sim-sm90", "mhc_pre.h5")
        text = self.shown(path)[0]
        self.assertEqual(self.shown(path)[0], text)
        for part in ("schema 2\n", "\nresults ", "\nhistory: ", f"\n{CASE}/eager\n", "  compiler: ", "  input ", "  output post f32 [",
                     "    norm ", "    projections 3: ", " xxh3 "):
            self.assertIn(part, text)

    def test_files_that_are_no_goldens_are_refused_in_one_line(self):
        with open(self.path("golden", "sim-sm90", "mhc_pre.h5"), "rb") as file:
            whole = file.read()
        for name, content in (("text.h5", b"no HDF5"), ("empty.h5", b""), ("half.h5", whole[:len(whole) // 2])):
            with open(self.path(name), "wb") as file:
                file.write(content)
            out, error = self.shown(self.path(name), code=2)
            self.assertEqual(out, "")
            self.assertEqual(error.count("\n"), 1)
            self.assertIn(name + ": ", error)
        self.assertIn("no such file", self.shown(self.path("missing.h5"), code=2)[1])


if __name__ == "__main__":
    PLUMB, SOURCE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
