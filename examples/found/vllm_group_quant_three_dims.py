# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0: the Triton path of per_token_group_quant_fp8 reads other groups if x has three dimensions.

    TRITON_INTERPRET=1 python vllm_group_quant_three_dims.py vllm-0.33.0    # the unpacked wheel
"""

import importlib.util
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch, triton

for name in "envs _custom_ops logger model_executor.layers.quantization.utils.quant_utils platforms utils.deep_gemm model_executor.layers.quantization.utils.w8a8_utils model_executor.parameter model_executor.utils utils.platform_utils".split():
    stub = sys.modules[f"vllm.{name}"] = MagicMock(get_fp8_min_max=lambda: (-448.0, 448.0))
    stub.current_platform.is_cuda_alike = stub.current_platform.is_xpu = lambda: False
sys.modules["vllm"], sys.modules["vllm.triton_utils"] = MagicMock(), SimpleNamespace(tl=triton.language, triton=triton)
file = "vllm/model_executor/layers/quantization/utils/fp8_utils.py"
spec = importlib.util.spec_from_file_location("fp8_utils", f"{sys.argv[1]}/{file}")
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
x = torch.randn(512, 128, 256)[:2]  # "The input tensor with ndim >= 2." It reads behind them
codes, scales = module.per_token_group_quant_fp8(x, 128, dtype=torch.float8_e4m3fn, use_ue8m0=False)
made = (codes.float().view(2, 128, 2, 128) * scales.unsqueeze(-1)).view_as(x)
right = ((made - x).abs() < 0.3).float().mean()
sys.exit(f"{1 - right:.0%} of the elements are wrong" if right < 1 else 0)
