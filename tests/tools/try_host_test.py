#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each defect of faults/unseen/host.json can be planted in the sources. One that cannot is named."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "faults/unseen/try_host.py"


def check(checkout):
    return subprocess.run([sys.executable, "-B", TOOL, "--check", checkout], capture_output=True, text=True)


class TryHost(unittest.TestCase):
    def test_each_defect_can_be_planted(self):
        done = check(ROOT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^[1-9]\d* defects can be planted\n$")

    def test_a_defect_whose_text_has_changed_is_named(self):
        defects = json.loads(TOOL.with_name("host.json").read_text())
        first = defects[0]
        with tempfile.TemporaryDirectory() as folder:
            for file in {defect["file"] for defect in defects}:
                copy = pathlib.Path(folder, file)
                copy.parent.mkdir(parents=True, exist_ok=True)
                text = (ROOT / file).read_text()
                copy.write_text(text.replace(first["from"], "") if file == first["file"] else text)
            done = check(folder)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"{first['name']}: its text is not in {first['file']} once\n")


if __name__ == "__main__":
    unittest.main()
