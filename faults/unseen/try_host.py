#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants each defect of host.json in turn, builds plumb, runs the decode steps, and removes the defect.

    python3 faults/unseen/try_host.py CHECKOUT [NAME...]
    python3 faults/unseen/try_host.py --check CHECKOUT

--check: only tests that each defect's text is in the sources.
CHECKOUT: a separate checkout (git worktree add) with a build in build/sim, since its files are changed.
Prints a line per defect: its name, and the first finding or "passed". Exit code 1: a defect passed;
2: a defect could not be tried.
"""

import argparse
import json
import pathlib
import subprocess
import sys

BUILD = ["cmake", "--build", "build/sim", "--target", "plumb"]
RUN = ["build/sim/bin/plumb", "run", "--op", "decode_step", "--no-diagnosis", "--json", "", "--goldens", "", "--timeout", "120"]


def planted(source, defect):
    text = source.read_text()
    if text.count(defect["from"]) != 1:
        print(f"{defect['name']}: its text is not in {defect['file']} once", file=sys.stderr)
        sys.exit(2)
    return text.replace(defect["from"], defect["to"])


def finding(checkout):
    """0 and "passed", 1 and the first finding, or 2 and the reason why there is no verdict."""
    built = subprocess.run(BUILD, cwd=checkout, capture_output=True, text=True)
    if built.returncode:
        return 2, f"does not build: {built.stdout[-400:]}"
    ran = subprocess.run(RUN, cwd=checkout, capture_output=True, text=True)
    if ran.returncode == 0:
        return 0, "passed"
    failed = [line for line in ran.stdout.splitlines() if line.startswith("FAIL ")]
    if not failed:
        return 2, f"no verdict, exit code {ran.returncode}: {ran.stderr[-400:]}"
    return 1, f"{len(failed)} cases failed: " + " | ".join(line.strip() for line in ran.stdout.splitlines()[:3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only test that each text is in the sources")
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    defects = json.loads(pathlib.Path(__file__).with_name("host.json").read_text())
    unknown = set(arguments.names) - {defect["name"] for defect in defects}
    if unknown:
        parser.error(f"no defect {min(unknown)}")
    if arguments.names:
        defects = [defect for defect in defects if defect["name"] in arguments.names]
    missing = [defect["file"] for defect in defects if not (arguments.checkout / defect["file"]).is_file()]
    if missing:
        parser.error(f"{arguments.checkout} has no {missing[0]}")
    if arguments.check:
        for defect in defects:
            planted(arguments.checkout / defect["file"], defect)
        print(f"{len(defects)} defects can be planted")
        return 0
    passed = untried = 0
    for defect in defects:
        source = arguments.checkout / defect["file"]
        right = source.read_text()
        try:
            source.write_text(planted(source, defect))
            code, said = finding(arguments.checkout)
        finally:
            source.write_text(right)
        passed += code == 0
        untried += code == 2
        print(defect["name"], said, sep="  ", flush=True)
    return 2 if untried else 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
