# SPDX-License-Identifier: Apache-2.0
"""The Triton norm of Unsloth in Triton's interpreter.

    mkdir -p released
    pip download --no-deps unsloth==2026.10.9 && unzip -q unsloth-*.whl 'unsloth/*.py' -d released/unsloth-2026.10.9
    export RELEASED=$PWD/released
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin unsloth_triton.py --platform sim-sm90
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_files
import torch
import triton
import triton_interpreter

triton_interpreter.start()
FOLDER, VERSION = released_files.folder("unsloth")
released_files.use("unsloth", FOLDER, ["unsloth.kernels.rms_layernorm"])

from adapter_tensors import TREE, need, norm_kernels, tensor
from plumb_kernels import kernel
from unsloth.kernels import rms_layernorm

TWICE = {"rounding": "twice"}


def norm(x, weight, out, eps):
    """As Fast_RMS_Layernorm.forward, which flattens its input with reshape and allocates Y and r."""
    need(weight is not None, "with a weight only")
    rows = tensor(x)
    if not rows.numel():
        return
    made = torch.empty(rows.shape, dtype=rows.dtype)
    r = torch.empty(len(rows), dtype=torch.float32)
    rms_layernorm._rms_layernorm_forward[(len(rows),)](
        made, rows, tensor(weight), r, made.stride(0), rows.stride(0), 1, 1, rows.shape[1], eps,
        LONG_INDEXING=False, BLOCK_SIZE=triton.next_power_of_2(rows.shape[1]),
    )  # fmt: skip
    tensor(out).copy_(made)


rms_norm, shared_head, q_kv_norm = norm_kernels(norm, numerics=TREE, contract=TWICE, platforms="sim-*")
