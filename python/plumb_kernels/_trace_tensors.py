# SPDX-License-Identifier: Apache-2.0
"""What a trace says of a tensor of torch or numpy, and its bytes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

try:
    from . import _trace_file
    from ._trace_file import BadTrace

    WHY_NO_FILES = ""
except ImportError as error:  # libhdf5 is not on this machine
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


def describe_tensor(value: Any, redact: bool) -> StoredTensor:
    wanted = value if isinstance(value, Described) else Described(value)
    blocks = None if wanted.blocks is None else sorted({int(block) for block in wanted.blocks})
    is_torch = hasattr(wanted.tensor, "untyped_storage")
    name, described, data = (_torch_tensor if is_torch else _numpy_tensor)(wanted.tensor, blocks)
    # numpy has no bf16: plumb's arrays of it hold the bits.
    described["dtype"] = wanted.dtype or ("bf16" if name == "uint16" and not is_torch else _NAMES.get(name))
    if described["dtype"] is None:
        raise BadTrace(f"a trace has no tensors of {name}")
    if blocks is not None:
        described["blocks"] = blocks
    parameter = is_torch and type(wanted.tensor).__name__ == "Parameter"
    return StoredTensor(described, None if redact else data, wanted.constant or parameter)
