# SPDX-License-Identifier: Apache-2.0
"""run(): runs the cases of @kernel functions, in the program plumb or in this process."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _plumb
from ._kernels import BadKernel, Kernel, kernels_of

__all__ = ["CannotRun", "CaseResult", "RunReport", "plumb_program", "run"]

_SIMULATED = ("sim-sm90", "sim-gfx942", "sim-gfx950")


class CannotRun(RuntimeError):
    """No case ran. The message is the reason, in one line."""


@dataclasses.dataclass(frozen=True, repr=False)
class CaseResult:
    """One case on one platform. `outcome`: passed, failed, skipped, untrusted or known_bug."""

    case: str
    platform: str
    outcome: str
    text: str  # plumb's text: errors, their places, and the line that repeats the case
    reason: str  # why the outcome is neither passed nor failed
    reproduce: str  # command line that repeats the case; "": it ran in this process

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    def __repr__(self) -> str:
        return f"{self.outcome}  {self.case}   {self.platform}" + "".join(f"\n      {line}" for line in self.text.splitlines())


@dataclasses.dataclass(frozen=True, repr=False)
class RunReport:
    """The results of a run. It passed if it was complete, a case passed, and none failed or was untrusted."""

    cases: list[CaseResult]
    isolated: bool  # False: the functions ran in this process, in the memory of the judge
    interrupted: str = ""  # why and where the run ended early

    @property
    def passed(self) -> bool:
        outcomes = {one.outcome for one in self.cases}
        return not self.interrupted and "passed" in outcomes and not outcomes & {"failed", "untrusted"}

    def __bool__(self) -> bool:
        return self.passed

    @property
    def failures(self) -> list[CaseResult]:
        return [one for one in self.cases if one.outcome in ("failed", "untrusted")]

    def __repr__(self) -> str:
        outcomes = [one.outcome for one in self.cases]
        counts = ", ".join(f"{outcomes.count(name)} {name}" for name in ("passed", "failed", "untrusted", "skipped", "known_bug") if name in outcomes)
        reasons = sorted({f"skipped: {one.reason}" for one in self.cases if one.outcome == "skipped"})
        where = [] if self.isolated else ["not isolated: the functions ran in the process that judged them"]
        ends = [f"interrupted: {self.interrupted}"] if self.interrupted else []
        return "\n".join([*map(repr, self.failures), *reasons, counts or "no case", *where, *ends])


def plumb_program(on_path: bool = True) -> str:
    """Path of the program plumb: PLUMB_PROGRAM, the package's own, or the one on PATH. Raises CannotRun."""
    named = os.environ.get("PLUMB_PROGRAM")
    here = Path(__file__).resolve().parent
    for place in [named] if named else [here / "bin/plumb", here.parent.parent / "bin/plumb"]:
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("plumb") if on_path and not named else None
    if found:
        return found
    raise CannotRun(f"{named}: no program" if named else "there is no program plumb: build it (./bootstrap build), and name it with PLUMB_PROGRAM")


def main() -> None:
    """The command plumb of an installed package. Python kernels run in this interpreter."""
    try:
        program = plumb_program(on_path=False)  # on PATH it would find itself
    except CannotRun as error:
        sys.exit(f"plumb: {error}")
    os.environ.setdefault("PLUMB_PYTHON", sys.executable)
    os.execv(program, [program, *sys.argv[1:]])


def run(
    kernels: Any = None,
    *,
    op: str | Sequence[str] | None = None,
    case: str | Sequence[str] | None = None,
    tier: str = "smoke",
    platform: str | Sequence[str] | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    ops: str | os.PathLike[str] | Sequence[str] | None = None,
    options: Sequence[str] = (),
    isolated: bool = True,
) -> RunReport:
    """Runs the cases of @kernel functions.

    kernels: the path of a Python file, functions of one file, or None for the caller's file.
    op, case, tier, platform, timeout, jobs: as for plumb run; options: further words of its command line.
    platform: None for all simulated ones. ops: files that declare ops (@op).
    isolated=False: for functions that another process cannot import (a notebook). They run in this process: a crash
    ends it, and timeout, jobs, ops and options do not apply.
    Raises CannotRun if no case can run, and BadKernel if a function is not a kernel.
    """
    if kernels is None:
        names = sys._getframe(1).f_globals
        kernels = names.get("__file__") if isolated else list(names.values())
        if kernels is None:
            raise BadKernel("the caller has no file: isolated=False runs its functions in this process")
    if not isolated:
        return _run_here(kernels, _list(op), _list(case), tier, _list(platform))
    words = ["run", "--plugin", _path_of(kernels), "--tier", tier]
    words += [*_options("--op", _list(op)), *_options("--case", _list(case)), *_options("--platform", _list(platform))]
    words += _options("--ops", [os.fspath(ops)] if isinstance(ops, os.PathLike) else _list(ops))
    words += ["--timeout", str(timeout)] if timeout is not None else []
    words += ["--jobs", str(jobs)] if jobs is not None else []
    return run_program([*words, *options])


def run_program(words: Sequence[str]) -> RunReport:
    """Runs `plumb run --plugin ...` and returns the cases of ops that the plug-in has. Raises CannotRun."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        ended = _call([*words, "--quiet", "--json", str(report)])
        if report.exists() and report.stat().st_size > 0:
            said = json.loads(report.read_text())
            cases = [result_of(one) for one in said["cases"] if one["case"].split("/")[0] in said["plugin"]["ops"]]
            end = said.get("interrupted")
            return RunReport(cases, True, f"{end['why']}: {end['done']} of {end['cases']} cases done" if end else "")
    raise CannotRun(_last_line(ended))


def list_cases(path: str, tier: str, ops: Sequence[str] = ()) -> list[str]:
    """Names of the cases of a file's kernels. Raises CannotRun."""
    ended = _call(["list", "--plugin", path, "--tier", tier, *_options("--ops", ops)])
    if ended.returncode != 0:
        raise CannotRun(_last_line(ended))
    return [line.split()[0] for line in ended.stdout.splitlines() if line.strip()]


def _call(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # Kernels run in this interpreter with this package.
    package = str(Path(__file__).resolve().parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PLUMB_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run([plumb_program(), *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def _last_line(ended: subprocess.CompletedProcess[str]) -> str:
    # Kernels write to stderr too, so only plumb's own lines count.
    said = [line for line in ended.stderr.splitlines() if line.startswith("plumb: ")]
    return said[-1].removeprefix("plumb: ") if said else f"plumb ended with exit code {ended.returncode}"


def _list(values: str | Sequence[str] | None) -> list[str]:
    return [] if values is None else [values] if isinstance(values, str) else list(values)


def _options(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _path_of(kernels: Any) -> str:
    if isinstance(kernels, (str, os.PathLike)):
        return os.fspath(kernels)
    found = kernels_of(kernels if isinstance(kernels, Iterable) else [kernels])
    if not found:
        raise BadKernel("no @kernel function is among the kernels")
    files = {one.file for one in found}
    if len(files) != 1 or not os.path.exists(str(next(iter(files)))):
        raise BadKernel("the functions are not of one file: isolated=False runs them in this process")
    return f"{next(iter(files))}::{','.join(one.name for one in found)}"


def _run_here(kernels: Any, ops: list[str], patterns: list[str], tier: str, platforms: list[str]) -> RunReport:
    if isinstance(kernels, (str, os.PathLike)):
        raise BadKernel("isolated=False takes functions: a file can be imported by another process")
    found: Mapping[str, Kernel] = {one.op: one for one in kernels_of(kernels if isinstance(kernels, Iterable) else [kernels])}
    if not found:
        raise BadKernel("no @kernel function is among the kernels")
    _plumb.clear_kernels()
    for one in found.values():
        if not ops or one.op in ops:
            _plumb.add_kernel(one.op, one.name, dict(one.numerics), one.contract, one.before_launch, one.run)
    results = [result_of(one) for one in _plumb.run_here(patterns, tier, platforms or list(_SIMULATED))]
    if not results:
        raise CannotRun("no case of these functions is in this tier")
    return RunReport(results, False)


def result_of(one: Mapping[str, Any]) -> CaseResult:
    """Converts a case of the JSON report."""
    lines: list[str] = []
    for failure in (one.get("failures") or [])[:1]:
        lines += [*failure["lines"], f"at {failure['context']}"]
    if one["outcome"] == "untrusted":
        lines.insert(0, one["reason"])
    if one.get("diagnosis"):
        lines.append(one["diagnosis"])
    lines += one.get("contrast") or []
    lines += [one[key] for key in ("right_if", "passes_if") if one.get(key)]
    reproduce = one.get("reproduce", "")
    if lines and reproduce:
        lines.append(f"reproduce: {reproduce}")
    return CaseResult(one["case"], one["platform"], one["outcome"], "\n".join(lines), one["reason"], reproduce)
