# SPDX-License-Identifier: Apache-2.0
"""Records calls inside captured graphs.

In a capture, a call is recorded by graph nodes that copy each of its tensors into a side buffer. A replay fills the
side buffers, which are read out after it. They are part of an arena that is allocated before the capture: memory
allocated during a capture would belong to the graph's pool, and other graphs would reuse it.
"""

from __future__ import annotations

import dataclasses
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._row_sampler import RowSampler, total_rows
from ._trace_tensors import Described, StoredTensor, block_numbers, describe_tensor, is_constant, is_torch, layout_of, resolved
from ._trace_writer import Step, Trace, call_header, plain_numbers

_ALIGNMENT = 256
_INDEX_BYTES = 1 << 20
_UNWRITTEN = 0xFF  # NaN as a float, -1 as an integer: shows a copy that never ran


@dataclasses.dataclass
class ChosenBlocks:
    """Blocks of paged caches that one graph copies. They are chosen before each replay."""

    blocks: Any  # block numbers, or a callable that returns them
    at_most: int
    index: Any
    tensors: int = 0


@dataclasses.dataclass
class CapturedTensor:
    """One tensor of a captured call: its side buffer, or the source that replaces it."""

    layout: dict[str, Any]
    constant: bool
    first: int = 0  # offset in the arena, in bytes
    size: int = 0
    total: int | None = None  # rows of the tensor, if only chosen rows are copied
    blocks: Any = None
    chosen: ChosenBlocks | None = None
    stored: StoredTensor | None = None  # tensors of the host: values at the capture
    kept: dict[str, Any] | None = None  # parameters: values, once read
    current: Any = None  # a callable, or a parameter, that is read at each replay
    storage: Any = None
    owner: Any = None  # weak reference


class CapturedCall:
    """A call that has begun in a capture. `end` adds the tensors that it wrote."""

    def __init__(self, graph: CapturedGraph, op: str, described: dict[str, Any]):
        self._graph = graph
        before = described.pop("before", {})
        self._rows = set(described.pop("rows", ()))
        scalars = described.pop("scalars", None) or {}
        self.scalars = {name: value for name, value in scalars.items() if callable(value)}
        self.header = call_header(op, scalars={name: value for name, value in scalars.items() if not callable(value)}, **described)
        self.launches: list[dict[str, Any]] = []
        self.total = total_rows(self._rows, before) if graph.sampler else None
        self.before = self._captured(before)
        self.after: dict[str, CapturedTensor] = {}

    def end(self, after: Mapping[str, Any]) -> None:
        self.after = self._captured(after)
        self._graph.calls.append(self)

    def _captured(self, tensors: Mapping[str, Any]) -> dict[str, CapturedTensor]:
        cut = self._rows if self.total is not None else ()
        return {name: self._graph.copy(one, self.total if name in cut else None) for name, one in tensors.items() if one is not None}


class CapturedGraph:
    """The calls of one graph, and their side buffers."""

    def __init__(self, graphs: GraphCalls):
        self.owner, self._device = graphs, graphs.device
        self.sampler = graphs.sampler
        self.arena, self._indexes = graphs.side, graphs.indexes  # live as long as the graph, whose nodes write there
        self.start = self.end = self.arena.used
        self.calls: list[CapturedCall] = []
        self.read_before_launches: list[CapturedTensor] = []  # torch tensors: the replay may change them
        self.read_after_launches: list[CapturedTensor] = []  # of the host: the device works meanwhile
        self.replays = 0
        self.rows: dict[int, Any] = {}  # index tensors by total number of rows
        self.rows_of_step = -1  # step for which they hold row numbers
        self.blocks: dict[tuple[int, int], ChosenBlocks] = {}
        self.copied_out: Any = None  # mark behind the copies out of the side buffers; the next replay waits for it

    def copy(self, value: Any, total: int | None) -> CapturedTensor:
        """Adds a node that copies this tensor."""
        if callable(value) or (isinstance(value, Described) and callable(value.tensor)):
            wanted = resolved(value)
            made = CapturedTensor(layout_of(wanted), is_constant(wanted), current=value, total=self._cut(total))
            of_host = not is_torch(wanted.tensor) and not self._device.owns(wanted.tensor)
            (self.read_after_launches if of_host else self.read_before_launches).append(made)
            return made
        wanted = resolved(value)
        made = CapturedTensor(layout_of(wanted), is_constant(wanted), blocks=wanted.blocks)
        if not self._device.owns(wanted.tensor):
            made.stored = describe_tensor(wanted, False)
        elif is_torch(wanted.tensor) and type(wanted.tensor).__name__ == "Parameter":
            made.current = wanted
            self.read_before_launches.append(made)
        else:
            made.total = self._cut(total)
            self._copy(made, wanted)
        return made

    def _cut(self, total: int | None) -> int | None:
        if total is None or self.sampler is None or total <= self.sampler.rows:
            return None
        if total not in self.rows:
            self.rows[total] = self._index(self.sampler.rows)
        return total

    def _copy(self, made: CapturedTensor, wanted: Described) -> None:
        tensor = wanted.tensor
        made.storage, made.owner = self._device.storage(tensor), weakref.ref(self._device.owner_of(tensor))
        index = None if made.total is None else self.rows[made.total]
        if wanted.blocks is not None:
            made.chosen = self._chosen(wanted.blocks, wanted.at_most)
            index = made.chosen.index
        numbers = len(index) if index is not None else (made.layout["shape"] or [1])[0]
        row = int(np.prod(made.layout["shape"][1:], dtype=np.int64)) * _itemsize(tensor)
        made.size = numbers * row
        taken = self.arena.take(made.size)
        if taken is None:
            made.first = -1
            self.owner.without_room += 1
        elif made.size:
            made.first, side = taken
            self.end = self.arena.used
            self._device.gather(tensor, index, side) if index is not None else self._device.copy(tensor, side)

    def _chosen(self, blocks: Any, at_most: int) -> ChosenBlocks:
        key = id(blocks), at_most
        if key not in self.blocks:
            self.blocks[key] = ChosenBlocks(blocks, at_most, self._index(at_most))
        self.blocks[key].tensors += 1
        return self.blocks[key]

    def _index(self, numbers: int) -> Any:
        taken = self._indexes.take(numbers * 8)
        if taken is None:
            raise MemoryError("no room for more numbers of rows or blocks in one graph")
        return self._device.index(taken[1])


def _itemsize(tensor: Any) -> int:
    return tensor.element_size() if is_torch(tensor) else tensor.itemsize


class Arena:
    """Bytes of a device, handed out from start to end."""

    def __init__(self, device: Any, size: int, value: int):
        self.bytes, self.size, self.used = device.arena(size, value), size, 0

    def take(self, size: int) -> tuple[int, Any] | None:
        first = self.used
        if size > self.size - first:
            return None
        self.used = -(-(first + size) // _ALIGNMENT) * _ALIGNMENT
        return first, self.bytes[first : first + size]


class Replay:
    """One replay in a recorded step. Its calls are completed when the copies to the host have finished."""

    def __init__(self, graph: CapturedGraph, step: Step):
        self._graph, self._device, self.number = graph, graph.owner.device, graph.replays
        self.rows = {total: graph.sampler.numbers(total) for total in graph.rows}
        self._read: dict[Any, dict[str, Any]] = {}
        for tensor in graph.read_before_launches:
            self._read_current(tensor, step)
        graph.read_before_launches = [tensor for tensor in graph.read_before_launches if tensor.kept is None]
        self._blocks = {key: self._numbers_of(chosen) for key, chosen in graph.blocks.items()}
        indexes = [
            (chosen.index, numbers + [numbers[0]] * (chosen.at_most - len(numbers)))
            for chosen, numbers in zip(graph.blocks.values(), self._blocks.values()) if numbers
        ]  # fmt: skip
        if graph.rows and graph.rows_of_step != graph.sampler.step:
            indexes += self._indexes_of_rows(0)
        self._sent = [self._device.write_indexes(indexes)] if indexes else []
        self._host: Any = None

    def _read_current(self, tensor: CapturedTensor, step: Step) -> None:
        key = (id(tensor.current), tensor.total)
        if key not in self._read:
            self._read[key] = step._keep(describe_tensor(tensor.current, step._trace.redact, tensor.total and self.rows[tensor.total]))
        if isinstance(tensor.current, Described) and not callable(tensor.current.tensor):
            tensor.kept = self._read[key]

    def _numbers_of(self, chosen: ChosenBlocks) -> list[int] | None:
        numbers = block_numbers(chosen.blocks)
        if len(numbers) <= chosen.at_most:
            return numbers
        self._graph.owner.without_room += chosen.tensors
        return None

    def _indexes_of_rows(self, steps_ahead: int) -> list[tuple[Any, list[int]]]:
        graph = self._graph
        graph.rows_of_step = graph.sampler.step + steps_ahead
        return [(index, graph.sampler.numbers(total, steps_ahead=steps_ahead)) for total, index in graph.rows.items()]

    def read_on_host(self, step: Step) -> None:
        """Reads values of the host. Before a launch this would delay the engine."""
        self._scalars = [{name: value() for name, value in call.scalars.items()} for call in self._graph.calls]
        for tensor in self._graph.read_after_launches:
            self._read_current(tensor, step)

    def fetch(self) -> int:
        """Sends the row numbers of the next step, and copies the side buffers. Returns the number of copied bytes."""
        if self._graph.rows:
            # In front of the copy: when that has ended, this replay may be dropped, with the numbers' memory.
            self._sent.append(self._device.write_indexes(self._indexes_of_rows(1)))
        size = self._graph.end - self._graph.start
        if size:
            self._host = self._device.fetch(self._graph.arena.bytes[self._graph.start : self._graph.end])
        return size

    def send(self) -> None:
        if self._host is not None:
            self._device.send(self._host)

    def copied(self) -> bool:
        return self._host is None or self._device.copied(self._host)

    def calls(self, step: Step) -> list[tuple[dict[str, Any], CapturedCall]]:
        self._bytes = self._device.fetched(self._host) if self._host is not None else np.empty(0, np.uint8)
        return [(self._call(call, scalars, step), call) for call, scalars in zip(self._graph.calls, self._scalars)]

    def _call(self, call: CapturedCall, scalars: Mapping[str, Any], step: Step) -> dict[str, Any]:
        made = {**call.header, "scalars": {**call.header["scalars"], **plain_numbers(scalars)}, "replay": self.number}
        if call.launches:
            made["kernels"] = [*made.get("kernels", ()), *call.launches]
        if call.total in self.rows:
            made |= {"rows": self.rows[call.total], "rows_of": call.total}
        for side in ("before", "after"):
            made[side] = {name: self._stored(one, step) for name, one in getattr(call, side).items()}
        return made

    def _stored(self, tensor: CapturedTensor, step: Step) -> dict[str, Any]:
        if tensor.kept is not None:
            return tensor.kept
        if tensor.current is not None:
            return self._read[(id(tensor.current), tensor.total)]
        if tensor.stored is not None:
            return step._keep(tensor.stored)
        described = {**tensor.layout, "shape": list(tensor.layout["shape"])}
        size = tensor.size
        if tensor.total is not None:
            described["shape"][0] = len(self.rows[tensor.total])
        if tensor.chosen is not None:
            numbers = self._blocks[id(tensor.chosen.blocks), tensor.chosen.at_most]
            if numbers is None:
                return described
            described["blocks"] = numbers
            size = tensor.size // tensor.chosen.at_most * len(numbers)
        if tensor.first < 0 or step._trace.redact:
            return described
        first = tensor.first - self._graph.start
        return step._keep(StoredTensor(described, self._bytes[first : first + size], tensor.constant))


class GraphCalls:
    """Records the calls of graphs that are captured while a recorder is on."""

    def __init__(self, device: Any, room: int, sampler: RowSampler | None, trace: Trace):
        self.device, self.room, self.sampler, self._trace = device, room, sampler, trace
        self.without_calls: weakref.WeakSet[Any] = weakref.WeakSet()
        self.captured: weakref.WeakSet[CapturedGraph] = weakref.WeakSet()
        self.without_room = 0  # number of tensors for which no side buffer was left
        self._capturing: dict[int, CapturedGraph] = {}
        self._not_sent: list[Replay] = []
        self.side: Any = None
        self.indexes: Any = None

    @property
    def capture(self) -> CapturedGraph | None:
        """The capture in progress on this thread."""
        return self._capturing.get(threading.get_ident())

    def _allocate(self) -> None:
        if self.side is None or self.side.size - self.side.used < self.room:
            self.side = Arena(self.device, 2 * self.room, _UNWRITTEN)
        # Filled with 0: row 0 and block 0 exist whenever a graph is replayed.
        if self.indexes is None or self.indexes.size - self.indexes.used < _INDEX_BYTES // 2:
            self.indexes = Arena(self.device, _INDEX_BYTES, 0)

    def capture_begin(self, original: Callable[..., Any], graph: Any, *arguments: Any, **named: Any) -> Any:
        self._trace.flush()  # a thread that waits for a copy would break the capture
        self._allocate()
        result = original(graph, *arguments, **named)
        graph._plumb_calls = self._capturing[threading.get_ident()] = CapturedGraph(self)
        self.captured.add(graph._plumb_calls)
        return result

    def capture_end(self, original: Callable[..., Any], graph: Any) -> Any:
        try:
            return original(graph)
        finally:
            self._capturing.pop(threading.get_ident(), None)

    def replay(self, original: Callable[..., Any], graph: Any, step: Step | None, budget: int | None) -> Any:
        captured = getattr(graph, "_plumb_calls", None)
        if captured is None or captured.owner is not self:
            if step is not None:
                self._warn(graph, step)
            return original(graph)
        if captured.copied_out is not None:
            self.device.wait_for(captured.copied_out)
        if step is None or not captured.calls or step.is_full(budget):
            if step is not None:
                step.left_out += len(captured.calls)
            result = original(graph)
        else:
            replay = Replay(captured, step)
            result = original(graph)
            self._send_earlier_replays()
            replay.read_on_host(step)
            with self.device.on_copy_stream():
                try:
                    step.add_replay(replay, replay.fetch())
                finally:
                    captured.copied_out = self.device.mark()
            self._not_sent.append(replay)
            captured.replays += 1
            return result
        self._send_earlier_replays()
        captured.replays += 1
        return result

    def _send_earlier_replays(self) -> None:
        """Sends earlier replays now. The engine has launched a replay and will wait for it, so no small copy of the engine queues
        behind a large one.
        """
        while self._not_sent:
            self._not_sent.pop().send()
        self._trace.device_is_busy()

    def _warn(self, graph: Any, step: Step) -> None:
        step.graphs_without_calls += 1
        if graph not in self.without_calls:
            self.without_calls.add(graph)
            warnings.warn("a graph is replayed that was captured in front of the recording: its calls are not recorded", stacklevel=4)
