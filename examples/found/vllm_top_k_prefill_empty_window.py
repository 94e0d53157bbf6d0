# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): top_k_per_row_prefill writes -1 in front of a row whose window ends in front of its start.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_top_k_prefill_empty_window.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
logits = torch.randn(1, 1000, device="cuda")
starts, ends = (torch.tensor([one], dtype=torch.int32, device="cuda") for one in (300, 200))
memory = torch.full((2, 512), 7, dtype=torch.int32, device="cuda")
torch.ops._C.top_k_per_row_prefill(logits, starts, ends, memory[1:], 1, 1000, 1, 512)
row, front = memory[1], memory[0]
print("row:", row.unique().tolist(), "in front of it:", front.unique().tolist())
sys.exit(f"{int((front != 7).sum())} numbers in front of the row were overwritten" if (front != 7).any() else 0)
