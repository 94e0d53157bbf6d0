# SPDX-License-Identifier: Apache-2.0
"""The torch functions that recording inside graphs needs. Tests have a class with the same methods for graphs of numpy functions."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import weakref
from typing import Any

import numpy as np


@dataclasses.dataclass
class Fetch:
    """A copy of bytes from the device to the host that is under way."""

    memory: Any  # on the device
    size: int
    staged: Any  # event: the bytes are in `memory`
    kept: np.ndarray | None = None  # pinned memory of the host
    sent: Any = None  # event: they are in `kept`


class CudaGraphs:
    """Graphs and memory of a GPU. torch for ROCm has the same names."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.graph_class = torch.cuda.CUDAGraph
        self._copy_stream: Any = None  # copies out of side buffers
        self._sender: Any = None  # stream of the copies to the host
        self._sending = threading.Lock()
        self._staged: dict[int, list[Fetch]] = {}  # by size, for reuse of their memory
        self._free_on_host: dict[int, list[Any]] = {}  # by size: pinned memory that is not in use

    def on_copy_stream(self) -> contextlib.AbstractContextManager[Any]:
        """Work inside runs on the copy stream, after all work that the current stream has now. The current stream does not wait."""
        torch = self._torch
        if self._copy_stream is None:
            self._copy_stream = torch.cuda.Stream()
        self._copy_stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self._copy_stream)

    def mark(self) -> Any:
        """The current stream's end at this moment."""
        return self._torch.cuda.current_stream().record_event()

    def wait_for(self, mark: Any) -> None:
        """Lets the current stream wait for the mark."""
        self._torch.cuda.current_stream().wait_event(mark)

    def arena(self, size: int, value: int) -> Any:
        """Bytes of this value. Outside of a capture they do not come from a graph's pool."""
        with self._torch.inference_mode(False):
            return self._torch.full((size,), value, dtype=self._torch.uint8, device="cuda")

    def _new_bytes(self, size: int, **where: Any) -> Any:
        with self._torch.inference_mode(False):
            return self._torch.empty(size, dtype=self._torch.uint8, **where)

    def owns(self, tensor: Any) -> bool:
        return bool(getattr(tensor, "is_cuda", False))

    def _bits(self, tensor: Any) -> Any:
        # Viewing as integers of the same size works for any strides, and copying bits keeps NaN payloads.
        torch = self._torch
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
        return tensor.detach().view(bits)

    def copy(self, tensor: Any, side: Any) -> None:
        """Copies a tensor into bytes of an arena. During a capture the copy becomes a graph node."""
        with self._torch.no_grad():
            bits = self._bits(tensor)
            side.view(bits.dtype).view(bits.shape).copy_(bits)

    def gather(self, tensor: Any, index: Any, side: Any) -> None:
        """Copies the slices of the first dimension whose numbers `index` holds when the node runs."""
        with self._torch.no_grad():
            bits = self._bits(tensor)
            out = side.view(bits.dtype).view((len(index), *bits.shape[1:]))
            self._torch.index_select(bits, 0, index, out=out)

    def index(self, side: Any) -> Any:
        """Index tensor (int64) over these bytes."""
        return side.view(self._torch.int64)

    def write_indexes(self, indexes: list[tuple[Any, list[int]]]) -> Any:
        """Sends numbers to index tensors. The caller keeps the result until the current stream has passed this point."""
        host, kept = self._host_bytes(8 * sum(len(numbers) for _, numbers in indexes))
        sent, values, first = host.view(self._torch.int64), kept.view(np.int64), 0
        for index, numbers in indexes:
            end = first + len(numbers)
            values[first:end] = numbers
            index.copy_(sent[first:end], non_blocking=True)
            first = end
        return kept

    def fetch(self, side: Any) -> Fetch:
        """Copies bytes of an arena to other device memory, in order with the current stream. `send` then copies them to the host."""
        size = side.numel()
        staged = self._staged.setdefault(_rounded_up(size), [])
        if len(staged) < 2:
            memory = self._new_bytes(_rounded_up(size), device="cuda")
        else:
            before = staged.pop(0)
            self.send(before)
            memory = before.memory
            self._torch.cuda.current_stream().wait_event(before.sent)
        made = Fetch(memory, size, self._torch.cuda.Event())
        memory[:size].copy_(side)
        made.staged.record()
        staged.append(made)
        return made

    def send(self, fetch: Fetch) -> None:
        """Starts the copy to the host on a separate stream."""
        torch = self._torch
        with self._sending:
            if fetch.sent is not None:
                return
            if self._sender is None:
                self._sender = torch.cuda.Stream()
            host, fetch.kept = self._host_bytes(fetch.size)
            self._sender.wait_event(fetch.staged)
            with torch.cuda.stream(self._sender):
                host.copy_(fetch.memory[: fetch.size], non_blocking=True)
            fetch.sent = self._sender.record_event()

    def _host_bytes(self, size: int) -> tuple[Any, np.ndarray]:
        """Pinned memory as a tensor and as an array. It is reused after the array and all views of it are gone."""
        free = self._free_on_host.setdefault(_rounded_up(size), [])
        whole = free.pop() if free else self._new_bytes(_rounded_up(size), pin_memory=True)
        array = whole.numpy()  # the base of all views
        weakref.finalize(array, free.append, whole)
        return whole[:size], array[:size]

    def copied(self, fetch: Fetch) -> bool:
        return fetch.sent is not None and bool(fetch.sent.query())

    def wait(self) -> None:
        self._torch.cuda.synchronize()

    def fetched(self, fetch: Fetch) -> np.ndarray:
        self.send(fetch)
        fetch.sent.synchronize()
        kept, fetch.kept = fetch.kept, None
        return kept

    def storage(self, tensor: Any) -> Any:
        """A reference that does not keep the tensor's memory alive."""
        from torch.multiprocessing.reductions import StorageWeakRef

        return StorageWeakRef(tensor.untyped_storage())

    def expired(self, storage: Any) -> bool:
        return storage.expired()

    def owner_of(self, tensor: Any) -> Any:
        return tensor if tensor._base is None else tensor._base

    def save(self, tensor: Any, blocks: list[int] | None) -> Any:
        bits = self._bits(tensor)
        return bits.clone() if blocks is None else bits[self._torch.tensor(blocks, device=bits.device, dtype=self._torch.int64)]

    def restore(self, tensor: Any, blocks: list[int] | None, saved: Any) -> None:
        with self._torch.no_grad():
            bits = self._bits(tensor)
            if blocks is None:
                bits.copy_(saved)
            else:
                bits[self._torch.tensor(blocks, device=bits.device, dtype=self._torch.int64)] = saved

    def places(self) -> Places:
        return Places(self._torch.cuda.memory_snapshot())


def _rounded_up(size: int) -> int:
    """Rounds up to a power of two, so that graphs of similar sizes share memory."""
    return 1 << max(12, (size - 1).bit_length())


class Places:
    """State of the allocator: which memory belongs to pools of graphs, and which is in use."""

    def __init__(self, snapshot: list[dict[str, Any]]):
        self._segments = snapshot

    def state(self, pointer: int) -> str:
        """"pool", "used" or "free"; "unknown" for memory of another allocator."""
        for segment in self._segments:
            if segment["address"] <= pointer < segment["address"] + segment["total_size"]:
                if tuple(segment["segment_pool_id"]) != (0, 0):
                    return "pool"
                return "used" if _block_state(segment, pointer) == "active_allocated" else "free"
        return "unknown"


def _block_state(segment: dict[str, Any], pointer: int) -> str:
    address = segment["address"]
    for block in segment["blocks"]:
        if address <= pointer < address + block["size"]:
            return block["state"]
        address += block["size"]
    return "inactive"
