# SPDX-License-Identifier: Apache-2.0
"""Triton kernels of FlagGems (flag-gems) in Triton's interpreter. The tanh of its grouped_topk is torch's.

    mkdir -p released
    pip download --no-deps flag-gems==5.0.2 && unzip -q flag_gems-5.0.2-*.whl '*.py' -d released/flag_gems-5.0.2
    export RELEASED=$PWD/released
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin flag_gems_triton.py --platform sim-sm90
"""

import contextlib
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_files
import torch
import triton
import triton_interpreter

triton_interpreter.start()
FOLDER, VERSION = released_files.folder("flag_gems")
FILES = [
    f"flag_gems.{name}"
    for name in (
        "fused.fused_add_rms_norm", "fused.grouped_topk", "fused.mhc.mhc_post", "fused.mhc.mhc_pre",
        "ops.per_token_group_quant_fp8", "ops.rms_norm", "ops.topk", "utils.triton_lang_extension",
    )
]  # fmt: skip
DEVICE = types.SimpleNamespace(
    device=lambda *arguments: contextlib.nullcontext(),
    is_available=lambda: True,
    get_device_capability=lambda *arguments: (9, 0),
)
CONFIGS = {"rms_norm_loop": [triton.Config({"TILE_N": 1024}, num_warps=4)]}
released_files.use(
    "flag_gems",
    FOLDER,
    FILES,
    {
        "flag_gems.runtime": {
            "torch_device_fn": DEVICE,
            "get_tuned_config": lambda name: CONFIGS.get(name, [triton.Config({})]),
            "device": types.SimpleNamespace(name="cuda", vendor_name="nvidia", support_fp64=True),
        },
        "flag_gems.utils.device_info": {"get_device_capability": lambda *arguments: (9, 0)},
        "flag_gems.ops.tanh": {"tanh": torch.tanh},
        "flag_gems.utils": {"libentry": lambda: lambda function: function},
        "flag_gems.utils.triton_version_utils": {"has_triton_tle": lambda *version: False, "HAS_TLE": False},
    },
)

from adapter_tensors import OCP, TREE, need, norm_kernels, tensor
from flag_gems.fused import fused_add_rms_norm as fused_add
from flag_gems.fused import grouped_topk as router
from flag_gems.fused.mhc import mhc_post as post_file
from flag_gems.fused.mhc import mhc_pre as pre_file
from flag_gems.ops import per_token_group_quant_fp8 as quant
from flag_gems.ops import rms_norm as norm_file
from flag_gems.ops import topk as topk_file
from plumb_kernels import kernel

ONCE = {"rounding": "once"}


def norm(x, weight, out, eps):
    need(weight is not None, "with a weight only")
    if tensor(x).numel():
        tensor(out).copy_(norm_file.rms_norm_forward(tensor(x), (x.shape[-1],), tensor(weight), eps)[0])


rms_norm, shared_head, q_kv_norm = norm_kernels(norm, numerics=TREE, contract=ONCE, platforms="sim-*")


@kernel("fused_add_rms_norm", numerics=TREE, contract={"rounding": "once", "sum": "fp32"}, platforms="sim-*")
def fused_add_norm(x, residual, weight, eps, tokens):
    """FlagGems writes in place, as its docstring says. Its return value is ignored."""
    if tokens:
        fused_add.fused_add_rms_norm(tensor(x), tensor(residual), (x.shape[-1],), tensor(weight), eps)


@kernel("mhc_post", numerics=TREE, platforms="sim-*")
def mhc_post(x, residual, post, comb, out, tokens):
    if tokens:
        tensor(out).copy_(post_file.mhc_post(*map(tensor, (x, residual, post, comb))))


@kernel("mhc_pre", numerics={**TREE, "product": "bf16", "chains": 1}, contract={"mixes": "bf16"}, platforms="sim-*")
def mhc_pre(residual, fn, scale, base, norm_weight, post, comb, layer_input, splits, sinkhorn_iterations, tokens, **more):
    need(norm_weight is None and splits == 1, "no fused norm, no splits")
    if tokens:
        with torch.enable_grad():  # without a gradient the second call with one fn raises an error (docs/found.md)
            results = pre_file.mhc_pre(
                tensor(residual), tensor(fn), tensor(scale), tensor(base), more["rms_eps"], more["pre_eps"],
                more["sinkhorn_eps"], more["post_mult"], sinkhorn_iterations,
            )  # fmt: skip
        for to, made in zip((post, comb, layer_input), results, strict=True):
            tensor(to).copy_(made.reshape(to.shape))


def select(window, k, indices):
    indices.fill_(-1)
    if len(window) <= k:
        indices[: len(window)] = torch.arange(len(window), dtype=torch.int32)
    else:
        indices.copy_(topk_file.topk(window.reshape(1, -1).contiguous(), k)[1].reshape(-1))


@kernel(
    "top_k_per_row_prefill",
    numerics={"deterministic": 1, "index_order": "any", "equal_keys": "any"},
    contract={"nan_order": "unspecified", "zeros": "equal"},
    platforms="sim-*",
)
def topk_prefill(logits, row_starts, row_ends, indices, k, logits_column_stride):
    need(k <= 128, "at most 128 indices: the interpreter takes one pass for each")
    need(logits.dtype == "float32", "fp32 logits only: bf16 was not tried")
    columns, chosen = tensor(logits)[:, ::logits_column_stride], tensor(indices)
    for row, (start, end) in enumerate(zip(row_starts.tolist(), row_ends.tolist(), strict=True)):
        select(columns[row, start : max(start, end)], k, chosen[row])


@kernel("per_token_group_quant_fp8", numerics=TREE, platforms=OCP)
def group_quant(x, q, scales, tokens, columns, group_size, scale_format, quotient, dialect, amax_floor, scale_floor):
    need(columns % group_size == 0, "whole groups only")
    need(scale_format == "fp32" and scale_floor == 0, "fp32 scales with a floor under amax only")
    need(quotient == "divide" or quotient == 0, "a quotient only")
    need(dialect == "e4m3fn", "OCP codes only")
    if tokens:
        codes, made = quant.per_token_group_quant_fp8(tensor(x), group_size, amax_floor, torch.float8_e4m3fn)
        tensor(q).copy_(codes.view(torch.uint8))
        tensor(scales).copy_(made)


@kernel(
    "grouped_topk",
    numerics={"deterministic": 1, "function_ulp": 4},
    contract={"ties": "lower_id", "nonfinite": "ordered_bits", "arithmetic": "logits_format_tanh", "bias_format": "logits_format"},
    platforms="sim-*",
)
def grouped_topk(logits, bias, weights, ids, tokens, experts, topk, n_group, topk_group, renormalize, routed_scaling_factor):
    need(tensor(logits).is_contiguous(), "contiguous logits only")
    if tokens:
        made = router.grouped_topk(
            tensor(logits), n_group, topk_group, topk, bool(renormalize), routed_scaling_factor, tensor(bias), 1
        )
        tensor(weights).copy_(made[0])
        tensor(ids).copy_(made[1])
