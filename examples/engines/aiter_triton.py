# SPDX-License-Identifier: Apache-2.0
"""Triton kernels of AITER (amd-aiter) in Triton's interpreter. They have not been run on an AMD card here.

The interpreter has no matrix product of e4m3fnuz, so fp8_mqa_logits runs on sim-gfx950. It also lacks tl.core.sub and
tensor.floor, which dynamic_mxfp4_quant calls; the adapter replaces them.

    pip download --no-deps amd-aiter==0.1.7.post2.dev18 && mkdir -p released
    unzip -q amd_aiter-*.whl 'aiter/*.py' -d released/amd_aiter-0.1.7.post2.dev18; export RELEASED=$PWD/released
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin aiter_triton.py --platform sim-gfx942
"""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_files
import torch
import triton.language as tl
import triton_interpreter

triton_interpreter.start()
FOLDER, VERSION = released_files.folder("amd_aiter")
TRITON = "aiter.ops.triton"
FILES = [
    f"{TRITON}.{name}"
    for name in (
        "_triton_kernels.fp8_mqa_logits", "_triton_kernels.quant", "_triton_kernels.rmsnorm", "_triton_kernels.topk",
        "fp8_mqa_logits", "quant", "rmsnorm", "topk", "utils._triton.kernel_repr", "utils.types",
    )
]  # fmt: skip
released_files.use(
    "aiter",
    FOLDER,
    FILES,
    {
        f"{TRITON}.utils.logger": {"AiterTritonLogger": lambda: logging.getLogger("aiter")},
        f"{TRITON}.utils._triton.arch_info": {"get_arch": lambda: "gfx942", "is_fp8_avail": lambda: True},
        f"{TRITON}.utils.device_info": {"get_num_sms": lambda: 304, "get_num_xcds": lambda: 8},
    },
)

from adapter_tensors import TREE, flat, fp8, need, norm_kernels, tensor
from aiter.ops.triton import fp8_mqa_logits as mqa
from aiter.ops.triton import quant, rmsnorm, topk
from plumb_kernels import kernel

ONCE = {"rounding": "once"}


def norm(x, weight, out, eps):
    need(weight is not None, "with a weight only")
    if tensor(x).numel():
        with torch.no_grad():
            tensor(out).copy_(rmsnorm.rms_norm(tensor(x), tensor(weight), eps))


rms_norm, shared_head, q_kv_norm = norm_kernels(norm, numerics=TREE, contract=ONCE, platforms="sim-*")


@kernel("fused_add_rms_norm", numerics=TREE, contract={"rounding": "once", "sum": "bf16"}, platforms="sim-*")
def fused_add(x, residual, weight, eps, tokens):
    """The kernel uses one row stride for input and residuals; its wrapper does not check that the strides are equal."""
    if tokens:
        with torch.no_grad():
            out = torch.empty(x.shape, dtype=torch.bfloat16)
            rmsnorm.rmsnorm2d_fwd_with_add(out, tensor(x), tensor(residual), tensor(residual), tensor(weight), eps)
            tensor(x).copy_(out)


def select(window, k, indices):
    indices.fill_(-1)
    if len(window) <= k:
        indices[: len(window)] = torch.arange(len(window), dtype=torch.int32)
        return
    block = topk._pick_block(len(window), k)
    need(block & (block - 1) == 0, "the block is no power of two: Triton does not compile it")
    _, chosen = topk.topk(window.reshape(1, -1).contiguous(), k)
    indices.copy_(chosen.reshape(-1))


ORDER = {"deterministic": 1, "index_order": "any", "equal_keys": "any"}
CHOICES = {"nan_order": "unspecified", "zeros": "equal"}


@kernel("top_k_per_row_prefill", numerics=ORDER, contract=CHOICES, platforms="sim-*")
def topk_prefill(logits, row_starts, row_ends, indices, k, logits_column_stride):
    need(k <= 128, "at most 128 indices: the interpreter takes one pass for each")
    need(logits.dtype == "float32", "fp32 logits only: bf16 was not tried")
    columns, chosen = tensor(logits)[:, ::logits_column_stride], tensor(indices)
    for row, (start, end) in enumerate(zip(row_starts.tolist(), row_ends.tolist(), strict=True)):
        select(columns[row, start : max(start, end)], k, chosen[row])


@kernel("fp8_mqa_logits", numerics={"deterministic": 1, "function_ulp": 2, "chains": 1}, platforms="sim-*")
def mqa_logits(q, k, k_scale, weights, starts, ends, logits, q_dialect, k_dialect, max_seqlen_k, rows, keys):
    need(max_seqlen_k == 0, "columns of all keys only")
    need(q_dialect == k_dialect == "e4m3fn", "OCP codes only: the interpreter has no product of fnuz codes")
    if rows * keys:
        arguments = fp8(q, q_dialect), fp8(k, k_dialect), tensor(k_scale), tensor(weights), flat(starts), flat(ends)
        tensor(logits)[:, :keys] = mqa.fp8_mqa_logits(*arguments)


def mend_builtins():
    """A kernel calls both functions without an argument that Triton's compiler adds but its interpreter does not."""
    of_core = tl.core.sub

    def sub(left, right, *arguments, _semantic=None, **more):
        return left - right if _semantic is None else of_core(left, right, *arguments, _semantic=_semantic, **more)

    tl.core.sub = sub
    tl.tensor.floor = lambda self: tl.math.floor(self)


if triton_interpreter.wanted():
    mend_builtins()


@kernel(
    "mxfp4_quant",
    numerics={"deterministic": 1},
    contract={"scale_rule": "even", "ties": "away", "negative_zero": "kept", "floor": "0x1p-125"},
    platforms="sim-*",
)
def mxfp4_quant(x, q, scales, tokens):
    if tokens:
        codes, made = quant.dynamic_mxfp4_quant(tensor(x))
        tensor(q).copy_(codes)
        tensor(scales).copy_(made)
