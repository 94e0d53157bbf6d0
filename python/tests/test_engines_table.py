# SPDX-License-Identifier: Apache-2.0
"""examples/engines/table.py: a row for each release and op, and no failure without a note."""

import contextlib
import importlib.util
import io
import json
import tempfile
import unittest
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "examples/engines/table.py"
SPEC = importlib.util.spec_from_file_location("engines_table", FILE)
table = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(table)

NOTE = '[[note]]\nrelease = "fast-1.*"\nop = "rms_norm"\nsays = "defect 1"\n'


def case(name, outcome, reason=""):
    return {"case": name, "platform": "sim-sm90", "outcome": outcome, "reason": reason}


FAILED = case("rms_norm/one_token/eager", "failed")
PASSED = case("rms_norm/hidden_1/eager", "passed")


class EnginesTable(unittest.TestCase):
    def run_table(self, cases, notes, report="fast-1.2.json"):
        """The exit code, what was printed and the error lines."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "fast-1.2.json").write_text(json.dumps({"cases": cases}))
            Path(folder, "notes.toml").write_text(notes)
            out, error = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                code = table.main([f"{folder}/{report}", "--notes", f"{folder}/notes.toml"])
        return code, out.getvalue(), error.getvalue()

    def test_row_has_counts_and_note(self):
        others = [case("pack_seq/a/eager", "skipped", "fast lacks the op"), case("hc_head/a/eager", "skipped", "4 streams")]
        code, out, _ = self.run_table([FAILED, PASSED, *others], NOTE)
        self.assertEqual(code, 0)
        rows = [line.rsplit("|", 2)[0] for line in out.splitlines() if line.startswith("| fast")]
        self.assertEqual(
            rows,
            [
                "| fast-1.2 | sim-sm90 | hc_head | 0 | 0 | not taken: 4 streams ",
                "| fast-1.2 | sim-sm90 | rms_norm | 1 | 1 | defect 1 ",
            ],
        )

    def test_failure_without_note_ends_with_1(self):
        code, out, error = self.run_table([FAILED], "note = []")
        self.assertEqual((code, out, error), (1, "", "fast-1.2 rms_norm: 1 cases fail, and no note says why\n"))

    def test_note_without_failure_ends_with_1(self):
        code, _, error = self.run_table([PASSED], NOTE)
        self.assertEqual(code, 1)
        self.assertIn("the note on fast-1.* rms_norm explains no failure", error)

    def test_of_two_reports_on_a_pair_the_later_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "fast-1.2.json").write_text(json.dumps({"cases": [FAILED]}))
            Path(folder, "fast-1.2--again.json").write_text(json.dumps({"cases": [PASSED]}))
            Path(folder, "notes.toml").write_text("note = []")
            reports = [f"{folder}/fast-1.2.json", f"{folder}/fast-1.2--again.json"]
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = table.main([*reports, "--notes", f"{folder}/notes.toml"])
        self.assertEqual(code, 0)
        self.assertIn("| fast-1.2 | sim-sm90 | rms_norm | 1 | 0 | passed |", out.getvalue())

    def test_missing_report_ends_with_2(self):
        code, _, error = self.run_table([PASSED], NOTE, "no-such.json")
        self.assertEqual(code, 2)
        self.assertIn("no-such.json", error)


if __name__ == "__main__":
    unittest.main()
