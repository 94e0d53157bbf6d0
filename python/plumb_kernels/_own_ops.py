# SPDX-License-Identifier: Apache-2.0
"""The decorator @op: declares an op that plumb does not have. A Python function of tracked arrays is its reference."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _plumb
from ._kernels import BadKernel

__all__ = ["Input", "Output", "op"]

_TYPES = ("u8", "i32", "i64", "bf16", "f32")


class _Array:
    def __init__(
        self,
        dtype: str,
        *shape: str | int,
        says: str = "",
        least: int = 0,
        below: str | int = 256,
        scale: float = 1.0,
        between: Sequence[float] = (),
    ):
        if dtype not in _TYPES:
            raise BadKernel(f"an array of {dtype!r}: it is one of {', '.join(_TYPES)}")
        if not shape:
            raise BadKernel('an array without sizes: Input("f32", 1) has one element')
        self.dtype, self.shape = dtype, [str(size) for size in shape]
        self.says, self.least, self.below, self.scale = says, least, str(below), scale
        self.between = [float(end) for end in between]

    def as_dict(self, name: str, output: bool, optional: bool) -> dict[str, Any]:
        return {**vars(self), "name": name, "output": output, "optional": optional}


class Input(_Array):
    """An array that the op reads: Input("bf16", "tokens", "hidden").

    Sizes are names, numbers, or expressions of these with + - * / ("4*hidden", "width-1"). Integers are drawn
    from least to below - 1; below may be a size ("rows"). Floats are normal with standard deviation scale, in rows of
    very different magnitude, or lie in a range (between=(0, 1)). An input with the default None is optional.
    """


class Output(_Array):
    """An array that the op writes. Used in the annotation of the reference's return value."""


@dataclasses.dataclass(frozen=True)
class _Reference:
    """Calls the reference. Returns its results as a list in the order of the outputs."""

    name: str
    function: Callable[..., Any]
    outputs: Mapping[str, Output]
    wanted: frozenset[str]
    flags: frozenset[str]

    def __call__(self, inputs: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[Any]:
        given = {**inputs, **numbers}
        made = self.function(**{name: bool(given[name]) if name in self.flags else given[name] for name in self.wanted})
        if isinstance(made, Mapping):
            made = [made[name] for name in self.outputs]
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(results) != len(self.outputs):
            raise ValueError(f"{_counted(len(results))} for {', '.join(self.outputs)}")
        return [self._checked(one, name, output, numbers) for one, (name, output) in zip(results, self.outputs.items())]

    def _checked(self, made: Any, name: str, output: Output, numbers: Mapping[str, Any]) -> Any:
        wanted = tuple(_value(size, numbers) for size in output.shape)
        floats = output.dtype in ("bf16", "f32")
        if isinstance(made, _plumb.Tracked) != floats:
            raise TypeError(f"{name} is {output.dtype}, and the reference returns {type(made).__name__}")
        if not floats:
            made = np.ascontiguousarray(made, dtype=np.int64)
        if tuple(made.shape) != wanted:
            raise ValueError(f"{name} has the shape {list(made.shape)}; declared [{', '.join(output.shape)}] is {list(wanted)}")
        return made


def _counted(results: int) -> str:
    return "1 result" if results == 1 else f"{results} results"


def _value(size: str, numbers: Mapping[str, Any]) -> int:
    """Value of a size such as "2*dim - 1" with C++'s rules: products and quotients from left to right, then sums."""
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", size.replace(" ", "")):
        value, operation = 1, "*"
        for word in re.split(r"([*/])", term):
            if word in "*/":
                operation = word
                continue
            factor = int(word) if word.isdigit() else int(numbers[word])
            value = value * factor if operation == "*" else value // factor
        total += -value if sign == "-" else value
    return total


def _names_in(spec: _Array) -> set[str]:
    words = {word for size in [*spec.shape, spec.below] for word in re.split(r"[-+*/ ]+", size)}
    return {word for word in words if word and not word.isdigit()}


def _outputs_of(name: str, annotation: Any) -> dict[str, Output]:
    outputs = {"out": annotation} if isinstance(annotation, Output) else annotation
    if not isinstance(outputs, Mapping) or not outputs or not all(isinstance(one, Output) for one in outputs.values()):
        raise BadKernel(f'{name} returns Output("f32", ...) or {{"out": Output(...), ...}}; its annotation says {annotation!r}')
    return dict(outputs)


def op(
    *,
    sizes: Mapping[str, int | Sequence[int]],
    live: str | None = None,
    name: str | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares an op whose reference is this function of tracked arrays.

    The signature is the op's table: Input annotations are arrays, float parameters are reals with their usual values,
    bool parameters are flags that cases try with both values, int parameters get sizes, and the return annotation
    lists the outputs.
    Floating-point inputs are passed as tracked arrays, integers as numpy arrays.
    sizes: the values that cases use for each size; the first one is the usual value. live: the size that counts rows
    of a captured graph; rows after the live ones are padding. Default: the first size of the first output.
    live="": there is no padding. rows: further cases in addition to those from the sizes,
    {"name": ..., "why": ..., "tokens": 7}.
    Raises BadKernel.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        own = name or function.__name__
        signature = inspect.signature(function, eval_str=True)
        outputs = _outputs_of(own, signature.return_annotation)
        tensors: list[dict[str, Any]] = []
        reals: dict[str, float] = {}
        used: set[str] = set()
        values = {size: [of] if isinstance(of, int) else [int(one) for one in of] for size, of in sizes.items()}
        flags: set[str] = set()
        for parameter in signature.parameters.values():
            spec = parameter.annotation
            if isinstance(spec, Input):
                tensors.append(spec.as_dict(parameter.name, False, parameter.default is None))
                used |= _names_in(spec)
            elif spec is float:
                if parameter.default is parameter.empty:
                    raise BadKernel(f"{own}: {parameter.name} has no usual value: {parameter.name}: float = 1e-6")
                reals[parameter.name] = float(parameter.default)
            elif spec is bool:
                if parameter.name in sizes:
                    raise BadKernel(f"{own}: {parameter.name} is a bool, and sizes has values of it")
                if not isinstance(parameter.default, bool):
                    raise BadKernel(f"{own}: {parameter.name} has no usual value: {parameter.name}: bool = False")
                values[parameter.name] = [int(parameter.default), int(not parameter.default)]
                flags.add(parameter.name)
            elif spec is not int or parameter.name not in sizes:
                raise BadKernel(f"{own}: {parameter.name} is an Input(...), a float, a bool, or a size as int")
        for output, spec in outputs.items():
            tensors.append(spec.as_dict(output, True, False))
            used |= _names_in(spec)
        if wrong := sorted(used & flags):
            raise BadKernel(f"{own}: {', '.join(wrong)} is a bool, and no size")
        if missing := sorted(used - set(sizes)):
            raise BadKernel(f"{own}: sizes has no values of {', '.join(missing)}")
        first = next(iter(outputs.values())).shape[0]
        counted = live if live is not None else first if first in sizes else ""
        _check_rows(own, rows, values, [tensor["name"] for tensor in tensors if tensor["optional"]])
        reference = _Reference(own, function, outputs, frozenset(signature.parameters), frozenset(flags))
        summary = (inspect.getdoc(function) or own).splitlines()[0].rstrip(".")
        try:
            _plumb.add_op(own, summary, tensors, values, reals, counted, [_row(own, row, values) for row in rows], reference)
        except ValueError as error:
            raise BadKernel(str(error)) from None
        return function

    return declare


def _check_rows(own: str, rows: Sequence[Mapping[str, Any]], sizes: Mapping[str, Sequence[int]], optional: Sequence[str]) -> None:
    """Rejects rows with the name of a generated row."""
    made = {"usual", "rows_apart", *(f"random_{i}" for i in range(4)), *(f"without_{name}" for name in optional)}
    made |= {f"{size}_{value}" for size, values in sizes.items() for value in values[1:]}
    names = [row.get("name") for row in rows]
    for name in names:
        if name in made or names.count(name) > 1:
            raise BadKernel(f"{own}: there is a row {name} already")
        if isinstance(name, str) and not re.fullmatch(r"\w+", name):
            raise BadKernel(f"{own}: {name!r} is not a valid name of a row")


def _row(own: str, row: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    known = {"name", "why", "tier"}
    if "name" not in row or "why" not in row:
        raise BadKernel(f"{own}: a row has a name and a why")
    if unknown := sorted(set(row) - known - set(sizes)):
        raise BadKernel(f"{own}: row {row['name']}: there is no size {', '.join(unknown)}")
    return {
        "name": row["name"],
        "why": row["why"],
        "tier": row.get("tier", "default"),
        "sizes": {size: int(value) for size, value in row.items() if size not in known},
    }
