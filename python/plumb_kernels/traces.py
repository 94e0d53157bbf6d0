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

import contextlib
import dataclasses
import functools
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ._run import plumb_program

__all__ = ["BadTrace", "Call", "Described", "Recorder", "Step", "Tap", "Trace", "TraceReport", "judge", "record"]

try:
    from . import _trace_file
    from ._trace_file import BadTrace
except ImportError as error:  # libhdf5 is not on this machine
    _trace_file = None
    _WHY = str(error)

    class BadTrace(OSError):  # type: ignore[no-redef]
        """A trace that cannot be written."""


_VERSION = 1
_NUMPY = {
    "bool": "bool", "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32",
    "uint64": "u64", "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "float8_e4m3fn": "e4m3fn", "float8_e4m3fnuz": "e4m3fnuz", "float8_e5m2": "e5m2", "float8_e8m0fnu": "e8m0",
    "float4_e2m1fn_x2": "e2m1x2",
}  # fmt: skip


@dataclasses.dataclass
class _Tensor:
    """What a trace says of a tensor, and its bytes."""

    described: dict[str, Any]
    data: np.ndarray | None  # bytes; None: redacted, or written before
    constant: bool = False


@dataclasses.dataclass(frozen=True)
class Described:
    """A tensor with more than torch or numpy know of it: the meaning of its bytes, or which blocks to store."""

    tensor: Any
    dtype: str | None = None  # "e4m3fn" for codes in uint8
    blocks: Any = None  # numbers of the first dimension: blocks of a paged cache that the call touches
    constant: bool = False  # the same in every step: stored once


def _dense_bytes(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _torch_tensor(tensor: Any, blocks: Any) -> tuple[str, dict[str, Any], np.ndarray]:
    import torch

    tensor = tensor.detach()
    dtype = str(tensor.dtype).removeprefix("torch.")
    described = {
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "storage": tensor.untyped_storage().data_ptr(),
        "offset": tensor.storage_offset() * tensor.element_size(),
    }
    if blocks is not None:
        tensor = tensor[torch.as_tensor(blocks, device=tensor.device)]
    # A 0-dimensional tensor has no view of another size.
    stored = tensor.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
    return dtype, described, np.array(stored, copy=True)


def _numpy_tensor(array: Any, blocks: Any) -> tuple[str, dict[str, Any], np.ndarray]:
    array = np.asarray(array)
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    storage, first = base.__array_interface__["data"][0], array.__array_interface__["data"][0]
    described = {
        "shape": list(array.shape),
        "strides": [stride // array.itemsize for stride in array.strides],
        "storage": storage,
        "offset": max(0, first - storage),
    }
    return array.dtype.name, described, _dense_bytes(array if blocks is None else array[np.asarray(blocks)])


def _describe(value: Any, redact: bool) -> _Tensor:
    wanted = value if isinstance(value, Described) else Described(value)
    blocks = None if wanted.blocks is None else sorted({int(block) for block in wanted.blocks})
    is_torch = hasattr(wanted.tensor, "untyped_storage")
    name, described, data = (_torch_tensor if is_torch else _numpy_tensor)(wanted.tensor, blocks)
    # numpy has no bf16: plumb's arrays of it hold the bits.
    described["dtype"] = wanted.dtype or ("bf16" if name == "uint16" and not is_torch else _NUMPY.get(name))
    if described["dtype"] is None:
        raise BadTrace(f"a trace has no tensors of {name}")
    if blocks is not None:
        described["blocks"] = blocks
    parameter = is_torch and type(wanted.tensor).__name__ == "Parameter"
    return _Tensor(described, None if redact else data, wanted.constant or parameter)


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
        tensor = _describe(value, self._trace.redact)
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
            raise BadTrace(f"recording needs the shared library of HDF5 (Debian: libhdf5-103-1): {_WHY}")
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


@dataclasses.dataclass(frozen=True, repr=False)
class TraceReport:
    """What plumb judge says of a trace. `summary` is its JSON report."""

    text: str
    summary: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        return self.summary["exit_code"] == 0

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.text.rstrip("\n")


def judge(trace: str | os.PathLike[str], *, call: str | None = None, ops: Iterable[str] = ()) -> TraceReport:
    """Judges the calls of a trace, or the call "RANK/STEP/NUMBER" alone. `ops`: files that declare ops of your own.

    Raises BadTrace for a trace that cannot be read, or of which no call could be judged.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        words = [plumb_program(), "judge", os.fspath(trace), "--json", report]
        words += ["--call", call] if call else []
        for file in ops:
            words += ["--ops", os.fspath(file)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise BadTrace(done.stderr.strip().removeprefix("plumb: ") or f"plumb judge ended with {done.returncode}")
        with open(report, encoding="utf-8") as file:
            return TraceReport(done.stdout, json.load(file))
