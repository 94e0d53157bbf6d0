# SPDX-License-Identifier: Apache-2.0
"""Top-k per row and V4.1's two levels in numpy, with the orders of NaN and zeros that engines have. torch.topk puts every
NaN on top, a radix select over fp32 keys orders NaN by sign, and a select that bins in half precision may lose NaN. For
torch.topk -0 equals +0, a radix select orders them by sign.
"""

import numpy as np
from formats import from_bf16
from plumb_kernels import kernel

NUMERICS = {"deterministic": 1, "index_order": "by_key", "equal_keys": "lowest_index"}


def keys_with_nan_on_top(logits):
    numbers = np.where(np.isnan(logits), np.float32(0), logits)
    return np.where(np.isnan(logits), np.int64(1) << 40, keys_by_sign(numbers))


def keys_by_sign(logits):
    bits = np.ascontiguousarray(logits).view(np.int32).astype(np.int64)
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def largest(window, k, keys):
    if len(window) <= k:
        return np.arange(len(window))
    return np.argsort(-keys(window), kind="stable")[:k]


def largest_without_nan(window, k):
    """NaN entries are never selected, so a row may have fewer than k indices."""
    if len(window) <= k:
        return np.arange(len(window))
    order = np.argsort(-keys_by_sign(window), kind="stable")
    return order[~np.isnan(window[order])][:k]


def with_nan_on_top(window, k):
    return largest(window, k, keys_with_nan_on_top)


def with_equal_zeros(window, k):
    return largest(window + np.float32(0), k, keys_with_nan_on_top)  # -0 + 0 is +0


def with_nan_by_sign(window, k):
    return largest(window, k, keys_by_sign)


def numbers(logits):
    """bf16 logits, as fp32 numbers of the same value."""
    return from_bf16(logits) if logits.dtype == np.uint16 else logits


def write(indices, row, chosen):
    indices[row] = -1
    indices[row, : len(chosen)] = chosen


def prefill(select):
    def made(logits, row_starts, row_ends, indices, k, logits_column_stride):
        columns = numbers(logits[:, ::logits_column_stride])
        for row, (start, end) in enumerate(zip(row_starts, row_ends, strict=True)):
            write(indices, row, select(columns[row, start : max(start, end)], k))

    return made


def decode(select):
    def made(logits, seq_lens, indices, k, next_n, seq_lens_dims, logits_column_stride):
        columns = numbers(logits[:, ::logits_column_stride])
        for row in range(len(indices)):
            request, query = divmod(row, next_n)
            end = seq_lens[request, query] if seq_lens_dims == 2 else seq_lens[request, 0] - next_n + query + 1
            write(indices, row, select(columns[row, : max(end, 0)], k))

    return made


def made(op, name, nan_order, function, zeros="by_sign"):
    contract = {"nan_order": nan_order, "zeros": zeros}
    return kernel(op, name=name, platforms="sim-*", numerics=NUMERICS, contract=contract)(function)


PREFILL, DECODE = "top_k_per_row_prefill", "top_k_per_row_decode"
prefill_nan_on_top = made(PREFILL, "prefill_nan_on_top", "all_nan_top", prefill(with_nan_on_top))
prefill_nan_by_sign = made(PREFILL, "prefill_nan_by_sign", "sign_ordered", prefill(with_nan_by_sign))
prefill_with_equal_zeros = made(PREFILL, "prefill_with_equal_zeros", "all_nan_top", prefill(with_equal_zeros), "equal")
prefill_losing_nan = made(PREFILL, "prefill_losing_nan", "unspecified", prefill(largest_without_nan))
decode_nan_on_top = made(DECODE, "decode_nan_on_top", "all_nan_top", decode(with_nan_on_top))
decode_nan_by_sign = made(DECODE, "decode_nan_by_sign", "sign_ordered", decode(with_nan_by_sign))
decode_with_equal_zeros = made(DECODE, "decode_with_equal_zeros", "all_nan_top", decode(with_equal_zeros), "equal")
decode_losing_nan = made(DECODE, "decode_losing_nan", "unspecified", decode(largest_without_nan))


# ---- the two levels of V4.1. Bounds of rows are lists [n, 1].


def windows(rows, row_starts, row_ends, row_repeat):
    """Yields (row, start, end) for each row of logits."""
    for row in range(rows):
        yield row, int(row_starts[row // row_repeat, 0]), int(row_ends[row // row_repeat, 0])


def block_scores(logits, start, end, size, newest, maximum):
    """Scores of all blocks of a grid over the columns, and the number of blocks with a column."""
    grid = -(-len(logits) // size)
    scores = np.full(grid * size, -np.inf, np.float32)
    stop = max(min(end, len(logits)), start)
    scores[: stop - start] = logits[start:stop]  # empty if the window begins behind the columns
    scores = maximum.reduce(scores.reshape(grid, size), axis=1)
    count = -(-(stop - start) // size)
    pinned = (end - start - 1) // size
    if end > start and pinned < (grid if newest == "in_grid" else count):
        scores[pinned] = np.inf
        return scores, np.union1d(np.arange(count), pinned)
    return scores, np.arange(count)


INFINITE, ABOVE = 1e300, 2e300  # keys of +inf, and of NaN where it is above


def select_blocks(nan_key, nan_block, dead_block, newest):
    def made(logits, row_starts, row_ends, blocks, rows, row_repeat, topk_blocks, block_size):
        for row, start, end in windows(rows, row_starts, row_ends, row_repeat):
            values = numbers(logits[row])
            maximum = np.fmax if nan_block == "ignored" else np.maximum  # fmax ignores NaN
            scores, chosen = block_scores(values, start, end, block_size, newest, maximum)
            keys = np.where(np.isposinf(scores), INFINITE, scores.astype(np.float64))
            keys = np.where(np.isnan(scores), nan_key, keys)[chosen]
            if dead_block == "minus_one":
                chosen, keys = chosen[keys > -np.inf], keys[keys > -np.inf]
            order = np.argsort(-keys, kind="stable")[:topk_blocks]
            if nan_block == "dropped":
                order = order[keys[order] < ABOVE]
            write(blocks, row, chosen[order][::-1])  # any order is right

    return made


def masked(edge):
    def made(logits, row_starts, row_ends, blocks, rows, columns, row_repeat, block_size):
        position = np.arange(columns)
        for row, start, end in windows(rows, row_starts, row_ends, row_repeat):
            inside = (position >= start) & (position < end)
            chosen = blocks[row][blocks[row] >= 0].astype(np.int64)
            keep = inside & np.isin((position - start) // block_size, chosen)
            if edge == "keep_last" and inside[-1] and np.any(start + chosen * block_size >= columns):
                keep[-1] = True
            logits[row, ~keep] = 0xFF80 if logits.dtype == np.uint16 else -np.inf

    return made


def two_level(op, name, function, **contract):
    return kernel(op, name=name, platforms="sim-*", numerics={"deterministic": 1}, contract=contract)(function)


def selecting(name, nan_key, nan_block, dead_block, newest="in_columns"):
    function = select_blocks(nan_key, nan_block, dead_block, newest)
    return two_level("select_candidate_blocks", name, function, nan_block=nan_block, dead_block=dead_block, newest=newest)


select_as_torch = selecting("select_as_torch", ABOVE, "dropped", "minus_one")
select_in_grid = selecting("select_in_grid", ABOVE, "top", "minus_one", "in_grid")
select_as_deep_select = selecting("select_as_deep_select", INFINITE, "forced", "index")
select_as_sglang = selecting("select_as_sglang", -ABOVE, "ignored", "index")
mask_ignoring_the_edge = two_level("mask_candidate_logits", "mask_ignoring_the_edge", masked("ignore"), edge="ignore")
mask_keeping_the_last = two_level("mask_candidate_logits", "mask_keeping_the_last", masked("keep_last"), edge="keep_last")


# ---- sparse blocks of V4.1's candidates


def expanded(blocks, row_starts, row_ends, sparse_blocks, sparse_ends, block_size, sparse_block_size):
    pieces = np.arange(block_size // sparse_block_size)
    for row, (start, end) in enumerate(zip(row_starts[:, 0].astype(np.int64), row_ends[:, 0], strict=True)):
        first = (blocks[row].astype(np.int64)[:, None] * len(pieces) + pieces).ravel() * sparse_block_size
        first = np.sort(first[(first >= 0) & (first < end - start)])  # columns from the start
        sparse_blocks[row] = start // sparse_block_size
        sparse_ends[row] = 0
        if len(first) > 0:
            sparse_blocks[row] += (first[-1] // sparse_block_size).astype(np.int32)
            sparse_blocks[row, : len(first)] = start // sparse_block_size + first // sparse_block_size
            sparse_ends[row] = (len(first) - 1) * sparse_block_size + min(end - start - first[-1], sparse_block_size)


def expanded_as_vllm(blocks, row_starts, row_ends, sparse_blocks, sparse_ends, block_size, sparse_block_size):
    """Sorts with the largest number in place of blocks that are skipped."""
    skipped = np.int64(2**31 - 1)
    pieces = block_size // sparse_block_size
    starts, lengths = row_starts.astype(np.int64), np.maximum(row_ends.astype(np.int64) - row_starts, 0)
    numbers = np.repeat(blocks.astype(np.int64) * pieces, pieces, axis=1) + np.tile(np.arange(pieces), blocks.shape[1])
    valid = (numbers >= 0) & (numbers < -(-lengths // sparse_block_size))
    count = valid.sum(axis=1, keepdims=True)
    last = np.where(valid, numbers, -1).max(axis=1, keepdims=True)
    ascending = np.sort(np.where(valid, numbers, skipped), axis=1)
    padded = np.where(np.arange(numbers.shape[1]) < count, ascending, np.maximum(last, 0))
    sparse_blocks[:] = padded + starts // sparse_block_size
    columns = np.clip(lengths - last * sparse_block_size, 1, sparse_block_size)
    sparse_ends[:] = np.where(count > 0, (count - 1) * sparse_block_size + columns, 0)


def remapped(columns, sparse_blocks, row_starts, positions, row_blocks, sparse_block_size):
    exists = (columns >= 0) & (columns < row_blocks * sparse_block_size)
    place, offset = np.divmod(np.where(exists, columns, 0), sparse_block_size)
    blocks = np.take_along_axis(sparse_blocks, place, axis=1).astype(np.int64) - row_starts // sparse_block_size
    positions[:] = np.where(exists, blocks * sparse_block_size + offset, -1)


expand_row_by_row = two_level("expand_candidate_blocks", "expand_row_by_row", expanded)
expand_as_vllm = two_level("expand_candidate_blocks", "expand_as_vllm", expanded_as_vllm)
remap_as_vllm = two_level("remap_candidate_positions", "remap_as_vllm", remapped)
