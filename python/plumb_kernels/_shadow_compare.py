# SPDX-License-Identifier: Apache-2.0
"""Compares a graphed step with two eager runs of it, call by call and bit for bit."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_INDICES = {"u32", "i32", "u64", "i64"}  # dtypes of metadata; 8-bit integers are codes
_BYTES = {"u16": 2, "i16": 2, "f16": 2, "bf16": 2, "u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8, "f64": 8}

Call = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Run:
    """The calls of one run of a step."""

    calls: list[dict[str, Any]]
    data: Mapping[str, np.ndarray]  # bytes by digest
    captured: Mapping[int, Any]
    expired: Callable[[Any], bool]

    def by_key(self) -> dict[Any, list[int]]:
        """Numbers of the calls for each (op, name, layer)."""
        places = collections.defaultdict(list)
        for number, call in enumerate(self.calls):
            places[call["op"], call["name"], call["layer"]].append(number)
        return places


@dataclasses.dataclass(frozen=True)
class Finding:
    number: int  # number of the eager call
    call: str
    kind: str
    text: str
    more: dict[str, Any]


class Comparison:
    """Compares the runs. `findings` are in the order of the eager calls."""

    def __init__(self, graphed: Run, eager: Run, again: Run, *, live: int | None, padded: int | None, history: dict[Any, Any], places: Any):
        self._graphed, self._eager, self._again = graphed, eager, again
        self._live, self._padded, self._history, self._places = live, padded, history, places
        self.findings: list[Finding] = []
        self.calls = self.tensors = self.unstable = 0
        self._written: set[int] = set()  # addresses that calls of the graphed step wrote
        for number, pair in self._pairs():
            self._number, self._name = number, _name_of(self._eager.calls[number])
            if pair is None:
                self._find("missing_call", "eager makes this call, and the graphed step does not: a branch that the capture froze?")
            else:
                self.calls += 1
                self._compare(*pair)

    def _pairs(self) -> Iterator[tuple[int, tuple[int, int] | None]]:
        """Pairs each eager call with the calls of the other runs. Warm-up runs come first, so the last calls belong to the replay."""
        graphed, again, eager = self._graphed.by_key(), self._again.by_key(), self._eager.by_key()
        partners: dict[int, tuple[int, int] | None] = {}
        for key, numbers in eager.items():
            for back, number in enumerate(reversed(numbers), 1):
                if back > len(graphed[key]):
                    partners[number] = None
                elif back <= len(again[key]):
                    partners[number] = graphed[key][-back], again[key][-back]
        yield from sorted(partners.items())

    def _find(self, kind: str, text: str, **more: Any) -> None:
        self.findings.append(Finding(self._number, self._name, kind, text, more))

    def _compare(self, graphed: int, again: int) -> None:
        calls = self._graphed.calls[graphed], self._eager.calls[self._number], self._again.calls[again]
        captured = self._graphed.captured.get(graphed)
        if captured is not None:
            self._name = f"{_name_of(calls[0])}, replay {calls[0]['replay']}"
            self._compare_captured(*calls[:2], captured)
        differ = {side: dict(self._differences(side, *calls)) for side in ("before", "after")}
        for name, text in differ["before"].items():
            self._different_input(name, text, *calls[:2])
        for name, text in differ["after"].items():
            kind, why = self._why_output(differ["before"], *calls[:2])
            self._find(kind, f"after {name}: {text}{why}", tensor=name)
        self._compare_padding(calls[0])
        self._remember(*calls[:2])
        self._written |= {_address(one) for one in calls[0]["after"].values()}

    def _why_output(self, different_inputs: Mapping[str, str], graphed: Call, eager: Call) -> tuple[str, str]:
        if graphed["name"] == "state behind the step":
            return "state", ""
        if different_inputs:
            return "inputs", ""
        padding = [name for name, one in graphed["before"].items() if one.get("data") != eager["before"].get(name, {}).get("data")]
        if not padding:
            return "outputs", ""
        nan = [name for name in padding if self._live is not None and self._has_nan(graphed, "before", name, live=False)]
        return "padding", f"; rows of padding differ in {', '.join(padding)}" + (f", and are NaN in {', '.join(nan)}" if nan else "")

    def _differences(self, side: str, *calls: Call) -> Iterator[tuple[str, str]]:
        for name, eager in calls[1].get(side, {}).items():
            tensors = [call.get(side, {}).get(name) for call in calls]
            if any(one is None or "data" not in one for one in tensors):
                continue
            self.tensors += 1
            text = self._difference(calls[0], *tensors)
            if text:
                yield name, text

    def _difference(self, call: Call, *tensors: Mapping[str, Any]) -> str:
        """Text about differences, counting only elements for which both eager runs agree. "": none."""
        graphed, eager, again = tensors
        if graphed["dtype"] != eager["dtype"] or graphed["shape"][1:] != eager["shape"][1:] or graphed.get("blocks") != eager.get("blocks"):
            return f"{graphed['dtype']} {graphed['shape']} in the graph, {eager['dtype']} {eager['shape']} eagerly"
        if eager["data"] != again["data"]:
            self.unstable += 1
        if graphed["data"] == eager["data"]:
            return ""
        bits = [self._bits(run, one, call) for run, one in zip((self._graphed, self._eager, self._again), tensors)]
        if any(one is None for one in bits):
            return "values differ"
        rows = min(len(one) for one in bits)
        mine, right, twice = (one[:rows] for one in bits)
        wrong = (mine != right) & (right == twice)
        if not wrong.any():
            return ""
        first = [int(one) for one in np.argwhere(wrong)[0]]
        # Rows of the stored tensor, which may be a sample.
        return (
            f"{wrong.sum()} of {wrong.size} elements differ, in {wrong.reshape(rows, -1).any(1).sum()} of {rows} rows; "
            f"the first is {first}: 0x{int(mine[tuple(first)]):x}, eagerly 0x{int(right[tuple(first)]):x}"
        )

    def _bits(self, run: Run, tensor: Mapping[str, Any], call: Call) -> np.ndarray | None:
        data = run.data.get(tensor["data"])
        if data is None:
            return None
        size = _BYTES.get(tensor["dtype"], 1)
        stored = np.frombuffer(data, f"u{size}")
        shape = list(tensor["shape"]) or [1]
        if "blocks" in tensor:
            shape[0] = len(tensor["blocks"])
        return stored.reshape(shape)[self._live_rows(shape, call)]

    def _live_rows(self, shape: list[int], call: Call) -> Any:
        if self._live is None:
            return slice(None)
        if call.get("rows_of") == self._padded and shape[0] == len(call.get("rows", ())):
            return np.asarray(call["rows"]) < self._live
        return slice(self._live) if shape[0] == self._padded else slice(None)

    def _different_input(self, name: str, text: str, graphed: Call, eager: Call) -> None:
        mine, right = graphed["before"][name], eager["before"][name]
        derived = name in graphed["after"] or _address(mine) in self._written
        if mine["dtype"] not in _INDICES or "replay" not in graphed or derived:
            self._find("inputs", f"before {name}: {text}", tensor=name)
            return
        why = []
        seen = self._history.get(self._place(graphed, name))
        if seen and seen["first"] == mine["data"]:
            why.append(f"it holds the values of replay {seen['replay']}: not refreshed since the capture")
        elif seen and seen["eager"] == mine["data"]:
            why.append("it holds the values of the step before: refreshed one step late")
        places = [_address(one) for one in (mine, right)]
        if places[0] != places[1]:
            why.append(f"the graph reads it at 0x{places[0]:x} ({self._places.state(places[0])}), eager at 0x{places[1]:x}")
        self._find("metadata", "; ".join([f"before {name}: {text}", *why]), tensor=name)

    @staticmethod
    def _place(call: Call, name: str) -> Any:
        return call["op"], call["name"], call["layer"], call["before"][name]["shape"][:1][0] if call["before"][name]["shape"] else 0, name

    def _remember(self, graphed: Call, eager: Call) -> None:
        for name, tensor in graphed["before"].items():
            if "replay" in graphed and tensor["dtype"] in _INDICES and name in eager["before"]:
                seen = self._history.setdefault(self._place(graphed, name), {"first": tensor.get("data"), "replay": graphed["replay"]})
                seen["eager"] = eager["before"][name].get("data")

    def _compare_captured(self, graphed: Call, eager: Call, captured: Any) -> None:
        for name in sorted({*graphed["scalars"], *eager["scalars"]}):
            mine, right = (call["scalars"].get(name) for call in (graphed, eager))
            if mine != right:
                self._find("scalars", f"{name} is {mine}, eagerly {right}", scalar=name)
        self._compare_kernels(graphed.get("kernels", []), eager.get("kernels", []))
        for side in ("before", "after"):
            for name, tensor in getattr(captured, side).items():
                self._check_pointer(side, name, tensor)

    def _compare_kernels(self, graphed: list[Call], eager: list[Call]) -> None:
        names = [[kernel["name"] for kernel in one] for one in (graphed, eager)]
        if names[0] != names[1]:
            self._find("kernels", f"kernels {', '.join(names[0]) or 'none'}; eagerly {', '.join(names[1]) or 'none'}")
            return
        for mine, right in zip(graphed, eager):
            if mine["grid"] != right["grid"]:
                self._find("kernels", f"{mine['name']}: grid {mine['grid']}, eagerly {right['grid']}")
            for name, number in mine.get("scalars", {}).items():
                if number != right.get("scalars", {}).get(name):
                    self._find("scalars", f"{mine['name']}: {name} is {number}, eagerly {right.get('scalars', {}).get(name)}", scalar=name)

    def _check_pointer(self, side: str, name: str, tensor: Any) -> None:
        if tensor.storage is None or not self._graphed.expired(tensor.storage):
            return
        pointer = tensor.layout["storage"]
        state = self._places.state(pointer)
        if state == "used":
            self._find("pointer", f"{side} {name}: its memory at 0x{pointer:x} was freed since the capture, and another tensor re-uses it", tensor=name)
        elif state == "free":
            self._find("pointer", f"{side} {name}: its memory at 0x{pointer:x} was freed since the capture", tensor=name)

    def _compare_padding(self, call: Call) -> None:
        if self._live is None:
            return
        dead = [name for name in call.get("before", {}) if self._has_nan(call, "before", name, live=False)]
        if not dead or any(self._has_nan(call, "before", name, live=True) for name in call["before"]):
            return
        for name in call["after"]:
            if self._has_nan(call, "after", name, live=True):
                self._find("padding_nan", f"NaN in rows of {', '.join(dead)} from row {self._live} on is NaN in live rows of {name}", tensor=name)

    def _has_nan(self, call: Call, side: str, name: str, live: bool) -> bool:
        tensor = call[side][name]
        data = self._graphed.data.get(tensor.get("data", ""))
        if data is None or "blocks" in tensor or not tensor["shape"]:
            return False
        nan = nan_of(tensor["dtype"], data).reshape(tensor["shape"])
        rows = self._live_rows(tensor["shape"], call)
        if rows == slice(None) if isinstance(rows, slice) else False:
            return live and bool(nan.any())
        kept = np.zeros(len(nan), bool)
        kept[rows] = True
        return bool(nan[kept if live else ~kept].any())


def _address(tensor: Mapping[str, Any]) -> int:
    return tensor["storage"] + tensor["offset"]


def nan_of(dtype: str, data: np.ndarray) -> np.ndarray:
    """Mask of the NaN elements."""
    if dtype == "bf16":
        return (np.frombuffer(data, np.uint16) & 0x7FFF) > 0x7F80
    if dtype == "e4m3fn":
        return (np.frombuffer(data, np.uint8) & 0x7F) == 0x7F
    if dtype in _FLOATS:
        return np.isnan(np.frombuffer(data, _FLOATS[dtype]))
    return np.zeros(len(data) // _BYTES.get(dtype, 1), bool)


def _name_of(call: Call) -> str:
    layer = f"layer {call['layer']}: " if call["layer"] >= 0 else ""
    name = call["op"] or call["name"]
    return layer + (f"{name} ({call['name']})" if call["op"] and call["name"] != call["op"] else name)
