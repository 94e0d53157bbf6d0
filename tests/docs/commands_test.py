#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""commands.py finds commands that fail, marks without a reason, and marks that fit nothing."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("commands.py")


class Commands(unittest.TestCase):
    def check(self, page, program='echo "$@"; [ "$1" != fails ]', words=()):
        """Runs the page with a shell script in place of plumb."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "plumb").write_text("#!/bin/sh\n" + program + "\n")
        (root / "plumb").chmod(0o755)
        (root / "page.md").write_text(page)
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--program", root / "plumb", "--plugin", root / "plumb",
                               "--root", root, *words, root / "page.md"], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_commands_of_both_kinds_of_block_run(self):
        code, out = self.check("text\n\n    plumb a\n    $ plumb b \\\n      c\n    output\n\n```sh\nplumb d  # why\n```\n")
        self.assertEqual((code, out), (0, "3 commands run, 0 not run, 0 wrong\n"))

    def test_a_failing_command_is_named(self):
        code, out = self.check("text\n\n    plumb fails here\n")
        self.assertEqual(code, 1)
        self.assertIn("page.md:3: plumb fails here\n    exit code 1, expected 0", out)

    def test_an_expected_exit_code_is_demanded(self):
        mark = "<!-- commands\nexit 1 (plumb fails): why\n-->\n\n"
        self.assertEqual(self.check(mark + "    plumb fails\n")[0], 0)
        self.assertEqual(self.check(mark.replace("exit 1", "exit 2") + "    plumb fails\n")[0], 1)

    def test_a_marked_command_is_not_run(self):
        code, out = self.check("<!-- commands\nnot run (plumb fails): minutes\n-->\n\n    plumb fails\n    plumb a\n")
        self.assertEqual((code, out), (0, "1 commands run, 1 not run, 0 wrong\n"))

    def test_a_mark_needs_a_reason_and_a_command(self):
        self.assertIn("needs a reason", self.check("<!-- commands\nnot run:\n-->\n\n    plumb a\n")[1])
        self.assertIn("fits no command", self.check("<!-- commands\nnot run (plumb b): x\n-->\n\n    plumb a\n")[1])
        self.assertIn("no code block follows", self.check("<!-- commands\nnot run: x\n-->\n\ntext\n\n    plumb a\n")[1])
        self.assertIn("neither", self.check("<!-- commands\nskipped: x\n-->\n\n    plumb a\n")[1])

    def test_a_hang_is_a_failure(self):
        self.assertIn("not done after", self.check("x\n\n    plumb a\n", "exec sleep 60", ["--seconds", "0.5"])[1])

    def test_nothing_writes_into_the_store(self):
        self.assertIn("would write into the store", self.check("x\n\n    plumb golden regen --reason x\n")[1])

    def test_a_page_without_commands_proves_nothing(self):
        self.assertEqual(self.check("text\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
