# SPDX-License-Identifier: Apache-2.0
"""AITER 0.1.7.post2.dev18 (amd-aiter): topk returns an index twice, and values that are not in x, if x contains -inf.

    pip download --no-deps amd-aiter==0.1.7.post2.dev18
    unzip -q amd_aiter-*.whl 'aiter/*.py' -d amd_aiter
    TRITON_INTERPRET=1 python aiter_topk_infinity.py amd_aiter
"""

import importlib
import sys
import types

import torch

for name in ("aiter", "aiter.ops", "aiter.ops.triton", "aiter.ops.triton.utils", "aiter.ops.triton._triton_kernels"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [f"{sys.argv[1]}/{name.replace('.', '/')}"]
topk = importlib.import_module("aiter.ops.triton.topk").topk
x = torch.full((1, 100), -torch.inf)
x[0, :3] = torch.tensor([3.0, 2.0, 1.0])
values, indices = topk(x, 8)
print("torch.topk:", torch.topk(x, 8).values.tolist())
chosen = indices[0].tolist()
bad = max(chosen) >= 100 or len(set(chosen)) < 8
sys.exit(f"values {values[0].tolist()}, indices {chosen} of a row of 100" if bad else 0)
