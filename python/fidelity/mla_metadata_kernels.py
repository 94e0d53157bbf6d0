# SPDX-License-Identifier: Apache-2.0
"""Planners of AITER's MLA decode in numpy: pages of one key, one query per row. Tensors [n, 1] are lists."""

import numpy as np
from metadata_kernels import metadata

BLOCK = OVERHEAD = 16


def rows_of(call):
    """Yields (row, first key, key behind the last one) of each token and group of heads."""
    starts = np.repeat(call["kv_indptr"][:-1, 0], call["qk_batch_ratio"])
    ends = np.repeat(call["kv_indptr"][1:, 0], call["qk_batch_ratio"])
    return [(row, int(start), int(end)) for row, (start, end) in enumerate(zip(starts, ends, strict=True))]


def store(call, units, slots):
    """Stores the items (row, partial, first key, last key) of each unit, and the partials of each row."""
    ends = np.repeat(call["kv_indptr"][1:, 0], call["qk_batch_ratio"])
    work = 0
    call["work_indptr"][0] = 0
    for unit, items in enumerate(units):
        for row, partial, start, end in items:
            call["work_info_set"][work] = row, partial, row, row + 1, start, end, ends[row] - end, 0
            work += 1
        call["work_indptr"][unit + 1] = work
    listed = 0
    call["reduce_indptr"][0] = 0
    for row in range(len(call["reduce_indptr"]) - 1):
        own = slots.get(row, [])
        call["reduce_partial_map"][listed : listed + len(own), 0] = own
        if own:
            call["reduce_final_map"][row] = row, row + 1
        listed += len(own)
        call["reduce_indptr"][row + 1] = listed
    for place, buffer in enumerate(("work_indptr", "work_info_set")):
        call["work_metadata_ptrs"][place] = call[buffer].ctypes.data


@metadata("get_mla_metadata_v1")
def fast_mode(**call):
    """Each unit gets the same payload."""
    rows, units = rows_of(call), call["num_cu"]
    limit = call["max_split_per_batch"]
    parts = units if limit < 0 else min(units, limit * len(rows))
    total = sum(-(-(end - start) // BLOCK) + OVERHEAD for _, start, end in rows)
    payload = -(-total // parts) + OVERHEAD
    plan, slots, partials, at, block = [], {}, 0, 0, 0
    for _ in range(units):
        left, items = payload, []
        while at < len(rows):
            row, start, end = rows[at]
            rest = -(-(end - start) // BLOCK) - block
            whole = left >= rest + OVERHEAD
            if not whole and left <= OVERHEAD:
                break
            stop = end if whole else start + BLOCK * (block + left - OVERHEAD)
            partial = -1
            if block > 0 or not whole:
                partial, partials = partials, partials + 1
                slots.setdefault(row, []).append(partial)
            items.append((row, partial, start + BLOCK * block, stop))
            if not whole:
                block += left - OVERHEAD
                break
            left -= rest + OVERHEAD
            at, block = at + 1, 0
        plan.append(items)
    store(call, plan, slots)


@metadata("get_mla_metadata_v1")
def least_loaded_unit(**call):
    """Another valid plan, as other modes make it: long rows first, each to the unit with the least work."""
    units = call["num_cu"]
    spare = len(call["reduce_partial_map"]) // 2
    plan, load, slots, partials = [[] for _ in range(units)], np.zeros(units), {}, 0
    for row, start, end in sorted(rows_of(call), key=lambda one: one[1] - one[2]):
        pieces = max(1, min(spare, (end - start) // 100))
        if pieces > 1:
            spare -= pieces
        cuts = start + (end - start) * np.arange(pieces + 1) // pieces
        for first, last in zip(cuts[:-1], cuts[1:], strict=True):
            partial = -1
            if pieces > 1:
                partial, partials = partials, partials + 1
                slots.setdefault(row, []).append(partial)
            unit = int(load.argmin())
            load[unit] += last - first + BLOCK * OVERHEAD
            plan[unit].append((row, partial, first, last))
    store(call, plan, slots)
