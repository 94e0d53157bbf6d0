# SPDX-License-Identifier: Apache-2.0
"""Two ops in numpy, for simulated platforms, where bf16 is uint16 (bit patterns).

    plumb run --plugin kernels.py --tier smoke
"""

import numpy as np
from plumb_kernels import bf16, float32, kernel


@kernel("rms_norm", platforms="sim-*", numerics={"deterministic": 1})
def rms_norm(x, weight, out, eps, rounding):
    values = float32(x)
    normalised = values / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + np.float32(eps))
    if rounding == "twice":
        normalised = float32(bf16(normalised))
    out[:] = bf16(normalised if weight is None else normalised * float32(weight))


@kernel(
    "top_k_per_row_decode",
    platforms="sim-*",
    numerics={"deterministic": 1, "index_order": "ascending", "equal_keys": "lowest_index"},
    contract={"nan_order": "sign_ordered", "zeros": "by_sign"},
)
def top_k_per_row_decode(logits, seq_lens, indices, next_n, k, logits_column_stride):
    logits = logits[:, ::logits_column_stride]
    if logits.dtype == np.uint16:
        logits = float32(logits)
    for row in range(len(indices)):
        request, query = divmod(row, next_n)
        end = seq_lens[request, query] if seq_lens.shape[1] > 1 else max(0, seq_lens[request, 0] - next_n + query + 1)
        chosen = np.arange(end)
        if end > k:
            bits = logits[row, :end].view(np.int32).astype(np.int64)
            keys = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # -NaN < -inf < ... < +inf < +NaN
            chosen = np.sort(np.argsort(-keys, kind="stable")[:k])
        indices[row] = -1
        indices[row, : len(chosen)] = chosen
