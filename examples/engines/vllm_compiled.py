# SPDX-License-Identifier: Apache-2.0
"""The compiled CUDA ops of vLLM 0.33.0's wheel as implementations of plumb's ops, on a card.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/*_C_stable_libtorch.abi3.so' -d vllm-0.33.0
    export VLLM_FILES=$PWD/vllm-0.33.0
    PYTHONPATH=build/sim/python plumb run --plugin vllm_compiled.py --platform cuda-sm90

vLLM itself is not imported, and the libraries also load in torch 2.11. VLLM_TOP_K chooses the kernel of
top_k_per_row_decode: per_row (otherwise), persistent or cooperative. VLLM_GROUPS chooses the rows of grouped_topk, whose kernel
for one group makes other choices: several (otherwise) or one.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from adapter_tensors import TREE, contiguous, flat, fp8, need, norm_kernels, tensor
from plumb_kernels import Unsupported, kernel

FILES = os.environ.get("VLLM_FILES")
if not FILES:
    raise ImportError("VLLM_FILES has to name a folder with vLLM's wheel unpacked")
for library in ("_C_stable_libtorch", "_moe_C_stable_libtorch"):
    torch.ops.load_library(os.path.join(FILES, "vllm", f"{library}.abi3.so"))
OPS, CACHE_OPS, MOE = torch.ops._C, torch.ops._C_cache_ops, torch.ops._moe_C
TOP_K = os.environ.get("VLLM_TOP_K", "per_row")
ONE_GROUP = os.environ.get("VLLM_GROUPS") == "one"
KERNEL = {"numerics": TREE, "platforms": "cuda-*"}


def call(function, *arguments):
    try:
        return function(*arguments)
    except RuntimeError as error:  # shapes that vLLM refuses
        text = str(error).splitlines()[0]
        if "CUDA error" in text or "CUDA driver" in text:
            raise
        raise Unsupported(text) from None


def norm(x, weight, out, eps):
    need(contiguous(out), "contiguous outputs only")
    if len(x):
        call(OPS.rms_norm, tensor(out), tensor(x), tensor(weight), eps)


rms_norm, shared_head_norm, q_kv_norm = norm_kernels(norm, **KERNEL, contract={"rounding": "once"})


@kernel("fused_add_rms_norm", **KERNEL, contract={"rounding": "once", "sum": "bf16"})
def fused_add_rms_norm(x, residual, weight, eps):
    need(contiguous(residual), "contiguous residuals only")
    if len(x):
        call(OPS.fused_add_rms_norm, tensor(x), tensor(residual), tensor(weight), eps)


def blocks_of(cache, width, page, stride):
    """The cache's memory as [blocks, page, bytes per token]."""
    taken = tensor(cache).view(torch.uint8)
    return taken.as_strided((taken.shape[0], page, width), (stride, width, 1))


@kernel("q_head_rms_norm_rope", **KERNEL, contract={"rounding": "once", "placement": "copy"})
def q_head_norm_rope(q, positions, cos_sin, out, eps, heads, tokens):
    """The queries of vLLM's fused op. It gets keys without slots, so it writes to no cache."""
    need(contiguous(q), "contiguous queries only")
    if tokens:
        keys = torch.zeros(tokens, 512, dtype=torch.bfloat16, device=q.device)
        slots = torch.full((tokens,), -1, dtype=torch.int64, device=q.device)
        cache = torch.zeros(1, 64 * 584, dtype=torch.uint8, device=q.device)
        made = call(OPS.fused_deepseek_v4_qnorm_rope_kv_rope_quant_insert, q, keys, cache, slots, flat(positions), tensor(cos_sin), heads, eps, 64)
        tensor(out).copy_(made[:, :heads])


@kernel("inverse_rope", **KERNEL, contract={"placement": "in_place"})
def inverse_rope(x, positions, cos_sin, heads, tokens):
    if tokens:
        call(OPS.rotary_embedding, flat(positions), tensor(x), None, 512, tensor(cos_sin), False, 448, True)


@kernel("concat_and_cache_ds_mla", **KERNEL, contract={"skip": "negative", "scale_form": "pow2", "floor": "1e-4"})
def concat_and_cache(kv_c, k_pe, slot_mapping, cache, cache_page, cache_block_stride_bytes, cache_dialect, tokens):
    need(cache_dialect == "e4m3fn", "OCP caches only")
    if tokens:
        blocks = blocks_of(cache, 656, cache_page, cache_block_stride_bytes)
        scale = torch.ones(1, dtype=torch.float32, device=blocks.device)
        call(CACHE_OPS.concat_and_cache_mla, tensor(kv_c), tensor(k_pe), blocks, flat(slot_mapping)[:tokens], "fp8_ds_mla", scale)


@kernel("indexer_k_quant_and_cache", **KERNEL, contract={"skip": "negative", "scale_form": "pow2", "floor": "1e-4"})
def indexer_k_quant(k, slot_mapping, cache, cache_page, cache_block_stride_bytes, cache_dialect, head_dim, quant_block_size, shuffled, tokens):
    need(cache_dialect == "e4m3fn", "OCP caches only")
    need(shuffled == "planar", "row after row only")
    if tokens:
        blocks = blocks_of(cache, head_dim + 4 * head_dim // quant_block_size, cache_page, cache_block_stride_bytes)
        call(CACHE_OPS.indexer_k_quant_and_cache, tensor(k), blocks, flat(slot_mapping)[:tokens], quant_block_size, "ue8m0")


@kernel("cp_gather_indexer_k_quant_cache", **KERNEL, contract={"request_of_key": "cu_seq_lens"})
def cp_gather_indexer_keys(k, k_scale, cache, block_table, cu_seq_lens, cache_page, cache_block_stride_bytes, head_dim, quant_block_size, shuffled, requests, keys):
    need(shuffled == "planar", "row after row only")
    need(contiguous(k, k_scale), "contiguous outputs only")
    if requests and keys:
        blocks = blocks_of(cache, head_dim + 4 * head_dim // quant_block_size, cache_page, cache_block_stride_bytes)
        call(CACHE_OPS.cp_gather_indexer_k_quant_cache, blocks, tensor(k), tensor(k_scale), tensor(block_table), flat(cu_seq_lens))


def with_columns(logits, rows, columns, row_stride, column_stride):
    return logits.as_strided((rows, columns), (row_stride, column_stride))


@kernel("top_k_per_row_prefill", **KERNEL, contract={"nan_order": "unspecified", "zeros": "by_sign"})
def top_k_prefill(logits, row_starts, row_ends, indices, rows, logits_row_stride, logits_column_stride, k):
    need(logits.dtype == torch.float32, "fp32 logits only")
    need(contiguous(indices), "contiguous outputs only")
    if rows:
        call(OPS.top_k_per_row_prefill, logits, flat(row_starts), flat(row_ends), indices, rows, logits_row_stride, logits_column_stride, k)


@kernel("top_k_per_row_decode", **KERNEL, contract={"nan_order": "unspecified", "zeros": "by_sign"})
def top_k_decode(logits, seq_lens, indices, rows, columns, logits_row_stride, logits_column_stride, seq_lens_dims, next_n, k):
    need(logits.dtype == torch.float32, "fp32 logits only")
    need(contiguous(indices, seq_lens), "contiguous outputs and lengths only")
    if not rows:
        return
    lengths = tensor(seq_lens) if seq_lens_dims == 2 else flat(seq_lens)
    logits = with_columns(logits, rows, columns, logits_row_stride, logits_column_stride)
    if TOP_K == "per_row":
        call(OPS.top_k_per_row_decode, logits, next_n, lengths, indices, rows, logits_row_stride, logits_column_stride, k)
        return
    need(logits_column_stride == 1 and k in (512, 1024, 2048), "adjacent columns and k of 512, 1024 or 2048 only")
    if TOP_K == "cooperative":
        need(logits_row_stride % 4 == 0 and rows <= 32, "at most 32 rows, whose stride is a multiple of 4, only")
    scratch = torch.zeros(1 << 20, dtype=torch.uint8, device=logits.device)
    call(OPS.cooperative_topk if TOP_K == "cooperative" else OPS.persistent_topk, logits, lengths, indices, scratch, k, columns)


FOR_ONE_GROUP = {"arithmetic": "fp32", "nonfinite": "guard_all", "kernel_domain": "everywhere"}
FOR_SEVERAL_GROUPS = {"arithmetic": "logits_format", "nonfinite": "guard_choice_only", "kernel_domain": "small_experts_in_fp32"}


@kernel("grouped_topk", **KERNEL, contract={**(FOR_ONE_GROUP if ONE_GROUP else FOR_SEVERAL_GROUPS), "bias_format": "fp32", "ties": "any", "order": "any"})
def grouped_topk(logits, bias, weights, ids, n_group, topk_group, topk, renormalize, routed_scaling_factor, tokens):
    need((n_group == 1) == ONE_GROUP, f"{'one group' if ONE_GROUP else 'several groups'} only (VLLM_GROUPS)")
    if tokens:
        made = call(MOE.grouped_topk, tensor(logits), n_group, topk_group, topk, bool(renormalize), routed_scaling_factor, flat(bias), 1)
        tensor(weights).copy_(made[0])
        tensor(ids).copy_(made[1])


ROUTER = {"softplus": "threshold_20", "softplus_small": "log_1p_exp", "nan_score": "zero", "zero_sum": "one"}


def softplus_router(logits, bias, weights, ids, token_expert_indices, renormalize, scale, input_ids, table, is_padding):
    need(contiguous(weights, ids, logits, token_expert_indices), "contiguous rows only")
    if len(logits):
        places = torch.empty_like(ids) if token_expert_indices is None else token_expert_indices
        padding = None if is_padding is None else flat(is_padding).view(torch.bool)
        call(MOE.topk_softplus_sqrt, weights, ids, places, logits, bool(renormalize), scale, bias, input_ids, table, padding)


@kernel("sqrt_softplus_topk", **KERNEL, contract=ROUTER | {"weight": "recovered"})
def sqrt_softplus_topk(logits, bias, weights, ids, token_expert_indices, is_padding, renormalize, routed_scaling_factor):
    softplus_router(*map(tensor, (logits, flat(bias), weights, ids, token_expert_indices)), renormalize, routed_scaling_factor, None, None, is_padding)


@kernel("hash_routing", **KERNEL, contract=ROUTER | {"strangers": "never"})
def hash_routing(logits, input_ids, tid2eid, weights, ids, renormalize, routed_scaling_factor):
    softplus_router(*map(tensor, (logits, None, weights, ids, None)), renormalize, routed_scaling_factor, flat(input_ids), tensor(tid2eid), None)


@kernel("per_token_group_quant_fp8", **KERNEL)
def per_token_group_quant(x, q, scales, tokens, columns, group_size, scale_format, dialect, amax_floor, scale_floor, scales_token_stride, scales_group_stride):
    need(columns % group_size == 0, "whole groups only")
    need(scale_format in ("fp32", "power_of_two"), "fp32 scales only")
    need((scale_floor > 0) == (scale_format == "power_of_two"), "powers of two of at least 1e-10, and other scales without a floor only")
    need(dialect == "e4m3fn", "OCP codes only")
    need(contiguous(x, q), "contiguous rows only")
    if tokens:
        rows = tensor(scales).as_strided((tokens, columns // group_size), (scales_token_stride, scales_group_stride))
        call(
            OPS.per_token_group_fp8_quant, tensor(x), fp8(q, dialect), rows, group_size, amax_floor, -448.0, 448.0,
            scale_format == "power_of_two", scales_group_stride != 1, False,
        )  # fmt: skip
