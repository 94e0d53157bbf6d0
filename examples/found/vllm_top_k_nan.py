# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): top_k_per_row_decode and top_k_per_row_prefill leave indices unwritten for a row with more NaN than k.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_top_k_nan.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
number, ops = lambda *values: torch.tensor(values, dtype=torch.int32, device="cuda"), torch.ops._C
for nans in 0, 1000:
    decode, prefill = number(*[0] * 512)[None], number(*[0] * 512)[None]
    for length in 4096, 2048:  # the indices of the first row are all 3584 or more
        logits = torch.arange(4096, dtype=torch.float32, device="cuda")[None]
        logits[0, :nans] = logits[0, :nans] if length == 4096 else torch.nan
        ops.top_k_per_row_decode(logits, 1, number(length), decode, 1, 4096, 1, 512)
        ops.top_k_per_row_prefill(logits, number(0), number(length), prefill, 1, 4096, 1, 512)
    wrong = [(int((one >= length).sum()), 512 - len(set(one[0].tolist()))) for one in (decode, prefill)]
    text = [f"{behind} behind the row, {repeated} repeated" for behind, repeated in wrong]
    print(f"{nans} NaN of {length} logits, 512 indices: decode {text[0]}; prefill {text[1]}")
sys.exit(any(map(any, wrong)))
