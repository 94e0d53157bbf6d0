# SPDX-License-Identifier: Apache-2.0
"""Records functions of an engine while it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._trace_writer import Call, Step, Trace


@dataclasses.dataclass(frozen=True)
class Tap:
    """A function of an engine that is recorded while a Recorder is on.

    `describe` gets the function's arguments in front of the call. It returns the arguments of
    Step.begin as a dictionary, "op" among them, or None: this call is not recorded. `after` gets the
    result and the same arguments, and returns the tensors that the call wrote. `observe` gets what
    `after` gets, for each call: it may hand a finished call to Recorder.call.
    """

    owner: Any  # a class or a module
    attribute: str
    describe: Callable[..., Mapping[str, Any] | None] | None = None
    after: Callable[..., Mapping[str, Any]] | None = None
    observe: Callable[..., None] | None = None


class Recorder:
    """Records the calls of taps. `record` makes one."""

    def __init__(self, trace: Trace, *, ops: Iterable[str] | None, layers: Iterable[int] | None, steps: Iterable[int] | None, budget: int | None):
        self.trace, self.budget = trace, budget
        self.ops, self.layers, self.steps = (None if one is None else set(one) for one in (ops, layers, steps))
        self.left_out = 0  # calls beyond the budget
        self._step: Step | None = None
        self._names: dict[int, tuple[str, int]] = {}
        self._number = -1

    def name_modules(self, model: Any) -> None:
        """Calls of this torch model's modules have its names and the number of their layer."""
        for name, module in model.named_modules():
            layer = re.search(r"(?:^|\.)layers\.(\d+)(?:\.|$)", name)
            self._names[id(module)] = (name, int(layer[1]) if layer else -1)

    def place_of(self, module: Any) -> dict[str, Any]:
        """name= and layer= of a module."""
        name, layer = self._names.get(id(module), (type(module).__name__, -1))
        return {"name": name, "layer": layer}

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """What runs in here is the next step."""
        self._number += 1
        if self.steps is not None and self._number not in self.steps:
            yield
            return
        with self.trace.step(self._number) as self._step:
            try:
                yield
            finally:
                self._step = None

    def _begin(self, described: Mapping[str, Any] | None) -> Call | None:
        step = self._step
        if step is None or described is None:
            return None
        described = dict(described)
        op = described.pop("op", "")
        if self.ops is not None and op not in self.ops:
            return None
        if self.layers is not None and described.get("layer", -1) not in self.layers:
            return None
        if self.budget is not None and step.bytes >= self.budget:
            self.left_out += 1
            return None
        return step.begin(op, **described)

    def call(self, described: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """A call that is over and changed none of its inputs."""
        call = self._begin(described)
        if call is not None:
            call.end(after)

    def _wrap(self, tap: Tap, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def recorded(*arguments: Any, **named: Any) -> Any:
            if self._step is None:
                return original(*arguments, **named)
            call = self._begin(tap.describe(*arguments, **named)) if tap.describe else None
            result = original(*arguments, **named)
            if call is not None:
                call.end(tap.after(result, *arguments, **named) if tap.after else {})
            if tap.observe:
                tap.observe(result, *arguments, **named)
            return result

        return recorded


@contextlib.contextmanager
def record(
    folder: str | os.PathLike[str], taps: Callable[[Recorder], Iterable[Tap]], *, ops: Iterable[str] | None = None,
    layers: Iterable[int] | None = None, steps: Iterable[int] | None = None, budget: int | None = None, rank: int = 0,
    provenance: Mapping[str, str] | None = None, redact: bool = False,
) -> Iterator[Recorder]:  # fmt: skip
    """Records calls of the functions that `taps(recorder)` lists, of these ops, layers and steps alone.

    `budget`: bytes of a step, after which no further call of the step is recorded. The functions are
    themselves again afterwards, and cost nothing.
    """
    recorder = Recorder(Trace(folder, rank=rank, provenance=provenance, redact=redact), ops=ops, layers=layers, steps=steps, budget=budget)
    with contextlib.ExitStack() as undo:
        for tap in taps(recorder):
            original = getattr(tap.owner, tap.attribute)
            setattr(tap.owner, tap.attribute, recorder._wrap(tap, original))
            undo.callback(setattr, tap.owner, tap.attribute, original)
        yield recorder
