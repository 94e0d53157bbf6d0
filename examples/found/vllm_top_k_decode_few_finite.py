# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): top_k_per_row_decode returns repeated indices, and indices behind the row, for a row with few finite
logits, from 12,288 columns on.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_top_k_decode_few_finite.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
logits = torch.full((1, 16384), -torch.inf, device="cuda")
logits[0, :100] = torch.randn(100, device="cuda")
length, indices = torch.tensor([700], dtype=torch.int32, device="cuda"), torch.zeros(1, 512, dtype=torch.int32, device="cuda")
torch.ops._C.top_k_per_row_decode(logits, 1, length, indices, 1, 16384, 1, 512)
chosen = indices[0].tolist()  # 512 different numbers below 700 are right: -inf is a logit like any other
behind, repeated = sum(one >= 700 for one in chosen), 512 - len(set(chosen))
print(f"{behind} of 512 indices lie behind the row of 700, {repeated} are repeated, {chosen.count(-1)} are -1")
sys.exit(bool(behind or repeated))
