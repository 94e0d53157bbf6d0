# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): grouped_topk ignores the row stride of its scores.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_moe_C_stable*.so' -d vllm-0.33.0
    python vllm_grouped_topk_row_stride.py vllm-0.33.0/vllm/_moe_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
scores, bias = torch.randn(4, 320, device="cuda")[:, :256], torch.zeros(256, device="cuda")
chosen, right = (torch.ops._moe_C.grouped_topk(one, 8, 4, 8, True, 2.5, bias, 1)[1] for one in (scores, scores.contiguous()))
wrong = (chosen.sort(1).values != right.sort(1).values).any(1).nonzero().flatten().tolist()
sys.exit(f"rows 320 elements apart: the experts of rows {wrong} are wrong" if wrong else 0)
