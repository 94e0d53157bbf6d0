#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants each defect of host.json in turn, builds plumb, runs the decode steps, and takes it out again.

    python3 faults/unseen/try_host.py CHECKOUT [NAME...]

CHECKOUT is a checkout of its own (git worktree add) with a build in build/sim. A line per defect: its
name, and the first finding or "passed". Exit code 1: one passed.
"""

import json
import pathlib
import subprocess
import sys

BUILD = ["cmake", "--build", "build/sim", "--target", "plumb"]
RUN = ["build/sim/bin/plumb", "run", "--op", "decode_step", "--no-diagnosis", "--json", "", "--goldens", "", "--timeout", "120"]


def planted(source, defect):
    text = source.read_text()
    if text.count(defect["from"]) != 1:
        sys.exit(f"{defect['name']}: its text is not in {defect['file']} once")
    return text.replace(defect["from"], defect["to"])


def finding(checkout):
    built = subprocess.run(BUILD, cwd=checkout, capture_output=True, text=True)
    if built.returncode:
        return f"does not build: {built.stdout[-400:]}"
    ran = subprocess.run(RUN, cwd=checkout, capture_output=True, text=True)
    if ran.returncode == 0:
        return "passed"
    failed = [line for line in ran.stdout.splitlines() if line.startswith("FAIL ")]
    return f"{len(failed)} cases failed: " + " | ".join(line.strip() for line in ran.stdout.splitlines()[:3])


def main():
    checkout, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    passed = 0
    for defect in json.loads(pathlib.Path(__file__).with_name("host.json").read_text()):
        if names and defect["name"] not in names:
            continue
        source = checkout / defect["file"]
        right = source.read_text()
        try:
            source.write_text(planted(source, defect))
            said = finding(checkout)
        finally:
            source.write_text(right)
        passed += said == "passed"
        print(defect["name"], said, sep="  ", flush=True)
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
