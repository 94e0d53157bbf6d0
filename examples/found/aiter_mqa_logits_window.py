# SPDX-License-Identifier: Apache-2.0
"""AITER 0.1.7.post2.dev18 (amd-aiter): fp8_mqa_logits scores wrong keys if the start of the window is not a multiple of
128. It scores keys after the window's end, and leaves out the first keys if the window lies in one block of 128.

    pip download --no-deps amd-aiter==0.1.7.post2.dev18
    unzip -q amd_aiter-*.whl 'aiter/*.py' -d amd_aiter
    TRITON_INTERPRET=1 python aiter_mqa_logits_window.py amd_aiter
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
wrong = []
for start, end in ((40, 300), (130, 256), (270, 300)):
    bounds = [torch.tensor([one], dtype=torch.int32) for one in (start, end)]
    made = module.fp8_mqa_logits(q, keys[:512], torch.ones(1024)[:512], torch.rand(1, 32), *bounds)[0]
    scored = (made > -torch.inf).nonzero().flatten().tolist()  # "-inf, because of causal masking"
    if scored != list(range(start, end)):
        wrong.append(f"keys {start} to {end - 1}: scores of {scored[0]} to {scored[-1]}")
sys.exit("; ".join(wrong) or 0)
