# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): cp_gather_indexer_k_quant_cache copies only the first of several scales of a key.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_cp_gather_scales.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
cache = torch.randint(1, 256, (2, 64, 128 + 8), dtype=torch.uint8, device="cuda")  # two scales per key
keys, scales = torch.zeros(128, 128, dtype=torch.uint8, device="cuda"), torch.zeros(128, 8, dtype=torch.uint8, device="cuda")
table, ends = torch.arange(2, dtype=torch.int32, device="cuda")[None], torch.tensor([0, 128], dtype=torch.int32, device="cuda")
torch.ops._C_cache_ops.cp_gather_indexer_k_quant_cache(cache, keys, scales, table, ends)
right = cache.view(2, -1)[:, 64 * 128 :].reshape(128, 8)
wrong = [int((scales != right)[:, first : first + 4].any(1).sum()) for first in (0, 4)]
sys.exit(f"first scales wrong: {wrong[0]} of 128, second scales wrong: {wrong[1]} of 128" if any(wrong) else 0)
