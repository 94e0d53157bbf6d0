# SPDX-License-Identifier: Apache-2.0
"""Describes tensors of torch or numpy for a trace, and reads their bytes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

try:
    from . import _trace_file
    from ._trace_file import BadTrace

    WHY_NO_FILES = ""
except ImportError as error:  # libhdf5 is missing on this machine
    _trace_file = None
    WHY_NO_FILES = str(error)

    class BadTrace(OSError):  # type: ignore[no-redef]
        """A trace that cannot be written."""


_NAMES = {
    "bool": "bool", "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32",
    "uint64": "u64", "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "float8_e4m3fn": "e4m3fn", "float8_e4m3fnuz": "e4m3fnuz", "float8_e5m2": "e5m2", "float8_e8m0fnu": "e8m0",
    "float4_e2m1fn_x2": "e2m1x2",
}  # fmt: skip


@dataclasses.dataclass
class StoredTensor:
    """Description of a tensor in a trace, and its bytes."""

    described: dict[str, Any]
    data: np.ndarray | None  # bytes; None: redacted, or written before
    constant: bool = False


@dataclasses.dataclass(frozen=True)
class Described:
    """A tensor with what torch and numpy do not know: the meaning of its bytes, or which blocks to store.

    `tensor` and `blocks` may be callables. A recorder calls them before the call, or before the replay.
    """

    tensor: Any
    dtype: str | None = None  # "e4m3fn" for codes in uint8
    blocks: Any = None  # blocks of a paged cache that the call touches: indices of the first dimension
    constant: bool = False  # equal in every step: stored once
    at_most: int = 64  # largest number of blocks for a call in a graph


def resolved(value: Any) -> Described:
    """`value` as Described. A callable tensor is called."""
    wanted = value if isinstance(value, Described) else Described(value)
    return dataclasses.replace(wanted, tensor=wanted.tensor()) if callable(wanted.tensor) else wanted


def block_numbers(blocks: Any) -> list[int] | None:
    """Block numbers in ascending order. None: all blocks."""
    blocks = blocks() if callable(blocks) else blocks
    return None if blocks is None else sorted({int(block) for block in blocks})


def is_torch(tensor: Any) -> bool:
    return hasattr(tensor, "untyped_storage")


def _torch_layout(tensor: Any) -> tuple[str, dict[str, Any]]:
    return str(tensor.dtype).removeprefix("torch."), {
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "storage": tensor.untyped_storage().data_ptr(),
        "offset": tensor.storage_offset() * tensor.element_size(),
    }


def _torch_bytes(tensor: Any, numbers: list[int] | None) -> np.ndarray:
    import torch

    tensor = tensor.detach()
    if numbers is not None:
        tensor = tensor[torch.as_tensor(numbers, dtype=torch.int64, device=tensor.device)]
    # reshape first: a 0-dimensional tensor cannot be viewed with another element size.
    stored = tensor.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
    return np.array(stored, copy=True)


def storage_of(array: np.ndarray) -> np.ndarray:
    """The array that owns this one's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _numpy_layout(array: np.ndarray) -> tuple[str, dict[str, Any]]:
    storage, first = (one.__array_interface__["data"][0] for one in (storage_of(array), array))
    return array.dtype.name, {
        "shape": list(array.shape),
        "strides": [stride // array.itemsize for stride in array.strides],
        "storage": storage,
        "offset": max(0, first - storage),
    }


def _numpy_bytes(array: np.ndarray, numbers: list[int] | None) -> np.ndarray:
    array = array if numbers is None else array[np.asarray(numbers, np.int64)]
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def layout_of(wanted: Described) -> dict[str, Any]:
    """Dtype, shape, strides and address of a tensor. Does not read its values."""
    from_torch = is_torch(wanted.tensor)
    name, described = _torch_layout(wanted.tensor) if from_torch else _numpy_layout(np.asarray(wanted.tensor))
    # numpy has no bf16: plumb uses uint16 for its bits.
    described["dtype"] = wanted.dtype or ("bf16" if name == "uint16" and not from_torch else _NAMES.get(name))
    if described["dtype"] is None:
        raise BadTrace(f"a trace has no tensors of {name}")
    return described


def is_constant(wanted: Described) -> bool:
    return wanted.constant or (is_torch(wanted.tensor) and type(wanted.tensor).__name__ == "Parameter")


def describe_tensor(value: Any, redact: bool, rows: list[int] | None = None) -> StoredTensor:
    """`rows`: numbers of the rows to store; the others are left out."""
    wanted = resolved(value)
    described = layout_of(wanted)
    blocks = block_numbers(wanted.blocks)
    if blocks is not None:
        described["blocks"] = blocks
    if rows is not None:
        described["shape"][0] = len(rows)
    data = None
    if not redact:
        stored = rows if rows is not None else blocks
        data = _torch_bytes(wanted.tensor, stored) if is_torch(wanted.tensor) else _numpy_bytes(np.asarray(wanted.tensor), stored)
    return StoredTensor(described, data, is_constant(wanted))
