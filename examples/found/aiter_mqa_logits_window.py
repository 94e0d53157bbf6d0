# SPDX-License-Identifier: Apache-2.0
"""AITER 0.1.7 (amd-aiter): fp8_mqa_logits scores keys behind the end of a window, if its start is no multiple of 128.

    TRITON_INTERPRET=1 python aiter_mqa_logits_window.py amd_aiter-0.1.7.post2.dev18    # the unpacked wheel
"""

import importlib
import sys
import types

import torch

for name in ("aiter", "aiter.ops", "aiter.ops.triton", "aiter.ops.triton._triton_kernels"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [f"{sys.argv[1]}/{name.replace('.', '/')}"]
module = importlib.import_module("aiter.ops.triton.fp8_mqa_logits")
torch.manual_seed(0)
q, keys = (torch.randn(*shape).to(torch.float8_e4m3fn) for shape in ((1, 32, 64), (1024, 64)))
keys, weights, start, end = keys[:512], torch.rand(1, 32), 40, 300
bounds = [torch.tensor([one], dtype=torch.int32) for one in (start, end)]
made = module.fp8_mqa_logits(q, keys, torch.ones(1024)[:512], weights, *bounds)[0]
behind = (made[end:] > -torch.inf).nonzero().flatten() + end  # "-inf, because of causal masking"
sys.exit(f"scores behind the end {end}: keys {behind.min()} to {behind.max()}" if len(behind) else 0)
