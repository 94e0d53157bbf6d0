# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a trace: calls, steps, and the folder of one rank. docs/traces.md has the format."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ._background_writer import BackgroundWriter
from ._row_sampler import RowSampler, total_rows
from ._trace_tensors import WHY_NO_FILES, BadTrace, StoredTensor, _trace_file, describe_tensor

_VERSION = 1


def call_header(
    op: str, *, name: str = "", layer: int = -1, stream: int = 0, replay: int | None = None, kernels: Iterable[Mapping[str, Any]] = (),
    scalars: Mapping[str, Any] | None = None, numerics: Mapping[str, Any] | None = None, invoke: str = "", replicated: Iterable[str] = (),
    collective: str = "", group: Iterable[int] = (),
) -> dict[str, Any]:  # fmt: skip
    """Header of a call, without tensors. `invoke`: a line of Python that makes the call from names of its tensors and scalars.

    `replicated` names the tensors that are equal on all ranks of `group` (of the trace, if it is empty). `collective`:
    "all_reduce", "reduce_scatter" or "all_gather" of the one tensor before the call.
    """
    described: dict[str, Any] = {"op": op, "name": name or op, "layer": layer, "stream": stream}
    if not described["name"]:
        raise BadTrace("a call has a name or an op")
    if replay is not None:
        described["replay"] = replay
    if invoke:
        described["invoke"] = invoke
    if kernels:
        described["kernels"] = [dict(kernel) for kernel in kernels]
    for member, value in (("replicated", list(replicated)), ("collective", collective), ("group", [int(rank) for rank in group])):
        if value:
            described[member] = value
    return {**described, "scalars": plain_numbers(scalars or {}), "numerics": plain_numbers(numerics or {})}


class Call:
    """A call that has begun. `end` adds the tensors that it wrote."""

    def __init__(self, step: Step, described: dict[str, Any], cut: tuple[set[str], list[int]] | None):
        self._step, self._described, self._cut = step, described, cut
        self.launches: list[dict[str, Any]] = []

    def end(self, after: Mapping[str, Any]) -> None:
        if self.launches:
            self._described["kernels"] = [*self._described.get("kernels", ()), *self.launches]
        self._described["after"] = self._step._stored(after, self._cut)
        self._step._calls.append(self._described)


class Step:
    """The calls of one step, in the order in which they ended. They are written when its `with` ends, also after an exception."""

    def __init__(self, trace: Trace, number: int, sampler: RowSampler | None = None):
        self._trace, self.number, self._sampler = trace, number, sampler
        self._calls: list[Any] = []  # a replay is replaced by its calls when the step ends
        self._replays: list[Any] = []
        self._data: dict[str, np.ndarray] = {}
        self._constants: dict[str, np.ndarray] = {}
        self.captured: dict[int, Any] = {}  # captured calls by their number in `_calls`
        self.bytes = 0
        self.left_out = 0  # number of calls beyond the budget
        self.graphs_without_calls = 0

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *error: object) -> None:
        writer = self._trace._writer
        if writer is None:
            self.write()
        else:
            writer.submit(self)

    def begin(
        self, op: str = "", /, *, before: Mapping[str, Any] | None = None, rows: Iterable[str] = (), scalars: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Call:  # fmt: skip
        """Records a call that is about to run, with the tensors that it reads. `op` is plumb's name, `name` the engine's.

        `rows` names the row-wise tensors. A recorder that samples stores the same rows of all of them.
        """
        before = before or {}
        described = call_header(op, scalars={key: value() if callable(value) else value for key, value in (scalars or {}).items()}, **more)
        cut = None
        total = total_rows(rows, before) if self._sampler else None
        if self._sampler and total is not None and total > self._sampler.rows:
            cut = set(rows), self._sampler.numbers(total)
            described |= {"rows": cut[1], "rows_of": total}
        described["began"] = len(self._calls)
        described["before"] = self._stored(before, cut)
        return Call(self, described, cut)

    def call(self, op: str = "", /, *, after: Mapping[str, Any], **more: Any) -> None:
        """Records a finished call that changed none of its inputs."""
        self.begin(op, **more).end(after)

    def is_full(self, budget: int | None) -> bool:
        return budget is not None and self.bytes >= budget

    def add_replay(self, replay: Any, size: int) -> None:
        self._calls.append(replay)
        self._replays.append(replay)
        self.bytes += size

    def has_replays(self) -> bool:
        return bool(self._replays)

    def copied(self) -> bool:
        """Whether the copies of all replays have reached the host."""
        return all(replay.copied() for replay in self._replays)

    def _stored(self, tensors: Mapping[str, Any], cut: tuple[set[str], list[int]] | None) -> dict[str, Any]:
        rows, numbers = cut or ((), None)
        return {
            name: self._keep(describe_tensor(tensor, self._trace.redact, numbers if name in rows else None))
            for name, tensor in tensors.items()
            if tensor is not None
        }

    def _keep(self, tensor: StoredTensor) -> dict[str, Any]:
        if tensor.data is not None and tensor.data.size and not self._trace.redact:
            digest = _trace_file.digest(tensor.data)
            tensor.described["data"] = digest
            if digest not in self._trace._known and digest not in self._data and digest not in self._constants:
                (self._constants if tensor.constant else self._data)[digest] = tensor.data
                self.bytes += tensor.data.size
        return tensor.described

    def finish(self) -> None:
        """Waits for the copies of replays, and inserts their calls at their places."""
        calls, self._calls = self._calls, []
        ended = []  # number of calls before each entry
        for one in calls:
            ended.append(len(self._calls))
            for call, captured in [(one, None)] if isinstance(one, dict) else one.calls(self):
                if captured is not None:
                    self.captured[len(self._calls)] = captured
                began = call.pop("began", len(ended) - 1)
                if began < len(ended) - 1:
                    call["began"] = ended[began]
                self._calls.append(call)

    def write(self) -> None:
        self.finish()
        self._trace._write_constants(self._constants)
        self._trace._write(f"step-{self.number:06d}.h5", self.number, self._calls, self._data)


def plain_numbers(values: Mapping[str, Any]) -> dict[str, int | float | str]:
    return {key: _plain(value) for key, value in values.items() if value is not None}


def _plain(value: Any) -> int | float | str:
    if isinstance(value, (np.generic,)) or hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadTrace(f"{value} is not a finite number")
    if isinstance(value, (int, float, str)):
        return value
    raise BadTrace(f"{value!r} is neither a number nor a word")


class Trace:
    """A folder of recorded steps. `redact` leaves out all tensor values."""

    def __init__(
        self, folder: str | os.PathLike[str], *, rank: int | Callable[[], int] = 0, provenance: Mapping[str, str] | None = None,
        redact: bool = False,
    ):  # fmt: skip
        if _trace_file is None:
            raise BadTrace(f"recording needs the shared library of HDF5 (Debian: libhdf5-103-1): {WHY_NO_FILES}")
        self._root, self._rank, self.redact = os.fspath(folder), rank, redact
        self._given, self.provenance = dict(provenance or {}), {}
        self._known: set[str] = set()  # digests of constants that are written already
        self._constant_files = 0
        self._writer: BackgroundWriter | None = None
        if not callable(rank):
            self._open()

    def _open(self) -> None:
        """Opens the folder of the rank. A worker process may not know its rank before its first step."""
        if self.is_open():
            return
        self.rank = self._rank() if callable(self._rank) else self._rank
        self.folder = os.path.join(self._root, f"rank-{self.rank}")
        os.makedirs(self.folder, exist_ok=True)
        if any(name.endswith(".h5") for name in os.listdir(self.folder)):
            raise BadTrace(f"{self.folder}: has a recording already")
        self.provenance = {**_provenance(), **self._given}

    def step(self, number: int, sampler: RowSampler | None = None) -> Step:
        """Context manager: calls recorded inside belong to this step."""
        self._open()
        return Step(self, number, sampler)

    @contextlib.contextmanager
    def in_background(self, memory: int) -> Iterator[None]:
        """Context manager: steps that end inside are written by a thread, which may lag by this many bytes."""
        self._writer = BackgroundWriter(memory)
        try:
            yield
        finally:
            writer, self._writer = self._writer, None
            writer.close()
            self.finish()

    def is_open(self) -> bool:
        """Whether a process has begun to write the folder of a rank."""
        return bool(self.provenance)

    def after_fork(self) -> bool:
        """Prepares for this forked process. Returns whether the trace is left to its parent, which has begun to write it."""
        left = self.is_open()
        self.provenance = {}
        if self._writer is not None:
            self._writer.start()
        return left

    def flush(self) -> None:
        """Waits until all ended steps are written."""
        if self._writer is not None:
            self._writer.flush()

    def device_is_busy(self) -> None:
        """Signals a good moment to write, because the engine will now wait for the device."""
        if self._writer is not None:
            self._writer.device_is_busy()

    def finish(self) -> None:
        """Marks the trace as complete, which ends `plumb judge --follow`."""
        self.flush()
        if self.is_open():  # otherwise there was no step, and the rank may be unknown
            with open(os.path.join(self.folder, "finished"), "wb"):
                pass

    def _write_constants(self, constants: dict[str, np.ndarray]) -> None:
        if not constants:
            return
        self._write(f"constants-{self._constant_files:06d}.h5", 0, [], constants)
        self._constant_files += 1
        self._known.update(constants)

    def _write(self, name: str, step: int, calls: list[dict[str, Any]], data: dict[str, np.ndarray]) -> None:
        described = {
            "format": "plumb trace", "version": _VERSION, "rank": self.rank, "step": step,
            "provenance": self.provenance, "calls": calls,
        }  # fmt: skip
        _trace_file.write(os.path.join(self.folder, name), json.dumps(described, allow_nan=False), data)


def _provenance() -> dict[str, str]:
    made = {"python": platform.python_version(), "command": " ".join(sys.argv), "machine": platform.machine()}
    for engine in ("vllm", "sglang"):
        if engine in sys.modules:
            made |= {"engine": engine, "version": str(getattr(sys.modules[engine], "__version__", ""))}
            break
    torch = sys.modules.get("torch")
    if torch is not None:
        made |= {"torch": torch.__version__, "platform": _torch_platform(torch)}
        if torch.cuda.is_available():
            made["card"] = torch.cuda.get_device_name()
    return made


def _torch_platform(torch: Any) -> str:
    """plumb's name for torch's device: cpu, cuda-sm90, hip-gfx942."""
    if not torch.cuda.is_available():
        return "cpu"
    if torch.version.hip:
        return "hip-" + torch.cuda.get_device_properties(0).gcnArchName.split(":")[0]
    return "cuda-sm{}{}".format(*torch.cuda.get_device_capability())
