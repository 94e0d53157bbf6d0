#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do two builds of plumb compute the same? Compares reports of plumb run, case by case.

same_results.py A.json B.json compares two files, or two folders of them, to the last digit of every
margin; times, and what is said about goldens, differ between compilers. With --part, B may have fewer
cases than A. Exit code 1 names the first differences. same_results.py --covered N CELLS FOLDER: do the reports of a folder have CELLS cells of
op, platform and scenario (eager, full_graph), each with at least N cases that compared at least one element?
"""
import json
import pathlib
import sys

TIMES_AND_TOOLCHAIN = ("seconds", "golden")


def cases(path):
    path = pathlib.Path(path)
    found = {}
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        for case in json.loads(file.read_text())["cases"]:
            key = f"{case['case']} {case['platform']}"
            found[key] = {k: v for k, v in case.items() if k not in TIMES_AND_TOOLCHAIN}
    return found


def compare(a, b, part=False):
    a, b = cases(a), cases(b)
    if not a or not b:
        return [f"the {'second' if a else 'first'} report has no case"]
    if part:
        a = {key: case for key, case in a.items() if key in b}
    different = [f"{key}\n  {a.get(key)}\n  {b.get(key)}" for key in sorted(a | b) if a.get(key) != b.get(key)]
    print(f"{len(a)} cases, {len(different)} differ")
    return different


def thin_cells(least, wanted, folder):
    thin, cells = [], 0
    for file in sorted(pathlib.Path(folder).glob("*.json")):
        for op, scenarios in json.loads(file.read_text())["coverage"].items():
            if op == "decode_step":  # modes of decode steps are not counted as cells
                continue
            for scenario in ("eager", "full_graph"):
                for platform, count in scenarios.get(scenario, {file.stem: 0}).items():
                    cells += 1
                    if count < least:
                        thin.append(f"{op} {scenario} {platform}: {count} cases compared an element, wanted {least}")
    print(f"{cells - len(thin)} of {cells} cells are covered")
    return thin if cells == wanted else thin + [f"{cells} cells, wanted {wanted}"]


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "--covered":
        wrong = thin_cells(int(arguments[1]), int(arguments[2]), arguments[3])
    elif len(arguments) == 3 and arguments[0] == "--part":
        wrong = compare(*arguments[1:], part=True)
    elif len(arguments) == 2:
        wrong = compare(*arguments)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


sys.exit(main(sys.argv[1:]))
