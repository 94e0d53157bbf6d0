#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""containerfile.py reads the Containerfiles of packaging/, and refuses wrong ones with file and line."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("containerfile.py")
PACKAGING = SCRIPT.resolve().parents[2] / "packaging"


def check(*files):
    done = subprocess.run([sys.executable, "-B", SCRIPT, "check", *files], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Containerfile(unittest.TestCase):
    def test_those_of_packaging_can_be_read(self):
        code, out, err = check(PACKAGING / "Containerfile", PACKAGING / "Containerfile.cuda")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"Containerfile: \d+ instructions\n.*Containerfile\.cuda: \d+ instructions\n")
        self.assertIn("UNTESTED", (PACKAGING / "Containerfile.cuda").read_text())

    def refused(self, text, says):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "Containerfile")
            file.write_text(text)
            code, _, err = check(file)
            self.assertEqual((code, err.count("\n")), (2, 1), err)
            self.assertIn(says, err)

    def test_wrong_ones_are_refused_with_their_line(self):
        image = "FROM debian:bookworm\n"
        self.refused("", "no FROM")
        self.refused("RUN true\n", "Containerfile:1: RUN in front of FROM")
        self.refused("FROM debian\n", "FROM image:tag")
        self.refused(image + "# why\nRUNN true\n", "Containerfile:3: RUNN is none of")
        self.refused(image + "RUN true && \\\n  (false\n", "Containerfile:2: ")
        self.refused(image + "RUN true \\\n", "the last line is continued")
        self.refused(image + "RUN\n", "RUN of nothing")
        self.refused(image + "ENV A B\n", "ENV NAME=VALUE")
        self.refused(image + "COPY a\n", "COPY of what")
        self.refused(image + "COPY --from=build a b\n", "no stage in front is named build")
        self.refused(image + 'ENTRYPOINT plumb\n', "ENTRYPOINT is no list of texts")

    def test_what_cannot_be_run_here_is_refused_before_anything_is_done(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", SCRIPT, "run", PACKAGING / "Containerfile.cuda", "--context", folder,
                                   "--root", f"{folder}/root"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("one stage FROM debian:SUITE can be run here", done.stderr)
            self.assertFalse(pathlib.Path(folder, "root").exists())


if __name__ == "__main__":
    unittest.main()
