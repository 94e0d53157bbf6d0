# SPDX-License-Identifier: Apache-2.0
"""One test per case of the @kernel functions of a file. The test has the case's name.

    pytest --plumb kernels.py
    pytest --plumb kernels.py --plumb-platform cuda-sm90 --plumb-tier default -k full_graph

pytest itself does not import the file. The program plumb runs the cases, each in a separate process. A case that cannot
run is skipped with plumb's reason. An untrusted case fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ._run import _SIMULATED, CannotRun, CaseResult, RunReport, list_cases, run_program


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("plumb", "cases of GPU kernels")
    group.addoption("--plumb", action="append", default=[], metavar="FILE", help="run the cases of this file's @kernel functions")
    group.addoption("--plumb-platform", action="append", default=[], metavar="NAME", help="default: all simulated platforms")
    group.addoption("--plumb-tier", default="smoke", metavar="TIER", help="smoke, default or full (default: smoke)")
    group.addoption("--plumb-ops", action="append", default=[], metavar="FILE", help="a file that declares ops of its own (@op)")
    group.addoption("--plumb-timeout", type=float, default=None, metavar="SECONDS", help="that one case may take")


def _files(config: pytest.Config) -> list[Path]:
    return [(config.invocation_params.dir / one).resolve() for one in config.option.plumb]


def _files_of_ops(config: pytest.Config) -> list[str]:
    return [str((config.invocation_params.dir / one).resolve()) for one in config.option.plumb_ops]


def pytest_configure(config: pytest.Config) -> None:
    files = [str(one) for one in _files(config)]
    # Without other arguments pytest collects these files only.
    if files and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = []
    known = {str(Path(one.split("::")[0]).resolve()) for one in config.args}
    config.args.extend(one for one in files if one not in known)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if module_path.resolve() not in _files(parent.config):
        return None
    return KernelFile.from_parent(parent, path=module_path)


class KernelFile(pytest.File):
    """A file of kernels. It runs the chosen cases of an op together and keeps the results."""

    def collect(self) -> Iterator[pytest.Item]:
        option = self.config.option
        try:
            cases = list_cases(str(self.path), option.plumb_tier, _files_of_ops(self.config))
        except CannotRun as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            for platform in option.plumb_platform or _SIMULATED:
                yield CaseItem.from_parent(self, name=f"{case}@{platform}", case=case, platform=platform)

    def result(self, item: CaseItem) -> CaseResult:
        results: dict[tuple[str, str], CaseResult] = self.__dict__.setdefault("_results", {})
        # xdist distributes tests one by one, so cases are not run together there.
        alone = "PYTEST_XDIST_WORKER" in os.environ
        mates = [one for one in self.session.items if isinstance(one, CaseItem) and one.goes_with(item)]
        interrupted = ""
        # If another case interrupted the common run, this one runs again alone.
        for items in ([item],) if alone else (mates, [item]):
            if item.key in results:
                break
            report = self._run([one for one in items if one.key not in results], item.platform)
            results.update({(one.case, one.platform): one for one in report.cases})
            interrupted = report.interrupted
        if item.key not in results:
            raise CannotRun(interrupted or "plumb gave no result of the case")
        return results[item.key]

    def _run(self, items: list[CaseItem], platform: str) -> RunReport:
        option = self.config.option
        words = ["run", "--plugin", str(self.path), "--tier", option.plumb_tier, "--platform", platform]
        words += [word for one in items for word in ("--case", one.case)]
        words += [word for one in _files_of_ops(self.config) for word in ("--ops", one)]
        words += ["--timeout", str(option.plumb_timeout)] if option.plumb_timeout is not None else []
        return run_program(words)


class CaseItem(pytest.Item):
    """One case on one platform."""

    def __init__(self, *, case: str, platform: str, **rest: Any):
        super().__init__(**rest)
        self.case, self.platform = case, platform

    @property
    def key(self) -> tuple[str, str]:
        return self.case, self.platform

    def goes_with(self, other: CaseItem) -> bool:
        same_op = self.case.split("/")[0] == other.case.split("/")[0]
        return self.parent is other.parent and self.platform == other.platform and same_op

    def runtest(self) -> None:
        assert isinstance(self.parent, KernelFile)
        result = self.parent.result(self)
        if result.outcome == "skipped":
            pytest.skip(result.reason)
        if result.outcome == "known_bug":
            pytest.xfail(result.reason)
        if not result.passed:
            raise CaseFailed(result.text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, (CaseFailed, CannotRun)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class CaseFailed(Exception):
    """A failed case. The message is plumb's text."""
