# SPDX-License-Identifier: Apache-2.0
"""Triton norms of xFormers in Triton's interpreter.

    mkdir -p released
    pip download --no-deps xformers==0.0.35 && unzip -q xformers-*.whl '*.py' -d released/xformers-0.0.35
    export RELEASED=$PWD/released
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin xformers_triton.py --platform sim-sm90
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_files
import triton_interpreter

triton_interpreter.start()
FOLDER, VERSION = released_files.folder("xformers")
released_files.use(
    "xformers",
    FOLDER,
    ["xformers.ops._triton.rmsnorm_kernels"],
    {"xformers.triton.importing": {"libdevice_find": lambda name: triton_interpreter.rsqrt}},
)

from adapter_tensors import TREE, norm_kernels, tensor
from plumb_kernels import kernel
from xformers.ops._triton import rmsnorm_kernels

ONCE = {"rounding": "once"}


def norm(x, weight, out, eps):
    """xformers.ops.rms_norm requires contiguous rows."""
    if tensor(x).numel():
        tensor(out).copy_(rmsnorm_kernels._rms_norm_forward(tensor(x).contiguous(), tensor(weight), eps))


rms_norm, shared_head, q_kv_norm = norm_kernels(norm, numerics=TREE, contract=ONCE, platforms="sim-*")


@kernel("fused_add_rms_norm", numerics=TREE, contract={"rounding": "once", "sum": "fp32_squares"}, platforms="sim-*")
def fused_add_norm(x, residual, weight, eps, tokens):
    """x += y of rms_norm_add: its sum takes the place of plumb's residual. Squares are of the fp32 sum."""
    if tokens:
        total, added = tensor(residual).contiguous(), tensor(x).contiguous()
        made = rmsnorm_kernels._rms_norm_add_forward(total, added, tensor(weight), eps)
        tensor(residual).copy_(total)
        tensor(x).copy_(made)
