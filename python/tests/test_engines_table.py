# SPDX-License-Identifier: Apache-2.0
"""examples/engines/table.py writes a row per release and op, and refuses failures without a note."""

import contextlib
import importlib.util
import io
import json
import os
import tempfile
import unittest
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "examples/engines/table.py"
SPEC = importlib.util.spec_from_file_location("engines_table", FILE)
table = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(table)

NOTE = '[[note]]\nreleases = ["fast-1.2"]\nops = ["rms_norm"]\nsays = "defect 1"\n'
STOPPED = {"why": "interrupted by SIGTERM", "done": 1, "cases": 2}


def case(name, outcome, reason=""):
    return {"case": name, "platform": "sim-sm90", "outcome": outcome, "reason": reason}


FAILED = case("rms_norm/one_token/eager", "failed")
PASSED = case("rms_norm/hidden_1/eager", "passed")


class EnginesTable(unittest.TestCase):
    def run_reports(self, reports, notes, missing=()):
        """Exit code, printed text and error lines. `reports`: JSON by file name, passed in this order."""
        with tempfile.TemporaryDirectory() as folder:
            for name, report in reports.items():
                Path(folder, name).write_text(json.dumps(report))
                os.utime(Path(folder, name), (0, 86400 * 365))
            Path(folder, "notes.toml").write_text(notes)
            out, error = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                names = [f"{folder}/{name}" for name in (*reports, *missing)]
                code = table.main([*names, "--notes", f"{folder}/notes.toml"])
        return code, out.getvalue(), error.getvalue()

    def run_table(self, cases, notes):
        return self.run_reports({"fast-1.2.json": {"cases": cases}}, notes)

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
        self.assertEqual((code, error), (1, "the note on fast-1.2 rms_norm explains no failure\n"))

    def test_each_release_and_op_of_a_note_needs_a_failure(self):
        note = '[[note]]\nreleases = ["fast-1.2", "fast-1.3"]\nops = ["rms_norm", "hc_head"]\nsays = "defect 1"\n'
        code, _, error = self.run_table([FAILED], note)
        names = "fast-1.2 hc_head", "fast-1.3 rms_norm", "fast-1.3 hc_head"
        lines = [f"the note on {name} explains no failure" for name in names]
        self.assertEqual((code, error.splitlines()), (1, lines))

    def test_note_does_not_explain_the_next_release(self):
        reports = {"fast-1.2.json": {"cases": [FAILED]}, "fast-1.2.1.json": {"cases": [FAILED]}}
        code, _, error = self.run_reports(reports, NOTE)
        self.assertEqual((code, error), (1, "fast-1.2.1 rms_norm: 1 cases fail, and no note says why\n"))

    def test_two_notes_on_one_failure_end_with_1(self):
        code, _, error = self.run_table([FAILED], NOTE + NOTE)
        self.assertEqual((code, error), (1, "fast-1.2 rms_norm: 2 notes say why it fails\n"))

    def test_supplement_replaces_the_first_report_in_either_order(self):
        first, again = ("fast-1.2.json", {"cases": [FAILED]}), ("fast-1.2--again.json", {"cases": [PASSED]})
        for reports in ([first, again], [again, first]):
            code, out, _ = self.run_reports(dict(reports), "note = []")
            self.assertEqual(code, 0)
            self.assertIn("| fast-1.2 | sim-sm90 | rms_norm | 1 | 0 | passed |", out)

    def test_pair_of_an_interrupted_report_ends_with_1(self):
        code, out, error = self.run_reports({"fast-1.2.json": {"cases": [PASSED], "interrupted": STOPPED}}, "note = []")
        line = "fast-1.2 rms_norm: fast-1.2.json was interrupted, and no supplement has this op\n"
        self.assertEqual((code, out, error), (1, "", line))

    def test_supplement_replaces_a_pair_of_an_interrupted_report(self):
        reports = {
            "fast-1.2.json": {"cases": [FAILED], "interrupted": STOPPED},
            "fast-1.2--again.json": {"cases": [PASSED]},
        }
        code, out, _ = self.run_reports(reports, "note = []")
        self.assertEqual(code, 0)
        self.assertIn("| fast-1.2 | sim-sm90 | rms_norm | 1 | 0 | passed |", out)

    def test_date_is_the_day_on_which_the_report_was_written(self):
        _, out, _ = self.run_table([PASSED], "note = []")
        self.assertIn("| passed | 1971-01-01 |", out)

    def test_missing_report_ends_with_2(self):
        code, _, error = self.run_reports({}, NOTE, ["no-such.json"])
        self.assertEqual(code, 2)
        self.assertIn("no-such.json", error)


if __name__ == "__main__":
    unittest.main()
