#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_rows.py --cover reads who sees which rare lazy kernel, and prints the rows that see most of what no row has seen."""
import contextlib
import io
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import random_rows  # noqa: E402

TABLE = """\
op.x.nan  op  2 rows: one/eager sim-sm90, two/full_graph sim-gfx942
op.n.dense  op  0 rows:\x20
op.n.common  op  1 row, in which it ended with signal 11
op.m.common  op  0 rows: : a bound
1 of 4 are seen, 1 excused
"""


def answering(text):
    return mock.patch.object(random_rows, "ask", lambda *words: types.SimpleNamespace(stdout=text))


class Cover(unittest.TestCase):
    def test_the_table_is_read_without_excused_kernels(self):
        with answering(TABLE):
            found = dict(random_rows.lines_of_table("table", "op."))
        self.assertEqual(found, {"op.x.nan": {"one", "two"}, "op.n.dense": set(), "op.n.common": {"?"}})

    def printed(self, seen, most):
        drawn = [(seconds, {"name": name}) for name, seconds in (("a", 0.02), ("b", 0.02), ("slow", 0.4))]
        before = "".join(f"op.k{i}.dense  op  0 rows: \n" for i in range(5))
        after = "".join(f"op.k{i}.dense  op  {len(rows)} rows: {', '.join(f'{row}/eager sim-sm90' for row in rows)}\n" for i, rows in seen.items())
        answers = iter([before, after])
        arguments = types.SimpleNamespace(cover="table", draws=3, budget=1, prefix="rare", most=most)
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.object(random_rows, "ask", lambda *words: types.SimpleNamespace(stdout=next(answers))),
            mock.patch.object(random_rows, "drawn_rows", lambda *words: drawn),
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            random_rows.cover(types.SimpleNamespace(op="op"), arguments, pathlib.Path(folder))
        return [line for line in out.getvalue().splitlines() if line.startswith("name")], err.getvalue().splitlines()[-1]

    def test_rows_are_taken_until_they_see_nothing_new(self):
        names, last = self.printed({0: ["a", "slow"], 1: ["a", "slow"], 2: ["b", "slow"], 3: ["slow"], 4: []}, 4)
        self.assertEqual(names, ['name = "a"', 'name = "b"', 'name = "slow"'])
        self.assertEqual(last, "op: 5 unseen, 1 left: op.k4.dense")

    def test_no_more_rows_than_wanted(self):
        names, last = self.printed({0: ["a"], 1: ["a"], 2: ["b"], 3: [], 4: []}, 1)
        self.assertEqual(names, ['name = "a"'])
        self.assertTrue(last.startswith("op: 5 unseen, 3 left: "), last)


if __name__ == "__main__":
    unittest.main()
