#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws rows for an op and prints them as a case file.

    python3 tools/random_rows.py PLUMB OP --toml FILE [--seed 1] [--budget 0.1] [--fixed "placement=copy far_out_token_stride=32"]...
    python3 tools/random_rows.py PLUMB OP --toml FILE --sweep 500 [--seed 1] [--platform sim-sm90]...
    python3 tools/random_rows.py PLUMB OP --toml FILE --cover TABLE [--draws 100] [--most 4]

Each row starts as a row of the op (FILE) with one thing changed on purpose: a stride of its own, rows so far apart that they
lie past 2^32 elements, all strides aligned or with gaps, another constant, or another value of a parameter. Such a value comes
from other rows, or is small, a power of two or its neighbour, a prime, or a number that 2 to 128 do not divide. Up to three other
parameters are drawn as well. A value is drawn more often if few rows have it, so that many pairs of values meet. `plumb` refuses
impossible rows, and measures the others: a row may cost at most `--budget` seconds per platform. With `--fixed`, one row is drawn
for each set of fixed values. Use it for a lazy kernel that `plumb_kill_table --lazy` reports as seen by no row.

With `--cover TABLE` (`plumb_lazy_table`), as many rows are drawn as `--draws` says, and at most `--most` are printed: those that see
most rare lazy kernels of the op that no row has seen so far. A row that is twice as slow counts half.

With `--sweep N`, N rows run on all cores. Only failing rows are printed, with the first line of the failure; a right kernel fails
in none. The last line counts the rows. A row that takes longer than TIMEOUT, or runs out of memory, counts as "dear", not as
failed. Exit code 1: a row failed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import tomllib

CLASSES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 22, 24, 31, 32, 33, 40, 63, 64, 65, 96, 97, 100, 127, 128, 129, 160, 192, 255, 256,
           257, 320, 384, 511, 512, 513, 520, 576, 769, 1020, 1023, 1024, 1025, 1536, 2047, 2048, 2560, 3000, 4095, 4096, 4097, 5120, 6144,
           7168, 8191, 8192, 8193, 8200, 9001, 12289, 16384, 16391, 65537, 70001]  # fmt: skip
UNEVEN = [1, 2, 3, 4, 5, 7, 9, 12, 17, 20, 31, 33, 63, 65, 97, 100, 127, 129, 255, 257, 769, 1020]
GAPS = [1, 3, 8, 16, 56, 64, 128]
REALS = [1e-6, 1e-5, 1e-3, 0.02, 0.0625, 0.3, 1.0, 1.7, 3.5]
NOT_A_BASE = {"trivial", "known_bug", "eager_only"}
NOT_DRAWN = {"name", "why", "tier", "concurrent", "plugin", "trivial", "known_bug", "only", "golden", "eager_only", "seed"}
TRIES = 30  # per row
TIMEOUT = 2  # seconds; a row that takes longer is too dear
# Failure lines of a row that takes too long or runs out of memory.
DEAR = re.compile(r"^timeout: |signal 9|out of memory|out_of_memory|refused to reserve address space")


def rows_of(toml):
    return [row for row in tomllib.loads(toml.read_text()).get("row", []) if row.get("tier") != "full" and not NOT_A_BASE & set(row)]


def ask(plumb, *words):
    return subprocess.run([plumb, *words], capture_output=True, text=True)


class Drawing:
    def __init__(self, plumb, op, toml, seed):
        self.plumb, self.op = plumb, op
        self.random = random.Random(f"{op} {seed}")
        self.rows = rows_of(toml)
        self.defaults = self.parameters()
        self.pools = {name: set(CLASSES) | {value} for name, value in self.defaults.items()}
        self.words = {}
        for row in self.rows:
            for key, value in row.items():
                if key in NOT_DRAWN:
                    continue
                pool = self.words if isinstance(value, str) else self.pools
                pool.setdefault(key, set()).add(value)
        for word, values in self.words.items():
            values.add(None)  # the row's default
        self.strides = self.stride_members()
        self.reals = self.real_members()
        self.used = {}

    def parameters(self):
        text = ask(self.plumb, "show", f"{self.op}/{self.rows[0]['name']}/eager").stdout
        known = dict(re.findall(r"^  (\w+) = (-?\d+)$", text, re.M))
        return {name: int(value) for name, value in known.items()}

    # The error message about an unknown stride lists the strides of this op.
    def stride_members(self):
        page = ask(self.plumb, "list", "--arguments").stdout
        self.section = page.split(f"\n## {self.op}\n", 1)[1].split("\n## ", 1)[0]
        found = {}
        for kind, value in (("gap", 1), ("far", 31)):
            said = ask(self.plumb, "show", f"{self.op}/{self.rows[0]['name']}/eager", "--set", f"{kind}_no_stride={value}").stderr
            names = said.strip().rpartition("there are: ")[2]
            found[kind] = names.split(", ") if names else []
        return found

    # Floors and scales that engines hard-code in their kernels are choices of a contract (DESIGN 19), so they are not drawn.
    def real_members(self):
        names = re.findall(r"^\| `(\w*eps|sm_scale|softmax_scale|head_scale|routed_scaling_factor|post_mult)` \| real", self.section, re.M)
        return sorted(set(names))

    def pick(self, key, values):
        values = list(values)
        weights = [1 / (1 + 4 * self.used.get((key, value), 0)) for value in values]
        return self.random.choices(values, weights)[0]

    # Changes that the rows must cover: each stride alone far and with a gap, all strides aligned, all with gaps, and each
    # parameter several times with another value.
    def wanted(self):
        rows = [{f"far_{member}": 32} for member in self.strides["far"]]
        rows += [{f"gap_{member}": self.random.choice(GAPS), **self.uneven()} for member in self.strides["gap"] for _ in range(2)]
        for align in (8, 8, 8, 64):
            rows.append({f"align_{member}": align for member in self.strides["gap"]} | self.uneven())
        for _ in range(2):
            rows.append({f"gap_{member}": self.random.choice(GAPS) for member in self.strides["gap"]})
        rows += [{member: value} for member in self.reals for value in self.random.sample(REALS, 2)]
        rows += [{name: None} for name in self.pools for _ in range(2)]
        return [row for row in rows if row]

    # One or two parameters with values that are mostly not multiples of 8.
    def uneven(self):
        names = self.random.sample(list(self.pools), min(len(self.pools), self.random.randint(1, 2)))
        return {name: self.random.choice(UNEVEN) for name in names}

    # `fixed`: values of parameters; None means a value from the pool.
    def draw(self, fixed):
        base = self.random.choice(self.rows)
        row = {key: value for key, value in base.items() if key not in NOT_DRAWN}
        for name, value in fixed.items():
            row[name] = self.pick(name, self.pools[name]) if value is None else value
        names = [name for name in [*self.pools, *self.words] if name not in fixed]
        for name in self.random.sample(names, min(len(names), self.random.randint(0, 3))):
            if name in self.words:
                value = self.pick(name, self.words[name])
                row.pop(name, None)
                if value is not None:
                    row[name] = value
            else:
                row[name] = self.pick(name, self.pools[name])
        return row

    def keep(self, row):
        for key, value in row.items():
            self.used[key, value] = self.used.get((key, value), 0) + 1


def text_of(rows, op=None):
    lines = [f'op = "{op}"\n'] if op else []
    for row in rows:
        lines.append("[[row]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in row.items()]
        lines.append("")
    return "\n".join(lines)


# Parses "placement=copy tokens=3 eps=0.3".
def values_of(text, words):
    def value(name, word):
        if name in words:
            return word
        return int(word) if re.fullmatch(r"-?\d+", word) else float(word) if re.fullmatch(r"[-\d.e]+", word) else word

    return {name: value(name, word) for name, word in (pair.split("=", 1) for pair in text.split())}


def outcome_and_line(case):
    lines = [line for failure in case.get("failures", ()) for line in failure["lines"]]
    return ("dear" if any(map(DEAR.search, lines)) else case["outcome"]), (lines or [""])[0]


def tried(plumb, op, row, folder, platforms=()):
    """Runs a row. Returns outcome, seconds on the slowest platform, and the message of a refusal or failure."""
    file, report = folder / f"{row['name']}.toml", folder / f"{row['name']}.json"
    file.write_text(text_of([row], op))
    words = ["--cases", str(file), "--case", f"{op}/*/eager", "--goldens", "", "--json", str(report), "--no-diagnosis", "--timeout", str(TIMEOUT), "-j", "1"]
    said = ask(plumb, "run", *words, *(word for platform in platforms for word in ("--platform", platform)))
    if said.returncode == 2:
        return "refused", 0, said.stderr
    cases = json.loads(report.read_text())["cases"]
    bad = [outcome_and_line(case) for case in cases if case["outcome"] != "passed"]
    bad.sort(key=lambda one: one[0] != "failed")  # a failure on one platform counts more than "dear" on another
    outcome, line = (bad or [("passed", "")])[0]
    return outcome, max(case["seconds"] for case in cases), line


def outcome_of(plumb, op, row, must_keep, folder, platforms=()):
    """As tried(). Unless must_keep, strides that change nothing in this row are dropped from it."""
    while True:
        outcome, seconds, said = tried(plumb, op, row, folder, platforms)
        useless = re.search(r"(\w+) = \d+ changes nothing", said)
        if not useless or must_keep:
            return outcome, seconds, said
        del row[useless[1]]


def named(name, drawn):
    return {"name": name, "why": "Drawn by tools/random_rows.py: another row of this op with strides, a size or a constant changed on purpose, and some other parameters drawn.", "eager_only": True, "golden": False, **drawn}


def sweep(drawing, count, platforms, folder):
    """Runs `count` rows with the changes of wanted(), repeated as needed. Returns the number of failed rows."""
    counts = dict.fromkeys(("passed", "failed", "untrusted", "refused", "dear"), 0)
    ran = ("passed", "failed", "untrusted")

    def outcome_of_drawn(number, drawn):
        row = named(f"sweep_{number}", drawn)
        outcome, _, said = outcome_of(drawing.plumb, drawing.op, row, False, folder, platforms)
        return row, outcome, said

    def take(task):
        row, found, said = task.result()
        counts[found] = counts.get(found, 0) + 1
        if found == "failed":
            print(f"# {said}\n{text_of([row])}", flush=True)
        elif found == "passed":
            drawing.keep({key: value for key, value in row.items() if key not in NOT_DRAWN})

    cores = os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        running, asked = set(), []
        for number in range(TRIES * count):
            asked = asked or drawing.wanted()
            running.add(pool.submit(outcome_of_drawn, number, drawing.draw(asked.pop())))
            if len(running) > 2 * cores:
                done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for task in done:
                    take(task)
            if sum(counts[outcome] for outcome in ran) >= count:
                break
        for task in running:
            take(task)
    print(f"{drawing.op}: " + ", ".join(f"{number} {outcome}" for outcome, number in counts.items()), flush=True)
    return counts["failed"]


def drawn_rows(drawing, count, budget, prefix, folder):
    """Draws `count` rows with the changes of wanted(). Returns the seconds and the row of those that pass within the budget."""

    def measured(number, drawn):
        row = named(f"{prefix}_{number}", drawn)
        outcome, seconds, said = outcome_of(drawing.plumb, drawing.op, row, False, folder)
        if outcome == "failed":
            print(f"failed: {row}: {said}", file=sys.stderr)
        return (seconds, row) if outcome == "passed" and seconds <= budget else None

    changes = []
    words = [{word: value} for word, values in drawing.words.items() for value in values if value is not None]
    while len(changes) < count:
        changes += drawing.wanted() + [change for change in words for _ in range(4)]
    drawing.random.shuffle(changes)
    drawn = [drawing.draw(fixed) for fixed in changes[:count]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [one for one in pool.map(measured, range(count), drawn) if one]


def lines_of_table(table, *words):
    """Yields the name of each rare lazy kernel, and the names of the rows that see it. Excused kernels are left out."""
    for line in ask(table, "--rare", *words).stdout.splitlines():
        found = re.fullmatch(r"(\S+)  \w+  \d+ rows?[:,] ?(.*)", line)
        if found and not found[2].startswith(": "):
            yield found[1], set(re.findall(r"(\w+)/\w+ [\w-]+", found[2])) or ({"?"} if "1 row, in which" in line else set())


def cover(drawing, arguments, folder):
    unseen = [name for name, rows in lines_of_table(arguments.cover, f"{drawing.op}.") if name.startswith(f"{drawing.op}.") and not rows]
    drawn = drawn_rows(drawing, arguments.draws, arguments.budget, arguments.prefix, folder)
    if not unseen or not drawn:
        return
    file = folder / "drawn.toml"
    file.write_text(text_of([row for _, row in drawn], drawing.op))
    sees = {}
    for name, rows in lines_of_table(arguments.cover, "--all", "--cases", str(file), *unseen):
        for row in rows:
            sees.setdefault(row, set()).add(name)
    left = set(unseen)
    for _ in range(arguments.most):
        value = {row["name"]: len(sees.get(row["name"], set()) & left) / max(seconds, 0.01) for seconds, row in drawn}
        _, best = max(drawn, key=lambda one: value[one[1]["name"]])
        new = sees.get(best["name"], set()) & left
        if not new:
            break
        left -= new
        print(f"{best['name']} sees {len(new)}: {' '.join(sorted(new))}", file=sys.stderr)
        print(text_of([best]), flush=True)
    print(f"{drawing.op}: {len(unseen)} unseen, {len(left)} left: {' '.join(sorted(left))}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb"), parser.add_argument("op"), parser.add_argument("--toml", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=0.1), parser.add_argument("--prefix", default="random")
    parser.add_argument("--fixed", action="append", default=[])
    parser.add_argument("--cover"), parser.add_argument("--draws", type=int, default=100), parser.add_argument("--most", type=int, default=4)
    parser.add_argument("--sweep", type=int), parser.add_argument("--platform", action="append", default=[])
    arguments = parser.parse_args()
    drawing = Drawing(arguments.plumb, arguments.op, arguments.toml, arguments.seed)
    kept, failed = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if arguments.sweep is not None:
            return 1 if sweep(drawing, arguments.sweep, arguments.platform, folder) else 0
        if arguments.cover is not None:
            return cover(drawing, arguments, folder)
        for fixed in [values_of(text, drawing.words) for text in arguments.fixed] or drawing.wanted():
            said = "each row failed, took too long or lost its strides"
            for _ in range(TRIES):
                drawn = drawing.draw(fixed)
                row = named(f"{arguments.prefix}_{len(kept)}", drawn)
                asked = [key for key in fixed if key.startswith(("far_", "gap_", "align_"))]
                outcome, seconds, refusal = outcome_of(arguments.plumb, arguments.op, row, len(asked) == 1, folder)
                if asked and not set(asked) & set(row):
                    break
                if outcome == "failed":
                    failed.append(row)
                elif outcome == "passed" and seconds <= arguments.budget:
                    drawing.keep(drawn)
                    kept.append(row)
                    print(text_of([row]), flush=True)
                    break
                said = refusal.strip() or said
            else:
                if arguments.fixed:
                    print(f"no row with {fixed}: {said}", file=sys.stderr)
    for row in failed:  # the kernel or the row is wrong
        print(f"failed: {row}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
