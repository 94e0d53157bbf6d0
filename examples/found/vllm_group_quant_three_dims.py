# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0: the Triton path of per_token_group_quant_fp8 reads wrong groups if x has three dimensions and is
not contiguous.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl '*.py' -d vllm-0.33.0
    TRITON_INTERPRET=1 python vllm_group_quant_three_dims.py vllm-0.33.0
"""

import importlib.util
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch
import triton

QUANT = "model_executor.layers.quantization.utils"
for name in (
    "envs", "_custom_ops", "logger", "platforms", "utils.deep_gemm", "utils.platform_utils", f"{QUANT}.quant_utils",
    f"{QUANT}.w8a8_utils", "model_executor.parameter", "model_executor.utils",
):  # fmt: skip
    sys.modules[f"vllm.{name}"] = MagicMock(get_fp8_min_max=lambda: (-448.0, 448.0))
sys.modules["vllm"], sys.modules["vllm.triton_utils"] = MagicMock(), SimpleNamespace(tl=triton.language, triton=triton)
file = f"{sys.argv[1]}/vllm/{QUANT.replace('.', '/')}/fp8_utils.py"
spec = importlib.util.spec_from_file_location("fp8_utils", file)
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
x = torch.randn(64, 128, 384)[:2, :, :256]  # "The input tensor with ndim >= 2." The kernel reads behind it
codes, scales = module.per_token_group_quant_fp8(x, 128, dtype=torch.float8_e4m3fn, use_ue8m0=False)
made = (codes.float().view(2, 128, 2, 128) * scales.unsqueeze(-1)).view_as(x)
right = ((made - x).abs() < 0.3).float().mean()
sys.exit(f"{1 - right:.0%} of the elements are wrong" if right < 1 else 0)
