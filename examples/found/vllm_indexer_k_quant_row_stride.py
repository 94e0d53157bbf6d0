# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): indexer_k_quant_and_cache ignores the row stride of k: it reads every row but the first from a wrong address.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_indexer_k_quant_row_stride.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
k, slots = torch.randn(4, 160, device="cuda").bfloat16()[:, :128], torch.arange(4, device="cuda")
strided, dense = (torch.zeros(1, 64, 132, dtype=torch.uint8, device="cuda") for _ in range(2))
torch.ops._C_cache_ops.indexer_k_quant_and_cache(k, strided, slots, 128, "ue8m0")
torch.ops._C_cache_ops.indexer_k_quant_and_cache(k.contiguous(), dense, slots, 128, "ue8m0")
codes, right = (one.view(-1)[: 4 * 128].view(4, 128) for one in (strided, dense))
wrong = (codes != right).any(1).nonzero().flatten().tolist()
sys.exit(f"rows 160 elements apart: the keys of rows {wrong} are wrong" if wrong else 0)
