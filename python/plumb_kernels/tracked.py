# SPDX-License-Identifier: Apache-2.0
"""Arrays that carry what honest rounding may do to them. The reference of an @op is written with them.

    from plumb_kernels import tracked as t

    def reference(x, weight, eps):
        return x * t.rsqrt(t.mean(x * x, axis=-1, keepdims=True) + eps) * weight

Values are exact, and bounds follow: every operator and function rounds to fp32 once, sums are of the
order that the kernel declares, exp and its like are within the declared ulp. rounded(x, "bf16") says
that an implementation stores x in bf16 in between. Arrays broadcast as numpy's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _plumb

__all__ = [
    "Tracked",
    "concatenate",
    "exp",
    "log",
    "max",
    "maximum",
    "mean",
    "reshape",
    "rounded",
    "rsqrt",
    "sigmoid",
    "softplus",
    "sqrt",
    "sum",
    "tanh",
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


def reshape(a: Any, sizes: Sequence[int]) -> Any:
    """The same elements under other sizes. One size may be -1."""
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
    """Arrays one after the other along an axis."""
    return _plumb.tracked_joined(list(parts), axis)


def _item(a: Any, key: Any) -> Any:
    keys = list(key) if isinstance(key, tuple) else [key]
    named = len([one for one in keys if one is not None and one is not Ellipsis])
    if named > len(a.shape):
        raise IndexError(f"{named} indices of an array of {len(a.shape)} dimensions")
    if Ellipsis in keys:
        at = keys.index(Ellipsis)
        keys[at : at + 1] = [slice(None)] * (len(a.shape) - named)
    keys += [slice(None)] * (len(a.shape) - len([one for one in keys if one is not None]))
    sizes: list[int] = []
    axis = 0
    for one in keys:
        if one is None:
            sizes.append(1)
            continue
        size = a.shape[axis]
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
