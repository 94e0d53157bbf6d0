# SPDX-License-Identifier: Apache-2.0
"""Shadow steps: a graphed step is compared with the same step run eagerly, twice, from the same state."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._shadow_compare import Comparison, Finding, Run
from ._trace_tensors import BadTrace, Described, block_numbers
from ._trace_writer import Step

if TYPE_CHECKING:
    from ._recorder import Recorder


@dataclasses.dataclass(frozen=True, repr=False)
class ShadowReport:
    """Findings of a shadow step. `summary` is the JSON that is stored next to the trace."""

    text: str
    summary: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        return self.summary["passed"]

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.text.rstrip("\n")


class SavedState:
    """Copies of tensors that a step changes, for restoring them."""

    def __init__(self, device: Any, tensors: Mapping[Any, Any]):
        self._device = device
        self._saved = []
        for value in tensors.values():
            wanted = value if isinstance(value, Described) else Described(value)
            numbers = block_numbers(wanted.blocks)
            self._saved.append((wanted.tensor, numbers, device.save(wanted.tensor, numbers)))

    def restore(self) -> None:
        for tensor, numbers, saved in self._saved:
            self._device.restore(tensor, numbers, saved)


class Shadow:
    """Runs shadow steps. Made by Recorder.shadow.

    `state` returns, by name, the tensors that a step changes and that this step or the next one reads.
    """

    def __init__(self, recorder: Recorder, every: int, *, state: Callable[[], Mapping[str, Any]] | None = None):
        if recorder.graphs is None:
            raise BadTrace("shadow steps compare graphs: torch is not imported, or has none")
        if recorder.trace.redact:
            raise BadTrace("a redacted recording has no values to compare")
        self._recorder, self._every, self._state = recorder, every, state or dict
        self._graphs = recorder.graphs
        self._taken = 0
        self._history: dict[Any, Any] = {}
        self.reports: list[ShadowReport] = []

    @property
    def passed(self) -> bool:
        """True if at least one step was compared and none has a finding."""
        return bool(self.reports) and all(self.reports)

    def step(self, graphed: Callable[[], Any], eager: Callable[[], Any], *, live: int | None = None, padded: int | None = None) -> Any:
        """Runs the next step with `graphed` and returns its result.

        Every `every`-th step also runs `eager` twice and adds a report. Afterwards the state is that of the graphed step.
        `live` of `padded` rows belong to requests: of tensors with `padded` rows, only the live ones are compared.
        """
        self._taken += 1
        if (self._taken - 1) % self._every:
            with self._recorder.step():
                return graphed()
        recorder = self._recorder
        recorder._number += 1
        before = self._save()
        with recorder.trace.step(recorder._number, recorder._sampler) as step, recorder.calls_to(step):
            result = graphed()
        recorder.trace.flush()
        left = self._save()
        runs = [self._run(step, step)]
        for _ in range(2):
            before.restore()
            again = Step(recorder.trace, step.number, recorder._sampler)
            with recorder.calls_to(again, same_rows=True):
                eager()
            again.finish()
            runs.append(self._run(again, step))
        left.restore()
        comparison = Comparison(*runs, live=live, padded=padded, history=self._history, places=self._graphs.device.places())
        self._report(step, comparison)
        return result

    def _save(self) -> SavedState:
        self._graphs.device.wait()
        return SavedState(self._graphs.device, {**self._changed_by_calls(), **self._state()})

    def _changed_by_calls(self) -> dict[Any, Any]:
        """Tensors that captured calls write and that still exist. Others are memory of graphs."""
        changed = {}
        for graph in self._graphs.captured:
            for call in graph.calls:
                for tensor in call.after.values():
                    owner = tensor.owner() if tensor.owner else None
                    if owner is not None:
                        blocks = tensor.blocks if owner.shape[:1] == tuple(tensor.layout["shape"][:1]) else None
                        changed[id(owner), id(blocks)] = Described(owner, blocks=blocks)
        return changed

    def _run(self, step: Step, graphed: Step) -> Run:
        state = Step(self._recorder.trace, step.number)
        state.call(name="state behind the step", after=self._state())
        calls = step._calls + (state._calls if self._state() else [])
        data = {**step._constants, **step._data, **state._constants, **state._data}
        return Run(calls, data, step.captured, self._graphs.device.expired)

    def _report(self, step: Step, comparison: Comparison) -> None:
        without = step.graphs_without_calls
        findings = comparison.findings
        if without:
            findings = [Finding(-1, "", "not_recorded", f"{without} graphs were captured in front of the recording", {})]
        summary = {
            "format": "plumb shadow step", "version": 1, "rank": self._recorder.trace.rank, "step": step.number,
            "passed": not findings and comparison.tensors > 0, "calls": comparison.calls, "tensors": comparison.tensors,
            "unstable_tensors": comparison.unstable, "findings": [dataclasses.asdict(one) for one in findings],
        }  # fmt: skip
        report = ShadowReport(_text(summary), summary)
        self.reports.append(report)
        with open(os.path.join(self._recorder.trace.folder, f"shadow-{step.number:06d}.json"), "w", encoding="utf-8") as file:
            json.dump(summary, file, indent=1)


_HEADLINES = {
    "pointer": "reads memory that was freed since the capture",
    "metadata": "metadata differs from eager's",
    "scalars": "scalars of the capture",
    "kernels": "kernels of the capture",
    "padding_nan": "NaN in padding reaches a live row",
    "missing_call": "not in the graphed step",
    "padding": "rows of padding change its results",
    "inputs": "inputs differ from eager's, and no recorded call before wrote them so",
    "outputs": "outputs differ from eager's, although all inputs are the same",
    "state": "the state behind the step differs from eager's",
    "not_recorded": "calls of graphs are not recorded",
}


def _text(summary: Mapping[str, Any]) -> str:
    findings = summary["findings"]
    counted = f"{summary['calls']} calls, {summary['tensors']} tensors compared with eager"
    if not findings:
        return f"step {summary['step']}: no difference; {counted}\n" if summary["passed"] else f"step {summary['step']}: nothing was compared\n"
    number = findings[0]["number"]
    first = [one for kind in _HEADLINES for one in findings if one["number"] == number and one["kind"] == kind]
    lines = [f"FIRST WRONG CALL  step {summary['step']}, {first[0]['call']}: {_HEADLINES[first[0]['kind']]}"]
    lines += [f"      {one['text']}" for one in first]
    others = collections.Counter(one["kind"] for one in findings if one["number"] != number)
    if others:
        lines.append("later calls: " + ", ".join(f"{count} {kind}" for kind, count in others.items()))
    return "\n".join([*lines, counted, ""])
