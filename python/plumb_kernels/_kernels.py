# SPDX-License-Identifier: Apache-2.0
"""The decorator @kernel, and calls of the decorated functions with the arguments of a launch."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import fnmatch
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from . import _plumb

__all__ = ["BadKernel", "DeviceArray", "Kernel", "Metadata", "Unsupported", "kernel", "kernels_of", "numbers"]

_WORDS: dict[str, list[str]] = _plumb.numeric_words()
_NUMPY = {"u8": np.uint8, "i32": np.int32, "i64": np.int64, "bf16": np.uint16, "f32": np.float32}
_FROM_PLUMB = ("platform", "stream")
_MARK = "__plumb_kernels__"


class BadKernel(ValueError):
    """The function cannot be a kernel of the op. The message is one line."""


class Unsupported(Exception):
    """Raised by a kernel for a legal call that it does not support: the case is skipped."""


@dataclasses.dataclass(frozen=True)
class Metadata:
    """A tensor's metadata, without its memory, for `supports`."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: str  # "u8", "i32", "i64", "bf16", "f32"
    format: str  # of codes: "e4m3fn", "e4m3fnuz", ...; otherwise "number"


class DeviceArray:
    """A tensor on a GPU for libraries that support __cuda_array_interface__, where bf16 is int16."""

    _TYPES = {"u8": "|u1", "i32": "<i4", "i64": "<i8", "bf16": "<i2", "f32": "<f4"}
    _BYTES = {"u8": 1, "i32": 4, "i64": 8, "bf16": 2, "f32": 4}

    def __init__(self, address: int, tensor: Metadata):
        self.shape, self.strides, self.dtype, self.format = tensor.shape, tensor.strides, tensor.dtype, tensor.format
        self.address = address
        size = self._BYTES[tensor.dtype]
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": tensor.shape,
            "strides": tuple(size * stride for stride in tensor.strides),
            "typestr": self._TYPES[tensor.dtype],
            "stream": None,
        }


class _Bf16(np.ndarray):
    """bf16 bit patterns (uint16). Rejects floats, which numpy would silently store as integers."""

    def __setitem__(self, key: Any, value: Any) -> None:
        kind = np.asarray(value).dtype.kind
        if self.dtype == np.uint16 and kind in "fc":
            raise TypeError("bf16 is stored as bits: out[...] = plumb_kernels.bf16(numbers)")
        super().__setitem__(key, value)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A function as the implementation of an op."""

    op: str
    name: str
    function: Callable[..., None]
    numerics: Mapping[str, float]
    contract: str
    platforms: tuple[str, ...] | None
    supports: Callable[..., Any] | None

    @property
    def file(self) -> str | None:
        try:
            return inspect.getsourcefile(inspect.unwrap(self.function))
        except TypeError:  # a callable object without source
            return None

    def before_launch(self, platform: str, arguments: Mapping[str, Any]) -> str | None:
        """Reason why the function does not support this call; None: it does."""
        if self.platforms is not None and not any(fnmatch.fnmatch(platform, one) for one in self.platforms):
            return f"{self.name} is for {', '.join(self.platforms)}"
        if self.supports is None:
            return None
        known = {name: Metadata(*value[1:]) if isinstance(value, tuple) else value for name, value in arguments.items()}
        try:
            answer = self.supports(**_chosen(self.supports, {**known, "platform": platform}))
        except Unsupported as reason:
            return str(reason) or f"{self.name} does not support the call"
        if answer is None or answer is True or answer == "":
            return None
        return answer if isinstance(answer, str) else f"{self.name} does not support the call"

    def run(self, platform: str, stream: int, arguments: Mapping[str, Any]) -> tuple[str, str] | None:
        """Calls the function. Returns None, or ("unsupported" or "failed", reason)."""
        try:
            simulated = platform.startswith("sim-")
            given = {**arguments, "platform": platform, "stream": None if simulated else stream}
            chosen = _chosen(self.function, given)
            # Padded rows hold NaN and huge values on purpose; numpy would warn about each.
            with np.errstate(all="ignore") if simulated else _torch_stream(stream):
                make = _host_array if simulated else _device_array
                self.function(**{name: make(value) if isinstance(value, tuple) else value for name, value in chosen.items()})
        except Unsupported as reason:
            return "unsupported", str(reason) or f"{self.name} does not support the call"
        except BaseException as error:  # no exception may pass into C++
            return "failed", f"{self.name} raised {self._described(error)}"
        return None

    def _described(self, error: BaseException) -> str:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        frames = traceback.extract_tb(error.__traceback__)
        own = os.path.dirname(self.file or "")
        users = [frame for frame in frames if own and frame.filename.startswith(own)] or frames
        if not users:
            return text
        last = users[-1]
        return f"{text} ({os.path.basename(last.filename)}:{last.lineno}: {last.line})"


def kernel(
    op: str,
    *,
    numerics: Mapping[str, Any] | None = None,
    contract: Mapping[str, str] | str | None = None,
    name: str | None = None,
    platforms: str | Iterable[str] | None = None,
    supports: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function an implementation of an op. It writes its outputs in place.

    The function gets the arguments that it names, by these names (arguments of a launch:
    launch_arguments(op)); `**rest` gets all others. `platform` and `stream` are there too.
    numerics: members of plumb_numerics, as numbers or words ("bf16"). Members that are left out
    promise nothing. contract: values of the op's choices, for functions that have made them:
    {"floor": "1e-10"}, or as reports print them, "floor=1e-10 ties=even". name: stands in reports. platforms: names or patterns ("sim-*") of the
    platforms that the function is for. supports: gets the arguments before the launch, tensors as
    Metadata, and returns True, or why the call is not supported.
    Raises BadKernel.
    """
    if op not in _plumb.ops():
        raise BadKernel(f"there is no op {op}{_nearest(op, _plumb.ops())}")
    patterns = (platforms,) if isinstance(platforms, str) else None if platforms is None else tuple(platforms)

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        own_name = name or str(getattr(function, "__name__", op))
        for called in (function, supports):
            if called is not None:
                _check_names(op, called)
        made = Kernel(op, own_name, function, numbers(numerics or {}), words(contract or {}), patterns, supports)
        setattr(function, _MARK, [*getattr(function, _MARK, []), made])
        return function

    return mark


def kernels_of(functions: Iterable[Any]) -> list[Kernel]:
    """The kernels that these objects are marked as, each once."""
    found: list[Kernel] = []
    for function in functions:
        marks = getattr(function, _MARK, None) if callable(function) and not isinstance(function, type) else None
        if isinstance(marks, list):
            found.extend(one for one in marks if one not in found)
    return found


def numbers(numerics: Mapping[str, Any]) -> dict[str, float]:
    """Members of plumb_numerics as numbers. Words are those of plumb_ops.h: "bf16", "ascending"."""
    made: dict[str, float] = {}
    for member, value in numerics.items():
        if isinstance(value, str):
            words = _WORDS.get(member, [])
            if value not in words:
                raise BadKernel(f"numerics: {member} is {value!r}; words are {', '.join(words) or 'for other members'}")
            value = words.index(value)
        made[member] = float(value)
    return made


def words(contract: Mapping[str, str] | str) -> str:
    """A contract in plumb's form: "floor=1e-10 ties=even"."""
    if isinstance(contract, str):
        pairs = [pair.partition("=") for pair in contract.split()]
        contract = {choice: value if equals else None for choice, equals, value in pairs}
    for choice, value in contract.items():
        if not isinstance(value, str) or len(f"{choice} {value}".split()) != 2:
            raise BadKernel(f"contract: {choice} is {value!r}; a value is one word")
    return " ".join(f"{choice}={value}" for choice, value in contract.items())


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 1)
    return f" (did you mean {close[0]}?)" if close else ""


def _check_names(op: str, function: Callable[..., Any]) -> None:
    names = _plumb.launch_arguments(op)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        called = f"{op}: {getattr(function, '__name__', 'the function')}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise BadKernel(f"{called} takes {parameter.name} by position; arguments come by name")
        if parameter.name not in names and parameter.name not in _FROM_PLUMB:
            raise BadKernel(f"{called} takes {parameter.name}, which is not an argument of {op}{_nearest(parameter.name, names)}")


def _chosen(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return dict(given)
    return {one.name: given[one.name] for one in parameters}


def _host_array(tensor: tuple) -> np.ndarray:
    address, shape, strides, dtype, _ = tensor
    numpy_type = np.dtype(_NUMPY[dtype])
    if 0 in shape:
        return np.empty(shape, numpy_type)

    class Memory:
        __array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "strides": tuple(numpy_type.itemsize * stride for stride in strides),
            "typestr": numpy_type.str,
        }

    made = np.asarray(Memory())
    return made.view(_Bf16) if dtype == "bf16" else made


def _device_array(tensor: tuple) -> Any:
    made = DeviceArray(tensor[0], Metadata(*tensor[1:]))
    torch = sys.modules.get("torch")
    if torch is None:
        return made
    if 0 in made.shape:
        return torch.empty(made.shape, dtype=_torch_type(torch, made), device="cuda")
    return torch.as_tensor(made, device="cuda").view(_torch_type(torch, made))


def _torch_type(torch: Any, tensor: DeviceArray) -> Any:
    if tensor.dtype == "u8":
        eights = {"e4m3fn": "float8_e4m3fn", "e4m3fnuz": "float8_e4m3fnuz"}
        return getattr(torch, eights.get(tensor.format, "uint8"), torch.uint8)
    return {"i32": torch.int32, "i64": torch.int64, "bf16": torch.bfloat16, "f32": torch.float32}[tensor.dtype]


def _torch_stream(stream: int) -> contextlib.AbstractContextManager:
    torch = sys.modules.get("torch")
    if torch is None:
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(stream or 0))
