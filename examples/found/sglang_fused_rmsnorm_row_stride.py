# SPDX-License-Identifier: Apache-2.0
"""SGLang 0.5.23: fused_rmsnorm ignores the row stride of its input, and does not refuse it.

    pip download --no-deps sglang==0.5.23 && unzip -q sglang-0.5.23-*.whl '*.py' -d sglang-0.5.23
    TRITON_INTERPRET=1 python sglang_fused_rmsnorm_row_stride.py sglang-0.5.23
"""

import importlib.util
import sys
import types

import torch

sys.modules["sglang.srt.utils"] = types.SimpleNamespace(is_hip=lambda: False)
sys.modules["sglang"] = sys.modules["sglang.srt"] = types.ModuleType("sglang")
spec = importlib.util.spec_from_file_location("norm", f"{sys.argv[1]}/sglang/kernels/ops/layernorm/fused_rmsnorm.py")
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
torch.manual_seed(0)
x, weight = torch.randn(4, 576)[:, :512], torch.ones(512)  # a slice of a wider projection
right = torch.nn.functional.rms_norm(x, (512,), weight, 1e-6)
wrong = (module.fused_rmsnorm(x, weight, 1e-6) - right).abs().amax(1) > 1e-4
same = (module.fused_rmsnorm(x.contiguous(), weight, 1e-6) - right).abs().max() < 1e-4
sys.exit(f"wrong rows: {wrong.nonzero().flatten().tolist()}; right if contiguous: {bool(same)}" if wrong.any() else 0)
