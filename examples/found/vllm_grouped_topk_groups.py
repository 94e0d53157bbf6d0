# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): grouped_topk scores only the first 8 groups of up to 32 experts, and reads scores behind its array for the others.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_moe_C_stable*.so' -d vllm-0.33.0
    python vllm_grouped_topk_groups.py vllm-0.33.0/vllm/_moe_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
failed = False
for groups in 4, 8, 16, 32:
    scores, bias = torch.randn(64, 256, device="cuda"), torch.zeros(256, device="cuda")
    grouped = scores.sigmoid().view(64, groups, -1)
    best = grouped.topk(2).values.sum(2).topk(4).indices  # the 4 groups with the largest sums of their two largest scores
    kept = torch.zeros(64, groups, device="cuda").scatter(1, best, 1)[:, :, None] * grouped
    right = kept.view(64, 256).topk(8).indices.sort(1).values
    chosen = torch.ops._moe_C.grouped_topk(scores, groups, 4, 8, True, 1.0, bias, 1)[1].sort(1).values
    print(f"{groups} groups: the experts of {int((chosen != right).any(1).sum())} of 64 rows are wrong")
    failed |= bool((chosen != right).any())
sys.exit(failed)
