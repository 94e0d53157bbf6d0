# SPDX-License-Identifier: Apache-2.0
"""Arrays that carry error bounds for right rounding. The reference of an @op is written with them.

    from plumb_kernels import tracked as t

    def reference(x, weight, eps):
        return x * t.rsqrt(t.mean(x * x, axis=-1, keepdims=True) + eps) * weight

Values are exact. Bounds assume that every operator and function rounds to fp32 once, that sums have the order that the
kernel declares, and that exp and similar functions have the declared ulp. rounded(x, "bf16") says that implementations
store x in bf16. Arrays broadcast as in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _plumb

__all__ = [
    "Tracked",
    "array",
    "concatenate",
    "e4m3fn",
    "e4m3fnuz",
    "e8m0",
    "exp",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "reshape",
    "rounded",
    "rsqrt",
    "scatter",
    "sigmoid",
    "softplus",
    "sqrt",
    "sum",
    "tanh",
    "transpose",
    "truncated",
    "where",
]

Tracked = _plumb.Tracked

exp = _plumb.tracked_exp
log = _plumb.tracked_log
sqrt = _plumb.tracked_sqrt
rsqrt = _plumb.tracked_rsqrt
sigmoid = _plumb.tracked_sigmoid
tanh = _plumb.tracked_tanh
softplus = _plumb.tracked_softplus

sum = _plumb.tracked_sum
mean = _plumb.tracked_mean
max = _plumb.tracked_max
maximum = _plumb.tracked_maximum

rounded = _plumb.tracked_rounded
truncated = _plumb.tracked_truncated
transpose = _plumb.tracked_transposed


def array(values: Any) -> Any:
    """Exact numbers as a tracked array."""
    return _plumb.tracked_array(np.ascontiguousarray(values, np.float64))


def matmul(a: Any, b: Any) -> Any:
    """[..., m, k] x [k, n] or x [..., k, n]. Products and sums are rounded as the kernel declares."""
    return a @ b


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where `condition` (booleans) is true, otherwise b. Shapes broadcast."""
    return _plumb.tracked_where(np.ascontiguousarray(condition, np.float64), _operand(a), _operand(b))


def scatter(a: Any, indices: Any, size: int, axis: int = 0) -> Any:
    """An array with `size` rows along the axis: row i of `a` at index indices[i], zeros in other rows."""
    return _plumb.tracked_scattered(a, axis, np.ascontiguousarray(indices, np.int64), size)


def e4m3fn(codes: Any) -> np.ndarray:
    """Exact numbers of E4M3FN codes (OCP); NaN for 0x7f and 0xff."""
    return _e4m3(codes, 7, (0x7F, 0xFF))


def e4m3fnuz(codes: Any) -> np.ndarray:
    """Exact numbers of AMD's E4M3FNUZ codes; NaN for 0x80."""
    return _e4m3(codes, 8, (0x80,))


def e8m0(codes: Any) -> np.ndarray:
    """Powers of two 2^(code - 127) of exponent codes; NaN for 255."""
    codes = np.asarray(codes, np.int64)
    return np.where(codes == 255, np.nan, np.ldexp(1.0, codes - 127))


def _e4m3(codes: Any, bias: int, nan: tuple[int, ...]) -> np.ndarray:
    codes = np.asarray(codes, np.int64)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    size = np.where(exponent == 0, np.ldexp(mantissa / 8, 1 - bias), np.ldexp(1 + mantissa / 8, exponent - bias))
    return np.where(np.isin(codes, nan), np.nan, np.where(codes & 0x80, -size, size))


def _operand(value: Any) -> Any:
    return np.ascontiguousarray(value, np.float64) if isinstance(value, np.ndarray) else value


def reshape(a: Any, sizes: Sequence[int]) -> Any:
    """The same elements in another shape. One size may be -1."""
    sizes = list(sizes)
    if sizes.count(-1) == 1:
        rest = 1
        for size in sizes:
            rest *= size if size != -1 else 1
        count = 1
        for size in a.shape:
            count *= size
        sizes[sizes.index(-1)] = count // rest if rest else 0
    return _plumb.tracked_reshaped(a, sizes)


def concatenate(parts: Sequence[Any], axis: int = 0) -> Any:
    """Concatenates arrays along an axis."""
    return _plumb.tracked_joined(list(parts), axis)


def _item(a: Any, key: Any) -> Any:
    keys = list(key) if isinstance(key, tuple) else [key]
    named = len([one for one in keys if one is not None and one is not Ellipsis])
    if named > len(a.shape):
        raise IndexError(f"{named} indices of an array of {len(a.shape)} dimensions")
    dots = [i for i, one in enumerate(keys) if one is Ellipsis]
    if dots:
        at = dots[0]
        keys[at : at + 1] = [slice(None)] * (len(a.shape) - named)
    keys += [slice(None)] * (len(a.shape) - len([one for one in keys if one is not None]))
    sizes: list[int] = []
    axis = 0
    for one in keys:
        if one is None:
            sizes.append(1)
            continue
        size = a.shape[axis]
        if isinstance(one, np.ndarray):  # an array of integers selects rows of the axis
            places = np.where(one < 0, one + size, one)
            a = _plumb.tracked_gathered(a, axis, np.ascontiguousarray(places.reshape(-1), np.int64))
            sizes.extend(one.shape)
            axis += 1
            continue
        if isinstance(one, slice):
            first, end, step = one.indices(size)
            if step != 1:
                raise IndexError("slices of arrays have step 1")
            count = _larger(end - first, 0)
            sizes.append(count)
        else:
            first = int(one) + (size if int(one) < 0 else 0)
            if not 0 <= first < size:
                raise IndexError(f"index {one} of an axis of size {size}")
            count = 1
        if count != size:
            a = _plumb.tracked_sliced(a, axis, first, count)
        axis += 1
    return a if list(a.shape) == sizes else _plumb.tracked_reshaped(a, sizes)


def _larger(a: int, b: int) -> int:
    return a if a > b else b


Tracked.__getitem__ = _item
