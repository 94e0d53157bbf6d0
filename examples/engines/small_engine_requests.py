# SPDX-License-Identifier: Apache-2.0
"""Requests of the small engine: batch rows, cache pages, and the host's bookkeeping."""

import dataclasses

import numpy as np
import small_engine_kernels as kernels
import torch


@dataclasses.dataclass
class Config:
    hidden: int = 256
    layers: int = 4
    experts: int = 32
    topk: int = 6
    vocabulary: int = 96
    k: int = 32
    pages: int = 4  # per request
    sizes: tuple[int, ...] = (2, 4, 8)
    matrices: int = 1  # number of matrices of the MLP
    eps: float = 1e-6
    device: str = "cuda"


class Requests:
    def __init__(self, config, seed):
        self.config, self.random = config, np.random.default_rng(seed)
        c, rows = config, config.sizes[-1]
        self.live, self.lengths, self.new_rows = 0, np.zeros(rows, np.int32), []
        self.table, self.tokens_of_host = np.zeros((rows, c.pages), np.int32), np.zeros(rows, np.int32)
        self.free_blocks, self.scale = list(range(rows * c.pages)), 1.5
        # Tensors that steps change.
        self.tokens = torch.zeros(rows, dtype=torch.int32, device=c.device)
        self.caches = [torch.zeros((rows * c.pages, kernels.BLOCK_BYTES), dtype=torch.uint8, device=c.device) for _ in range(c.layers)]

    def schedule(self, live=None, longest=150):
        """Prepares the next step: `live` requests, each one key longer."""
        self.scale = float(self.random.choice([1.0, 1.5, 2.5]))
        limit = self.config.pages * kernels.PAGE
        for row in range(self.live):
            if self.lengths[row] == limit:
                self._leave(row)
                self._join(row, longest)
        live = live if live is not None else int(self.random.integers(1, len(self.lengths) + 1)) if self.random.random() < 0.3 else max(self.live, 1)
        for row in range(live, self.live):
            self._leave(row)
        for row in range(self.live, live):
            self._join(row, longest)
        self.live = live
        self.lengths[:live] += 1
        self.tokens_of_host[:] = self.tokens.cpu().numpy()

    def _leave(self, row):
        self.free_blocks += self.table[row].tolist()
        self.lengths[row] = 0

    def _join(self, row, longest):
        """Adds a request whose prompt is in the cache already."""
        self.random.shuffle(self.free_blocks)
        self.table[row] = [self.free_blocks.pop() for _ in range(self.config.pages)]
        self.lengths[row] = self.random.integers(0, longest)
        self.new_rows.append(row)
        blocks = torch.tensor(self.table[row], device=self.config.device).long()
        for cache in self.caches:
            filled = torch.randint(0, 0x78, (len(blocks), kernels.BLOCK_BYTES), dtype=torch.uint8, device=cache.device)
            filled[:, kernels.PAGE * kernels.DIM :].view(torch.float32).fill_(0.004)
            cache[blocks] = filled
        self.tokens[row] = int(self.random.integers(self.config.vocabulary))

    @property
    def padded(self):
        return next(size for size in self.config.sizes if size >= self.live)

    @property
    def columns(self):
        """Width of the scores: a power of two of pages."""
        pages = 1
        while pages * kernels.PAGE < self.lengths[: self.live].max():
            pages *= 2
        return min(pages, self.config.pages) * kernels.PAGE

    def intended_slots(self):
        last = np.maximum(self.lengths - 1, 0)[: self.padded]
        slots = self.table[np.arange(self.padded), last // kernels.PAGE].astype(np.int64) * kernels.PAGE + last % kernels.PAGE
        return np.where(np.arange(self.padded) < self.live, slots, -1)
