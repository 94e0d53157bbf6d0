# SPDX-License-Identifier: Apache-2.0
"""Triton kernels of SGLang in Triton's interpreter.

    mkdir -p released
    pip download --no-deps sglang==0.5.23 && unzip -q sglang-0.5.23-*.whl '*.py' -d released/sglang-0.5.23
    export RELEASED=$PWD/released
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin sglang_triton.py --platform sim-sm90
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_files
import torch
import triton_interpreter

triton_interpreter.start()
FOLDER, VERSION = released_files.folder("sglang")
LAYERNORM = "sglang.kernels.ops.layernorm"
released_files.use(
    "sglang",
    FOLDER,
    [f"{LAYERNORM}.fused_rmsnorm", f"{LAYERNORM}.mhc_head", f"{LAYERNORM}.mhc_post_split_h"],
    {"sglang.srt.utils": {"is_hip": lambda: False}},
)

from adapter_tensors import TREE, need, tensor
from plumb_kernels import kernel
from sglang.kernels.ops.layernorm import fused_rmsnorm, mhc_head, mhc_post_split_h

ONCE = {"rounding": "once"}


def norm(x, weight, out, eps):
    """fused_rmsnorm accepts a strided x but reads its rows as if they were contiguous."""
    need(weight is not None, "with a weight only")
    if tensor(x).numel():
        tensor(out).copy_(fused_rmsnorm.fused_rmsnorm(tensor(x), tensor(weight), eps))


@kernel("rms_norm", numerics=TREE, contract=ONCE, platforms="sim-*")
def rms_norm(x, weight, out, eps):
    norm(x, weight, out, eps)


@kernel("mtp_shared_head_rms_norm", numerics=TREE, contract=ONCE, platforms="sim-*")
def shared_head(x, weight, out, eps):
    norm(x, weight, out, eps)


@kernel("q_kv_rms_norm", numerics=TREE, contract=ONCE, platforms="sim-*")
def q_kv_norm(q, kv, q_weight, kv_weight, out_q, out_kv, eps):
    norm(q, q_weight, out_q, eps)
    norm(kv, kv_weight, out_kv, eps)


@kernel("mhc_post", numerics=TREE, platforms="sim-*")
def mhc_post(x, residual, post, comb, out, tokens):
    need(tensor(residual).is_contiguous(), "contiguous streams only")
    if tokens:
        tensor(out).copy_(mhc_post_split_h.mhc_post_split_h(*map(tensor, (x, residual, post, comb))))


@kernel("hc_head", numerics=TREE, contract=ONCE, platforms="sim-*")
def hc_head(hidden_states, fn, scale, base, out, rms_eps, hc_eps, tokens):
    need(tensor(hidden_states).is_contiguous(), "contiguous streams only")
    if tokens:
        with torch.no_grad():
            tensor(out).copy_(mhc_head.fused_hc_head(*map(tensor, (hidden_states, fn, scale, base)), rms_eps, hc_eps))
