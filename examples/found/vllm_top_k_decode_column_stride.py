# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): top_k_per_row_decode returns wrong indices for rows of 200,000 columns that are not adjacent.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_top_k_decode_column_stride.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
failed = False
for columns, stride in (200000, 1), (199999, 2), (200000, 2):
    logits = torch.randn(1, columns * stride, device="cuda")[:, ::stride]
    length, indices = torch.tensor([columns], dtype=torch.int32, device="cuda"), torch.zeros(1, 512, dtype=torch.int32, device="cuda")
    torch.ops._C.top_k_per_row_decode(logits, 1, length, indices, 1, columns * stride, stride, 512)
    wrong = len(set(indices[0].tolist()) - set(logits[0].topk(512).indices.tolist()))
    print(f"{columns} columns, {stride} apart: {wrong} of 512 indices are wrong, the largest is {indices.max()}")
    failed |= bool(wrong)
sys.exit(failed)
