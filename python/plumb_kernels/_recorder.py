# SPDX-License-Identifier: Apache-2.0
"""Records functions of an engine while it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._graph_calls import CapturedCall, GraphCalls
from ._row_sampler import RowSampler
from ._shadow import Shadow
from ._trace_writer import Call, Step, Trace


@dataclasses.dataclass(frozen=True)
class Tap:
    """A function of an engine that is recorded while a Recorder is on.

    `describe` gets the function's arguments before the call. It returns the arguments of Step.begin as a dictionary,
    including "op", or None: the call is not recorded. `after` gets the result and the same arguments, and returns the
    tensors that the call wrote. `observe` gets the same as `after`, for each call, and may pass a finished call to
    Recorder.call. `step`: each call of the function is a step.
    """

    owner: Any  # a class or a module
    attribute: str
    describe: Callable[..., Mapping[str, Any] | None] | None = None
    after: Callable[..., Mapping[str, Any]] | None = None
    observe: Callable[..., None] | None = None
    step: bool = False


_RECORDERS: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """Records the calls of taps. Made by `record`."""

    def __init__(
        self, trace: Trace, *, ops: Iterable[str] | None, layers: Iterable[int] | None, steps: Iterable[int] | None, budget: int | None,
        rows: int | None = None, graphs: GraphCalls | None = None,
    ):  # fmt: skip
        self.trace, self.budget, self.rows = trace, budget, rows
        self.ops, self.layers, self.steps = (None if one is None else set(one) for one in (ops, layers, steps))
        self.left_out = 0  # number of calls beyond the budget
        self.graphs = graphs
        self._sampler = graphs.sampler if graphs else RowSampler(rows) if rows else None
        self._step: Step | None = None
        self._open: list[Call | CapturedCall] = []
        self._names: dict[int, tuple[str, int]] = {}
        self._number = -1
        self._is_parents = False  # the trace belongs to the process that forked this one
        _RECORDERS.add(self)

    @property
    def graphs_without_calls(self) -> int:
        """Number of graphs that were replayed in a recorded step but captured before the recording."""
        return len(self.graphs.without_calls) if self.graphs else 0

    def name_modules(self, model: Any) -> None:
        """Gives calls of this torch model's modules their names and layer numbers."""
        for name, module in model.named_modules():
            layer = re.search(r"(?:^|\.)layers\.(\d+)(?:\.|$)", name)
            self._names[id(module)] = (name, int(layer[1]) if layer else -1)

    def place_of(self, module: Any) -> dict[str, Any]:
        """name= and layer= of a module."""
        name, layer = self._names.get(id(module), (type(module).__name__, -1))
        return {"name": name, "layer": layer}

    def step(self) -> RecordedStep:
        """Context manager: everything that runs inside is the next step."""
        return RecordedStep(self)

    @contextlib.contextmanager
    def calls_to(self, step: Step, same_rows: bool = False) -> Iterator[None]:
        """Context manager: calls inside belong to this step."""
        self._enter(step, same_rows)
        try:
            yield
        finally:
            self._leave(step)

    def _enter(self, step: Step, same_rows: bool = False) -> None:
        if self._sampler and not same_rows:
            self._sampler.next_step()
        self._step = step

    def _leave(self, step: Step) -> None:
        self._step = None
        self.left_out += step.left_out

    def _after_fork(self) -> None:
        """Ends the recording in a forked process, whose parent writes the trace. Before the first step, no process does."""
        self._is_parents |= self.trace.after_fork()
        self._step, self._open = None, []

    def _next_step(self) -> Step | None:
        self._number += 1
        wanted = not self._is_parents and (self.steps is None or self._number in self.steps)
        return self.trace.step(self._number, self._sampler) if wanted else None

    def shadow(self, every: int = 1, **more: Any) -> Shadow:
        """Compares every `every`-th graphed step with the same step run eagerly."""
        return Shadow(self, every, **more)

    def _begin(self, described: Mapping[str, Any] | None) -> Call | CapturedCall | None:
        step, capture = self._step, self.graphs.capture if self.graphs else None
        if described is None or (step is None and capture is None):
            return None
        described = dict(described)
        op = described.pop("op", "")
        if self.ops is not None and op not in self.ops:
            return None
        if self.layers is not None and described.get("layer", -1) not in self.layers:
            return None
        if self._sampler and not described.get("rows"):
            return None
        if capture is not None:
            return CapturedCall(capture, op, described)
        if step.is_full(self.budget):
            step.left_out += 1
            return None
        return step.begin(op, **described)

    def call(self, described: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Records a finished call that changed none of its inputs."""
        call = self._begin(described)
        if call is not None:
            call.end(after)

    def launched(self, name: str, grid: Iterable[int], scalars: Mapping[str, int | float]) -> None:
        """Adds a kernel launch to the current call. Launches of Triton kernels are added automatically."""
        if self._open:
            self._open[-1].launches.append({"name": name, "grid": [int(one) for one in grid], "scalars": dict(scalars)})

    def _wrap(self, tap: Tap, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def recorded(*arguments: Any, **named: Any) -> Any:
            if self._step is None and (self.graphs is None or self.graphs.capture is None):
                return original(*arguments, **named)
            call = self._begin(tap.describe(*arguments, **named)) if tap.describe else None
            if call is None:
                result = original(*arguments, **named)
            else:
                self._open.append(call)
                try:
                    result = original(*arguments, **named)
                finally:
                    self._open.pop()
                call.end(tap.after(result, *arguments, **named) if tap.after else {})
            if tap.observe:
                tap.observe(result, *arguments, **named)
            return result

        @functools.wraps(original)
        def step(*arguments: Any, **named: Any) -> Any:
            with self.step():
                return original(*arguments, **named)

        return step if tap.step else recorded

    def _install(self, taps: Iterable[Tap], undo: contextlib.ExitStack) -> None:
        for tap in taps:
            _replace(tap.owner, tap.attribute, self._wrap(tap, getattr(tap.owner, tap.attribute)), undo)
        if self.graphs:
            self._install_in_graphs(self.graphs, undo)
        if "triton" in sys.modules:
            self._install_in_triton(undo)

    def _install_in_graphs(self, graphs: GraphCalls, undo: contextlib.ExitStack) -> None:
        owner = graphs.device.graph_class
        begin, end, replay = owner.capture_begin, owner.capture_end, owner.replay
        _replace(owner, "capture_begin", lambda graph, *more, **named: graphs.capture_begin(begin, graph, *more, **named), undo)
        _replace(owner, "capture_end", lambda graph: graphs.capture_end(end, graph), undo)
        _replace(owner, "replay", lambda graph: graphs.replay(replay, graph, self._step, self.budget), undo)

    def _install_in_triton(self, undo: contextlib.ExitStack) -> None:
        from triton.runtime.jit import JITFunction

        run = JITFunction.run

        def recorded(function: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
            if not self._open or warmup:
                return run(function, *arguments, grid=grid, warmup=warmup, **named)
            chosen: list[Any] = []

            def grid_of(meta: Any) -> Any:
                chosen[:] = [grid(meta) if callable(grid) else grid]
                return chosen[0]

            result = run(function, *arguments, grid=grid_of, warmup=warmup, **named)
            passed = dict(zip(function.arg_names, arguments)) | named
            scalars = {name: passed[name] for name in function.arg_names if isinstance(passed.get(name), (int, float))}
            self.launched(function.__name__, chosen[0], scalars)
            return result

        _replace(JITFunction, "run", recorded, undo)


def _after_fork() -> None:
    for recorder in _RECORDERS:
        recorder._after_fork()


os.register_at_fork(after_in_child=_after_fork)


class RecordedStep:
    """A step of a recorder. A class instead of a generator, because it is faster and the device waits meanwhile."""

    def __init__(self, recorder: Recorder):
        self._recorder = recorder

    def __enter__(self) -> None:
        self._step = self._recorder._next_step()
        if self._step is not None:
            self._recorder._enter(self._step)

    def __exit__(self, *error: object) -> None:
        if self._step is not None:
            self._recorder._leave(self._step)
            self._step.__exit__(*error)


def _replace(owner: Any, attribute: str, value: Any, undo: contextlib.ExitStack) -> None:
    """Replaces an attribute until `undo` ends. A class that inherits the attribute then inherits it again."""
    if attribute in vars(owner):
        undo.callback(setattr, owner, attribute, vars(owner)[attribute])
    else:
        undo.callback(delattr, owner, attribute)
    setattr(owner, attribute, value)


def _graphs_of_torch() -> Any:
    if "torch" not in sys.modules:
        return None
    from ._cuda_graphs import CudaGraphs

    return CudaGraphs()


@contextlib.contextmanager
def record(
    folder: str | os.PathLike[str], taps: Callable[[Recorder], Iterable[Tap]], *, ops: Iterable[str] | None = None,
    layers: Iterable[int] | None = None, steps: Iterable[int] | None = None, budget: int | None = None, rows: int | None = None,
    rank: int | Callable[[], int] = 0, provenance: Mapping[str, str] | None = None, redact: bool = False, device: Any = None, graph_bytes: int = 256 << 20,
    host_bytes: int = 1 << 30,
) -> Iterator[Recorder]:  # fmt: skip
    """Records calls of the functions that `taps(recorder)` lists, only of these ops, layers and steps.

    `budget`: bytes per step; after that, no further call of the step is recorded. `rows`: number of rows that are stored of
    each row-wise tensor; only calls with such tensors are recorded. A callable `rank` is called at the first step.
    `graph_bytes`: room for side buffers of one graph. `host_bytes`: limit of recorded steps that are not written yet; the
    engine waits if it is exceeded. Afterwards the functions are the original ones again, without cost. Graphs captured
    meanwhile keep their copies. With a callable `rank`, a process that is forked before the first step records
    by itself. One that is forked later, or with a given rank, records nothing: its parent writes the trace.
    """
    device = device or _graphs_of_torch()
    trace = Trace(folder, rank=rank, provenance=provenance, redact=redact)
    graphs = GraphCalls(device, graph_bytes, RowSampler(rows) if rows else None, trace) if device else None
    recorder = Recorder(trace, ops=ops, layers=layers, steps=steps, budget=budget, rows=rows, graphs=graphs)
    with trace.in_background(host_bytes), contextlib.ExitStack() as undo:
        recorder._install(taps(recorder), undo)
        yield recorder
