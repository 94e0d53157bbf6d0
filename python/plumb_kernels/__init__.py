# SPDX-License-Identifier: Apache-2.0
"""Judges results of GPU kernels for DeepSeek-V4 and V3.2 inference against a CPU truth.

    report = plumb_kernels.judge("rms_norm", x=x, weight=weight, out=out, eps=1e-6)
    assert report.passed, report

Arrays are numpy's, or any that support DLPack (torch, jax, cupy). In numpy, bf16 is uint16 and fp8 is uint8: bit
patterns. Sizes are taken from the shapes of the arrays. docs/python.md has more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _plumb, tracked
from ._kernels import BadKernel, DeviceArray, Metadata, Unsupported, kernel
from ._kernels import numbers as _numbers
from ._own_ops import Input, Output, op
from ._plumb import BadCall
from ._run import CannotRun, CaseResult, RunReport, run

__all__ = [
    "Argument",
    "BadCall",
    "BadKernel",
    "CannotRun",
    "CaseResult",
    "DeviceArray",
    "Input",
    "Metadata",
    "Output",
    "Report",
    "RightOutput",
    "RunReport",
    "TensorReport",
    "Unsupported",
    "arguments",
    "bf16",
    "float32",
    "judge",
    "kernel",
    "launch_arguments",
    "op",
    "ops",
    "reference",
    "run",
    "tracked",
]


@dataclasses.dataclass(frozen=True)
class Argument:
    """One argument of an op. `kind`: input, output, scratch, state, real, integer or word."""

    name: str
    kind: str
    type: str  # type of the elements
    shape: str  # in terms of other arguments; for an integer: its range
    says: str
    optional: bool


@dataclasses.dataclass(frozen=True, repr=False)
class TensorReport:
    """The verdict on one output. A row is the last dimension; rows are numbered in row-major order."""

    tensor: str
    passed: bool
    rows_compared: int
    rows_total: int
    elements_compared: int
    wrong_elements: int
    wrong_rows: list[int]
    margin: float  # largest error over bound
    failures: list[str]  # one line per failed check
    pattern: str  # what the wrong rows look like, if known
    value: np.ndarray | None = None  # floating-point outputs: exact values
    bound: np.ndarray | None = None  # largest error that the declared arithmetic explains
    error_over_bound: np.ndarray | None = None  # error / bound, NaN for elements that are not promised

    def __repr__(self) -> str:
        if self.passed:
            return f"{self.tensor}: {self.elements_compared} elements right, largest error / bound {self.margin:.3g}"
        return "\n".join([*self.failures, *([self.pattern] if self.pattern else [])])


@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """The verdict on a call. str() gives plumb's text. A call without a judged output does not pass."""

    op: str
    tensors: list[TensorReport]
    right_if: str = ""  # for a failed call: the contract under which it is right, in words

    @property
    def passed(self) -> bool:
        return bool(self.tensors) and all(tensor.passed for tensor in self.tensors)

    def __bool__(self) -> bool:
        return self.passed

    def __getitem__(self, tensor: str) -> TensorReport:
        for one in self.tensors:
            if one.tensor == tensor:
                return one
        raise KeyError(f"{tensor}: there are {', '.join(one.tensor for one in self.tensors)}")

    def __repr__(self) -> str:
        head = f"{self.op} {'passed' if self.passed else 'failed'}"
        lines = [line for one in self.tensors for line in repr(one).splitlines()]
        return "\n".join([head, *("  " + line for line in [*lines, self.right_if] if line)])


@dataclasses.dataclass(frozen=True)
class RightOutput:
    """The right result for an output: its bits, and for floating-point outputs the exact value and its error bounds.

    A right result is round(value + e), where e has the standard deviation sigma and |e| <= worst (infinity if there is
    no closed form). bound is the largest |result - value| of a right result: the smaller of six sigma and worst, plus the
    rounding to the stored type.
    """

    stored: np.ndarray
    value: np.ndarray | None = None
    bound: np.ndarray | None = None
    sigma: np.ndarray | None = None
    worst: np.ndarray | None = None


def ops() -> dict[str, str]:
    """Names of all ops, and what each computes."""
    return _plumb.ops()


def arguments(op: str) -> list[Argument]:
    """The arguments of judge() and reference() for this op."""
    return [Argument(**one) for one in _plumb.arguments(op)]


def launch_arguments(op: str) -> dict[str, str]:
    """Arguments that a @kernel of this op may take, by name: tensor, integer, real or word."""
    return _plumb.launch_arguments(op)


def judge(op: str, /, *, numerics: Mapping[str, float | str] | None = None, **call: Any) -> Report:
    """Judges the outputs of one call of a kernel.

    Takes every tensor by its name, inputs and outputs. For a tensor `x` that the op changes in place, `x_before` is its
    contents before the call. arguments(op) lists all arguments. Raises BadCall, a ValueError, for contradictory arguments.
    """
    tensors, right_if = _plumb.judge(op, *_sorted(op, call), _numbers(numerics or {}))
    return Report(op, [TensorReport(**one) for one in tensors], right_if)


def reference(op: str, /, *, numerics: Mapping[str, float | str] | None = None, **call: Any) -> dict[str, RightOutput]:
    """The expected outputs for these inputs, by name. Elements that the op does not promise are 0."""
    made = _plumb.reference(op, *_sorted(op, call), _numbers(numerics or {}))
    return {name: RightOutput(**one) for name, one in made.items()}


def bf16(values: Any) -> np.ndarray:
    """Rounds numbers to bfloat16 (nearest even). Returns bit patterns (uint16)."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = np.isnan(np.asarray(values, dtype=np.float32))
    return np.where(nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def float32(bits: Any) -> np.ndarray:
    """The numbers of bfloat16 bit patterns."""
    return (np.asarray(bits, dtype=np.uint16).astype(np.uint32) << 16).view(np.float32)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__dlpack__") or isinstance(value, np.ndarray)


def _bits(dtype: str) -> bool:
    """True for types that numpy lacks. Their arrays are passed as bit patterns."""
    return dtype.startswith(("bfloat16", "float8_"))


def _on_the_host(name: str, value: Any) -> Any:
    if hasattr(value, "detach"):  # torch
        value = value.detach().cpu()
        dtype = str(value.dtype).removeprefix("torch.")
        if _bits(dtype):
            import torch

            return value.view(torch.uint8 if dtype.startswith("float8") else torch.int16)
        return value
    if hasattr(value, "get"):  # cupy
        value = value.get()
    if not isinstance(value, np.ndarray):  # jax, or any other
        value = np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
    if _bits(value.dtype.name):  # types of ml_dtypes
        return value.view(np.uint8 if value.dtype.itemsize == 1 else np.uint16)
    if value.dtype.kind not in "iufb":
        raise BadCall(f"{name}: an array of {value.dtype} is nothing that an op has")
    return value


def _sorted(op: str, call: Mapping[str, Any]) -> tuple[dict, dict, dict, dict]:
    arrays: dict[str, Any] = {}
    integers: dict[str, int] = {}
    words: dict[str, str] = {}
    reals: dict[str, float] = {}
    for name, value in call.items():
        if value is None:
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if _is_array(value):
            arrays[name] = _on_the_host(name, value)
        elif isinstance(value, str):
            words[name] = value
        elif isinstance(value, (bool, int)):
            integers[name] = int(value)
        elif isinstance(value, float):
            reals[name] = value
        else:
            raise BadCall(f"{op}: {name} is a {type(value).__name__}, neither an array nor a number nor a word")
    return arrays, integers, words, reals
