# SPDX-License-Identifier: Apache-2.0
"""Top-k per row in numpy, with the orders of NaN and zeros that engines have. torch.topk puts every NaN on top, a radix
select over fp32 keys orders NaN by sign, and a select that bins in half precision may lose NaN. For torch.topk -0 equals
+0, a radix select orders them by sign.
"""

import numpy as np
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


def write(indices, row, chosen):
    indices[row] = -1
    indices[row, : len(chosen)] = chosen


def prefill(select):
    def made(logits, row_starts, row_ends, indices, k, logits_column_stride):
        columns = logits[:, ::logits_column_stride]
        for row, (start, end) in enumerate(zip(row_starts, row_ends, strict=True)):
            write(indices, row, select(columns[row, start : max(start, end)], k))

    return made


def decode(select):
    def made(logits, seq_lens, indices, k, next_n, seq_lens_dims, logits_column_stride):
        columns = logits[:, ::logits_column_stride]
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
