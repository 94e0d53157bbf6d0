# SPDX-License-Identifier: Apache-2.0
"""Triton kernels of Liger-Kernel in Triton's interpreter, in its casting mode of Llama models.

    mkdir -p released
    pip download --no-deps liger-kernel==0.8.5 && unzip -q liger_kernel-*.whl '*.py' -d released/liger_kernel-0.8.5
    export RELEASED=$PWD/released
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin liger_triton.py --platform sim-sm90
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_files
import triton_interpreter

triton_interpreter.start()
FOLDER, VERSION = released_files.folder("liger_kernel")
OPS = "liger_kernel.ops"
released_files.use(
    "liger_kernel",
    FOLDER,
    [f"{OPS}.fused_add_rms_norm", f"{OPS}.mhc", f"{OPS}.rms_norm", f"{OPS}.utils"],
    {"liger_kernel.utils": {"infer_device": lambda: "cuda", "is_npu_available": lambda: False}},
)

from triton.language.extra import libdevice

libdevice.rsqrt = triton_interpreter.rsqrt

from adapter_tensors import TREE, need, norm_kernels, tensor
from liger_kernel.ops import fused_add_rms_norm as fused_add
from liger_kernel.ops import mhc
from liger_kernel.ops import rms_norm as norm_file
from plumb_kernels import kernel

TWICE = {"rounding": "twice"}


def norm(x, weight, out, eps):
    """Liger makes inputs contiguous with the decorator ensure_contiguous; this adapter calls contiguous()."""
    if tensor(x).numel():
        weight = tensor(weight)
        tensor(out).copy_(norm_file.rms_norm_forward(tensor(x).contiguous(), weight, eps, 0.0, "llama", None)[0])


rms_norm, shared_head, q_kv_norm = norm_kernels(norm, numerics=TREE, contract=TWICE, platforms="sim-*")


@kernel("fused_add_rms_norm", numerics=TREE, contract={"rounding": "twice", "sum": "bf16"}, platforms="sim-*")
def fused_add_norm(x, residual, weight, eps, tokens):
    if tokens:
        rows, added = tensor(x).contiguous(), tensor(residual).contiguous()
        made, total, *_ = fused_add.fused_add_rms_norm_forward(rows, added, tensor(weight), eps, 0.0, "llama")
        tensor(x).copy_(made)
        tensor(residual).copy_(total)


@kernel("mhc_post", numerics=TREE, platforms="sim-*")
def mhc_post(x, residual, post, comb, out, tokens):
    """Liger's h_res is the transpose of comb."""
    if tokens:
        streams, rows, gates = tensor(residual).contiguous(), tensor(x).contiguous(), tensor(post).contiguous()
        tensor(out).copy_(mhc.mhc_post_res_fwd(streams, rows, gates, tensor(comb).transpose(1, 2).contiguous()))


@kernel("mhc_pre", numerics={**TREE, "chains": 1}, platforms="sim-*")
def mhc_pre(residual, fn, scale, base, norm_weight, post, comb, layer_input, splits, sinkhorn_iterations, tokens, **more):
    need(norm_weight is None and splits == 1, "no fused norm, no splits")
    if not tokens:
        return
    streams, weights, base = tensor(residual).contiguous(), tensor(fn).t().contiguous(), tensor(base).contiguous()
    mix, _ = mhc.mhc_mm_norm_fwd(streams.view(tokens, -1), weights, eps=more["rms_eps"])
    alphas = [one.clone() for one in tensor(scale)]
    gates, tensor(post)[:], tensor(comb)[:] = mhc.mhc_split_sinkhorn_fwd(
        mix, base, *alphas, tmax=sinkhorn_iterations, pre_eps=more["pre_eps"], sinkhorn_eps=more["sinkhorn_eps"],
        post_mult=more["post_mult"],
    )  # fmt: skip
    tensor(layer_input).copy_(mhc.mhc_pre_fwd(streams, gates))
