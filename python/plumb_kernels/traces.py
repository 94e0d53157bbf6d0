# SPDX-License-Identifier: Apache-2.0
"""Records the calls of an engine, for `plumb judge TRACE`. docs/traces.md has the format.

    trace = traces.Trace("recording", provenance={"engine": "vllm", "version": "0.33.0"})
    with trace.step(0) as step:
        call = step.begin("rms_norm", layer=2, before={"x": x, "weight": weight}, scalars={"eps": 1e-6})
        out = norm(x)
        call.end({"out": out})

`record` puts this around functions of an engine while it runs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from ._collectives import collective_taps
from ._environment import from_environment
from ._recorder import Recorder, Tap, record
from ._run import plumb_program
from ._shadow import Shadow, ShadowReport
from ._trace_tensors import BadTrace, Described
from ._trace_writer import Call, Step, Trace

__all__ = [
    "BadTrace", "Call", "Described", "Recorder", "Shadow", "ShadowReport", "Step", "Tap", "Trace", "TraceReport",
    "collective_taps", "from_environment", "judge", "record",
]  # fmt: skip


@dataclasses.dataclass(frozen=True, repr=False)
class TraceReport:
    """The result of plumb judge for a trace. `summary` is its JSON report."""

    text: str
    summary: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        return self.summary["exit_code"] == 0

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.text.rstrip("\n")


def judge(
    trace: str | os.PathLike[str], *, call: str | None = None, ops: Iterable[str | os.PathLike[str]] = (),
    profiles: Iterable[str | os.PathLike[str]] = (),
) -> TraceReport:  # fmt: skip
    """Judges the calls of a trace, or only the call "RANK/STEP/NUMBER".

    `ops`: files that declare ops. `profiles`: files or folders that say what an engine's kernels promise.

    Raises BadTrace for a trace that cannot be read, or if no call could be judged.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        words = [plumb_program(), "judge", os.fspath(trace), "--json", report]
        words += ["--call", call] if call else []
        for option, files in (("--ops", ops), ("--profile", profiles)):
            for file in files:
                words += [option, os.fspath(file)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise BadTrace(done.stderr.strip().removeprefix("plumb: ") or f"plumb judge ended with {done.returncode}")
        with open(report, encoding="utf-8") as file:
            return TraceReport(done.stdout, json.load(file))
