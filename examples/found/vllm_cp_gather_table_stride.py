# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): cp_gather_indexer_k_quant_cache ignores the row stride of the block table.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_cp_gather_table_stride.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
cache = torch.randint(0, 256, (16, 64, 132), dtype=torch.uint8, device="cuda")
table = torch.randperm(16, dtype=torch.int32, device="cuda").view(2, 8)[:, :4]  # two requests with four blocks each, rows 8 apart
ends = torch.tensor([0, 256, 512], dtype=torch.int32, device="cuda")
made = []
for one in table, table.contiguous():
    keys, scales = torch.zeros(512, 128, dtype=torch.uint8, device="cuda"), torch.zeros(512, 4, dtype=torch.uint8, device="cuda")
    torch.ops._C_cache_ops.cp_gather_indexer_k_quant_cache(cache, keys, scales, one, ends)
    made.append(keys)
wrong = (made[0] != made[1]).any(1).view(2, 256).sum(1).tolist()
sys.exit(f"rows of the table 8 elements apart: {wrong[0]} keys of request 0 are wrong, {wrong[1]} of request 1" if any(wrong) else 0)
