#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""first_failure.py finds kernel and command on README.md, and notices an error that has no name, a pass, and a long way."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from first_failure import NAMED, PAGE, kernel_and_lines, wrong_with  # noqa: E402

RIGHT = f"FAIL  rms_norm\n      looks like: {NAMED}: explains 100 %\n"


class FirstFailure(unittest.TestCase):
    def test_the_page_has_the_kernel_and_the_command(self):
        kernel, command, lines = kernel_and_lines(PAGE.read_text(encoding="utf-8"))
        compile(kernel, "broken.py", "exec")
        self.assertEqual(command[:4], ["plumb", "run", "--plugin", "broken.py"])
        self.assertTrue(any(NAMED in line for line in lines), lines)

    def test_another_page_is_an_error(self):
        for page in ("", "    # broken.py\n", "    $ plumb run --plugin broken.py\n"):
            with self.assertRaises(ValueError):
                kernel_and_lines(page)

    def test_what_is_wrong_is_said(self):
        self.assertEqual(wrong_with(1, RIGHT, ["FAIL  rms_n…"], 59, 60), [])
        self.assertEqual(wrong_with(0, RIGHT, [], 59, 60), ["exit code 0: a broken kernel ends with 1"])
        self.assertEqual(wrong_with(1, RIGHT, [], 61, 60), ["longer than 60 s"])
        self.assertEqual(wrong_with(1, RIGHT, ["row 4 of 4"], 59, 60), ["not printed: row 4 of 4"])
        self.assertEqual(wrong_with(1, "FAIL", [], 59, 60), [f"not printed: looks like: {NAMED}"])


if __name__ == "__main__":
    unittest.main()
