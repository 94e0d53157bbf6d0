# SPDX-License-Identifier: Apache-2.0
"""SGLang 0.5.23: fused_hc_head with 3 streams reads a fourth one: the next token's first stream, or past the buffers.

    pip download --no-deps sglang==0.5.23 && unzip -q sglang-0.5.23-*.whl '*.py' -d sglang-0.5.23
    TRITON_INTERPRET=1 python sglang_hc_head_three_streams.py sglang-0.5.23
"""

import importlib.util
import sys

import torch

spec = importlib.util.spec_from_file_location("mhc_head", f"{sys.argv[1]}/sglang/kernels/ops/layernorm/mhc_head.py")
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
torch.manual_seed(0)
streams, hidden = 3, 128
x = torch.randn(8, streams, hidden)[:4]
fn = torch.cat([torch.randn(streams, streams * hidden) * 0.02, torch.zeros(1, streams * hidden)])[:streams]
scale, base = torch.ones(1), torch.zeros(4)[:streams]
made = module.fused_hc_head(x, fn, scale, base, 1e-6, 1e-6)
flat = x.flatten(1)  # reference from the docstring of the file
gates = torch.sigmoid(flat @ fn.T * torch.rsqrt(flat.square().mean(-1, keepdim=True) + 1e-6) * scale + base) + 1e-6
right = (gates.unsqueeze(-1) * x).sum(1)
error = (made - right).abs().amax(1)
sys.exit(f"largest error by token: {error.tolist()}" if error.max() > 1e-4 else 0)
