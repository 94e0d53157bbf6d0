# SPDX-License-Identifier: Apache-2.0
"""What recording inside graphs needs of torch. The tests have a class with these methods for graphs of numpy functions."""

from __future__ import annotations

from typing import Any

import numpy as np


class CudaGraphs:
    """Graphs and memory of a GPU. ROCm's torch has the same names."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.graph_class = torch.cuda.CUDAGraph

    def arena(self, size: int, value: int) -> Any:
        """Bytes of this value, outside the pools of graphs as long as no capture is going on."""
        with self._torch.inference_mode(False):
            return self._torch.full((size,), value, dtype=self._torch.uint8, device="cuda")

    def owns(self, tensor: Any) -> bool:
        return bool(getattr(tensor, "is_cuda", False))

    def _bits(self, tensor: Any) -> Any:
        # A view of the same element size works with any strides, and copies of bits keep the payload of a NaN.
        torch = self._torch
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
        return tensor.detach().view(bits)

    def copy(self, tensor: Any, side: Any) -> None:
        """Copies a tensor into bytes of an arena. During a capture this becomes a node."""
        with self._torch.no_grad():
            bits = self._bits(tensor)
            side.view(bits.dtype).view(bits.shape).copy_(bits)

    def gather(self, tensor: Any, index: Any, side: Any) -> None:
        """Copies the numbers of the first dimension that `index` holds when the node runs."""
        with self._torch.no_grad():
            bits = self._bits(tensor)
            out = side.view(bits.dtype).view((len(index), *bits.shape[1:]))
            self._torch.index_select(bits, 0, index, out=out)

    def index(self, side: Any) -> Any:
        """A tensor of numbers in these bytes."""
        return side.view(self._torch.int64)

    def write_index(self, index: Any, numbers: list[int]) -> None:
        index.copy_(self._torch.tensor(numbers, dtype=self._torch.int64).pin_memory(), non_blocking=True)

    def fetch(self, side: Any) -> Any:
        """Begins to copy bytes of an arena to the host, behind what the current stream has to do."""
        host = self._torch.empty(side.shape, dtype=self._torch.uint8, pin_memory=True)
        host.copy_(side, non_blocking=True)
        copied = self._torch.cuda.Event()
        copied.record()
        return host, copied

    def wait(self) -> None:
        self._torch.cuda.synchronize()

    def fetched(self, fetch: Any) -> np.ndarray:
        host, copied = fetch
        copied.synchronize()
        return host.numpy()

    def storage(self, tensor: Any) -> Any:
        """A reference that does not keep the memory of the tensor."""
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


class Places:
    """Which memory of the allocator belongs to pools of graphs, and which is in use."""

    def __init__(self, snapshot: list[dict[str, Any]]):
        self._segments = snapshot

    def state(self, pointer: int) -> str:
        """"pool", "used", "free", or "unknown" for memory of another allocator."""
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
