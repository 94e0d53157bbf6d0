# SPDX-License-Identifier: Apache-2.0
"""torchao's to_mx on the CPU, with its default scaling mode FLOOR.

    pip download --no-deps torchao==0.18.0 && mkdir -p released
    unzip -q torchao-0.18.0-*.whl '*.py' -d released/torchao-0.18.0
    PYTHONPATH=build/sim/python:released/torchao-0.18.0 plumb run --plugin torchao_mx.py --platform sim-sm90
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from adapter_tensors import tensor
from plumb_kernels import kernel
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import to_mx


@kernel(
    "mxfp4_quant",
    numerics={"deterministic": 1},
    contract={"scale_rule": "floor", "ties": "even", "negative_zero": "kept", "floor": "0x1p-125"},
    platforms="sim-*",
)
def mxfp4_quant(x, q, scales, tokens):
    """A group with byte 0 is divided by 2^-126 instead of 2^-127; a comment in to_mx gives the reason."""
    if tokens:
        made, codes = to_mx(tensor(x).contiguous(), torch.float4_e2m1fn_x2, 32, ScaleCalculationMode.FLOOR)
        tensor(q).copy_(codes)
        tensor(scales).copy_(made.view(torch.uint8))
