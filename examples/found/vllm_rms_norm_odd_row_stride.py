# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): rms_norm reads misaligned addresses if the row stride of its input is odd.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_rms_norm_odd_row_stride.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
wide = torch.randn(4, 1025, device="cuda").bfloat16()
x, weight, out = wide[:, :1024], torch.ones(1024, device="cuda").bfloat16(), torch.empty(4, 1024, device="cuda").bfloat16()
right = torch.nn.functional.rms_norm(x.float(), (1024,), eps=1e-6)
try:
    torch.ops._C.rms_norm(out, x, weight, 1e-6)
    torch.cuda.synchronize()
except RuntimeError as error:
    sys.exit(f"rows 1025 elements apart: {str(error).splitlines()[0]}")
wrong = ((out.float() - right).abs() > 0.1).any(1)
sys.exit(f"wrong rows: {wrong.nonzero().flatten().tolist()}" if wrong.any() else 0)
