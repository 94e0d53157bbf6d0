# SPDX-License-Identifier: Apache-2.0
"""The fidelity suite: every op in numpy, from published sources and with no function of plumb's.

    python python/fidelity/suite.py [--tier default] [--platform sim-sm90] [FAMILY | FAMILY::FUNCTION]...

Each function is a kernel that is right under its declared contract. So a failed case is a false alarm of plumb or an
error in the function. Every op has at least one function. Exit code 0: all selected cases passed, and the whole suite
covers all ops.
"""

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import plumb_kernels  # noqa: E402
from plumb_kernels._kernels import kernels_of  # noqa: E402

FAMILIES = ("norm", "hyper_connection", "sparse_mla", "cache", "metadata", "mla_metadata", "index_maps", "compressor", "indexer", "top_k", "router", "quantization")


def kernels(family):
    return kernels_of(vars(importlib.import_module(f"{family}_kernels")).values())


def selected(words):
    for word in words or FAMILIES:
        family, _, name = word.partition("::")
        for kernel in kernels(family):
            if name in ("", kernel.name):
                yield family, kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kernels", nargs="*", metavar="FAMILY[::FUNCTION]")
    parser.add_argument("--tier", default="default")
    parser.add_argument("--platform", action="append")
    parser.add_argument("--jobs", type=int)
    chosen = parser.parse_args()
    wrong, ops = 0, set()
    for family, kernel in selected(chosen.kernels):
        file = f"{HERE / family}_kernels.py::{kernel.name}"
        report = plumb_kernels.run(file, op=kernel.op, tier=chosen.tier, platform=chosen.platform, jobs=chosen.jobs)
        # Compositions are left out, because they also run plain ops, which belong to other functions.
        outcomes = [one.outcome for one in report.cases if not one.case.endswith("/composition")]
        good = report.passed and "skipped" not in outcomes
        wrong += not good
        ops.add(kernel.op)
        print(f"{'ok  ' if good else 'FAIL'}  {kernel.op}  {kernel.name}  {kernel.contract}  {outcomes.count('passed')} of {len(outcomes)}", flush=True)
        if not good:
            print(report, flush=True)
    missing = [] if chosen.kernels else sorted(set(plumb_kernels.ops()) - ops)
    if missing:
        print(f"FAIL  without a function: {', '.join(missing)}")
    return 1 if wrong or missing or not ops else 0


if __name__ == "__main__":
    sys.exit(main())
