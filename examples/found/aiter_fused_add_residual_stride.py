# SPDX-License-Identifier: Apache-2.0
"""AITER 0.1.7.post2.dev18 (amd-aiter): rmsnorm2d_fwd_with_add uses the row stride of its input
for the residuals too.

    pip download --no-deps amd-aiter==0.1.7.post2.dev18
    unzip -q amd_aiter-*.whl 'aiter/*.py' -d amd_aiter
    TRITON_INTERPRET=1 python aiter_fused_add_residual_stride.py amd_aiter
"""

import importlib
import sys
import types

import torch

for name in ("aiter", "aiter.ops", "aiter.ops.triton", "aiter.ops.triton.utils", "aiter.ops.triton._triton_kernels"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [f"{sys.argv[1]}/{name.replace('.', '/')}"]
sys.modules["aiter.ops.triton.utils.types"] = types.SimpleNamespace(get_dtype_max=None)
sys.modules["aiter.ops.triton.utils.device_info"] = types.SimpleNamespace(get_num_sms=lambda: 304)
rmsnorm = importlib.import_module("aiter.ops.triton.rmsnorm")
torch.manual_seed(0)
x, behind = torch.randn(4, 576)[:, :512], torch.full((8, 512), 7.0)
residual = torch.randn(8, 512)[:4]  # the kernel reads past the end of these rows
stored, out = behind[:4], torch.empty(4, 512)
rmsnorm.rmsnorm2d_fwd_with_add(out, x, residual, stored, torch.ones(512), 1e-6)
wrong = ((stored - (x + residual)).abs() > 1e-4).any(1).nonzero().flatten().tolist()
sys.exit(f"wrong rows of residual_out: {wrong}; elements written behind it: {int((behind[4:] != 7).sum())}" if wrong else 0)
