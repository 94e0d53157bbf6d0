# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.33.0 (CUDA): concat_and_cache_mla for fp8_ds_mla reads misaligned addresses if the row stride of kv_c is odd.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/_C_stable*.so' -d vllm-0.33.0
    python vllm_concat_and_cache_odd_row_stride.py vllm-0.33.0/vllm/_C_stable_libtorch.abi3.so
"""

import sys

import torch

torch.ops.load_library(sys.argv[1])
wide, rope, slots = torch.randn(4, 513, device="cuda").bfloat16(), torch.randn(4, 64, device="cuda").bfloat16(), torch.arange(4, device="cuda")
strided, dense = (torch.zeros(1, 64, 656, dtype=torch.uint8, device="cuda") for _ in range(2))
scale, write = torch.ones(1, device="cuda"), torch.ops._C_cache_ops.concat_and_cache_mla
write(wide[:, :512].contiguous(), rope, dense, slots, "fp8_ds_mla", scale)
try:
    write(wide[:, :512], rope, strided, slots, "fp8_ds_mla", scale)
    torch.cuda.synchronize()
except RuntimeError as error:
    sys.exit(f"rows 513 elements apart: {str(error).splitlines()[0]}")
sys.exit(0 if strided.equal(dense) else "rows 513 elements apart: wrong bytes")
