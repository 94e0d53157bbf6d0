# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): indexer_k_quant_and_cache with blocks of 64 columns writes one scale per 128 columns.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_indexer_k_quant_blocks_of_64.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
k = torch.randn(2, 128, device="cuda").bfloat16()
k[:, 64:] *= 64  # the second block of 64 columns needs a scale that is 64 times as large
page, width = 64, 128 + 2 * 4
cache = torch.zeros(1, page, width, dtype=torch.uint8, device="cuda")
torch.ops._C_cache_ops.indexer_k_quant_and_cache(k, cache, torch.arange(2, device="cuda"), 64, "ue8m0")
scales = cache.view(-1)[page * 128 : page * 128 + 16].view(torch.float32).view(2, 2)
right = (k.float().view(2, 2, 64).abs().amax(2) / 448).log2().ceil().exp2()
print("scales:", scales.tolist(), "of the blocks:", right.tolist())
sys.exit("the scales are not those of blocks of 64 columns" if not scales.equal(right) else 0)
