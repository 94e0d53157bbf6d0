# SPDX-License-Identifier: Apache-2.0
"""The files of a trace: calls, steps, and the folder of one rank. docs/traces.md has the format."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ._trace_tensors import WHY_NO_FILES, BadTrace, _trace_file, describe_tensor

_VERSION = 1


class Call:
    """One call that has begun. `end` adds what it wrote."""

    def __init__(self, step: Step, described: dict[str, Any]):
        self._step, self._described = step, described

    def end(self, after: Mapping[str, Any]) -> None:
        self._described["after"] = self._step._stored(after)
        self._step._calls.append(self._described)


class Step:
    """The calls of one step. They are written when the step ends, in the order in which they ended."""

    def __init__(self, trace: Trace, number: int):
        self._trace, self.number = trace, number
        self._calls: list[dict[str, Any]] = []
        self._data: dict[str, np.ndarray] = {}
        self._constants: dict[str, np.ndarray] = {}
        self.bytes = 0

    def begin(
        self, op: str = "", /, *, name: str = "", layer: int = -1, stream: int = 0, replay: int | None = None,
        kernels: Iterable[Mapping[str, Any]] = (), scalars: Mapping[str, Any] | None = None,
        numerics: Mapping[str, Any] | None = None, before: Mapping[str, Any] | None = None,
    ) -> Call:  # fmt: skip
        """A call that is about to happen, with what it reads. `op` is plumb's name, `name` the engine's."""
        described: dict[str, Any] = {"op": op, "name": name or op, "layer": layer, "stream": stream}
        if not described["name"]:
            raise BadTrace("a call has a name or an op")
        if replay is not None:
            described["replay"] = replay
        if kernels:
            described["kernels"] = [dict(kernel) for kernel in kernels]
        described["scalars"] = {key: _plain(value) for key, value in (scalars or {}).items() if value is not None}
        described["numerics"] = {key: _plain(value) for key, value in (numerics or {}).items()}
        described["before"] = self._stored(before or {})
        return Call(self, described)

    def call(self, op: str = "", /, *, after: Mapping[str, Any], **more: Any) -> None:
        """A call that is over and changed none of its inputs."""
        self.begin(op, **more).end(after)

    def _stored(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._store(tensor) for name, tensor in tensors.items() if tensor is not None}

    def _store(self, value: Any) -> dict[str, Any]:
        tensor = describe_tensor(value, self._trace.redact)
        if tensor.data is not None and tensor.data.size:
            digest = _trace_file.digest(tensor.data)
            tensor.described["data"] = digest
            if digest not in self._trace._known and digest not in self._data and digest not in self._constants:
                (self._constants if tensor.constant else self._data)[digest] = tensor.data
                self.bytes += tensor.data.size
        return tensor.described

    def _write(self) -> None:
        self._trace._write_constants(self._constants)
        self._trace._write(f"step-{self.number:06d}.h5", self.number, self._calls, self._data)


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
    """A folder of recorded steps. `redact` leaves out all values of tensors."""

    def __init__(self, folder: str | os.PathLike[str], *, rank: int = 0, provenance: Mapping[str, str] | None = None, redact: bool = False):
        if _trace_file is None:
            raise BadTrace(f"recording needs the shared library of HDF5 (Debian: libhdf5-103-1): {WHY_NO_FILES}")
        self.folder = os.path.join(os.fspath(folder), f"rank-{rank}")
        os.makedirs(self.folder, exist_ok=True)
        if any(name.endswith(".h5") for name in os.listdir(self.folder)):
            raise BadTrace(f"{self.folder}: has a recording already")
        self.rank, self.redact = rank, redact
        self.provenance = {**_provenance(), **(provenance or {})}
        self._known: set[str] = set()  # digests of constants that are written
        self._constant_files = 0

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[Step]:
        """The calls of this step. Its file is written even if the step ends with an exception."""
        step = Step(self, number)
        try:
            yield step
        finally:
            step._write()

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
    torch = sys.modules.get("torch")
    if torch is not None:
        made["torch"] = torch.__version__
        if torch.cuda.is_available():
            made["card"] = torch.cuda.get_device_name()
    return made
