# SPDX-License-Identifier: Apache-2.0
"""Chooses the rows of row-wise tensors that a step stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._trace_tensors import BadTrace, resolved


def total_rows(names: Iterable[str], tensors: Mapping[str, Any]) -> int | None:
    """Number of rows of these row-wise tensors, which must all have the same number. None: there are none."""
    totals = {resolved(tensors[name]).tensor.shape[0] for name in names if tensors.get(name) is not None}
    if len(totals) > 1:
        raise BadTrace(f"row-wise tensors of one call have {' and '.join(map(str, sorted(totals)))} rows")
    return totals.pop() if totals else None


class RowSampler:
    """Chooses rows. Within a step, all tensors with as many rows get the same ones."""

    def __init__(self, rows: int, seed: int = 0):
        if rows < 2:
            raise ValueError("the first and the last row are always stored: rows is at least 2")
        self.rows = rows
        self._random = np.random.default_rng(seed)
        self.step = 0
        self._chosen: dict[tuple[int, int], list[int]] = {}  # by step and number of rows

    def next_step(self) -> None:
        self.step += 1

    def numbers(self, total: int, *, steps_ahead: int = 0) -> list[int]:
        """Ascending row numbers: the first, the last, and random ones between them."""
        if total <= self.rows:
            return list(range(total))
        key = self.step + steps_ahead, total
        if key not in self._chosen:
            self._chosen = {known: numbers for known, numbers in self._chosen.items() if known[0] >= self.step}
            between = self._random.choice(total - 2, self.rows - 2, replace=False) + 1
            self._chosen[key] = [0, *sorted(map(int, between)), total - 1]
        return self._chosen[key]
