# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): cp_gather_indexer_k_quant_cache reads keys from addresses that are rounded down to multiples of 16 bytes.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_cp_gather_block_stride.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
for page in 1, 2, 4, 64:  # a block of the indexer's cache has page * 132 bytes: codes, then scales
    cache = torch.randint(0, 256, (8, page, 132), dtype=torch.uint8, device="cuda")
    keys, scales = torch.zeros(8 * page, 128, dtype=torch.uint8, device="cuda"), torch.zeros(8 * page, 4, dtype=torch.uint8, device="cuda")
    table, ends = torch.arange(8, dtype=torch.int32, device="cuda")[None], torch.tensor([0, 8 * page], dtype=torch.int32, device="cuda")
    torch.ops._C_cache_ops.cp_gather_indexer_k_quant_cache(cache, keys, scales, table, ends)
    right = cache.view(8, -1)[:, : page * 128].reshape(8 * page, 128)
    wrong = (keys != right).any(1).view(8, page).any(1).nonzero().flatten().tolist()
    print(f"pages of {page}: blocks with wrong keys {wrong}")
    failed = bool(wrong) if page == 1 else failed or bool(wrong)
sys.exit(failed)
