# SPDX-License-Identifier: Apache-2.0
"""Triton kernels of vLLM 0.33.0 as implementations of plumb's ops (vllm_files.py says how to get them), on a
card or in Triton's interpreter.

    PYTHONPATH=build/sim/python plumb run --plugin vllm_triton.py --platform cuda-sm90
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin vllm_triton.py --platform sim-sm90
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
import triton_interpreter
import vllm_files

vllm_files.use()

from adapter_tensors import OCP, TREE, flat, need, tensor
from plumb_kernels import kernel
from vllm.model_executor.kernels.mhc import torch as mhc_torch
from vllm.model_executor.kernels.mhc import triton as mhc_triton
from vllm.model_executor.layers.quantization.utils import fp8_utils
from vllm.models.common.ops import fused_qk_rmsnorm
from vllm.models.deepseek_v4 import sparse_mla
from vllm.models.deepseek_v4.amd import rocm as v4_rocm
from vllm.models.deepseek_v4.common.ops import cache_utils, fused_indexer_q, fused_mtp_input_rmsnorm
from vllm.v1.attention.ops import common, rocm_aiter_mla_sparse

triton_interpreter.start()


@kernel("q_kv_rms_norm", numerics=TREE, contract={"rounding": "once"})
def fused_q_kv_rmsnorm(q, kv, out_q, out_kv, q_weight, kv_weight, eps, tokens):
    if tokens:
        fused_qk_rmsnorm._FUSED_Q_KV_RMSNORM_KERNEL(*map(tensor, (q, kv, out_q, out_kv, q_weight, kv_weight)), eps)


@kernel("mtp_input_rms_norm", numerics=TREE, contract={"rounding": "once"})
def fused_mtp_input(embeds, previous_hidden, positions, enorm_weight, hnorm_weight, out_embeds, out_hidden, eps, hc_mult):
    outputs = tensor(out_embeds), tensor(out_hidden)
    need(all(one.is_contiguous() for one in outputs), "contiguous outputs only")
    fused_mtp_input_rmsnorm._FUSED_MTP_INPUT_RMSNORM_KERNEL(
        *map(tensor, (embeds, positions, previous_hidden, enorm_weight, hnorm_weight)), eps, hc_mult, _outputs=outputs
    )


@kernel("mtp_shared_head_rms_norm", numerics=TREE, contract={"rounding": "once"})
def mtp_shared_head(x, weight, out, eps):
    need(tensor(out).is_contiguous(), "contiguous outputs only")
    fused_mtp_input_rmsnorm._MTP_SHARED_HEAD_RMSNORM_KERNEL(tensor(x), tensor(weight), eps, _output=tensor(out))


@kernel("hc_head", numerics=TREE, contract={"rounding": "twice"})
def hc_head_reduce(hidden_states, fn, scale, base, out, rms_eps, hc_eps, tokens):
    if tokens:
        mhc_triton.hc_head_reduce_triton_kernel(*map(tensor, (hidden_states, fn, scale, base, out)), rms_eps, hc_eps)


@kernel("mhc_post", numerics=TREE)
def mhc_post(x, residual, post, comb, out, tokens):
    if tokens:
        tensor(out).copy_(mhc_torch.mhc_post_torch(tensor(x), tensor(residual), tensor(post).unsqueeze(-1), tensor(comb)))


@kernel("quantize_and_insert_k_cache", numerics=TREE, contract={"floor": "1e-4", "pad": "zero", "skip": "minus_one"}, platforms=OCP)
def quantize_and_insert(kv, slot_mapping, cache, cache_page, cache_block_stride_bytes, cache_dialect, tokens):
    need(cache_dialect == "e4m3fn", "OCP caches only")
    need(tensor(kv).stride(0) == 512 or tokens < 2, "rows of 512 only")
    blocks = tensor(cache).view(torch.uint8)
    blocks = blocks.as_strided((blocks.shape[0], 1), (cache_block_stride_bytes, 1))
    if tokens:
        cache_utils.quantize_and_insert_k_cache(tensor(kv), blocks, flat(slot_mapping), cache_page)


@kernel("dequantize_and_gather_k_cache", numerics=TREE, platforms=OCP)
def dequantize_and_gather(workspace, k_cache, seq_lens, gather_lens, block_table, cache_page, cache_block_stride_bytes, cache_dialect, offset, requests):
    need(cache_dialect == "e4m3fn", "OCP caches only")
    table = tensor(block_table)
    need(requests < 2 or table.stride(0) == table.shape[1], "contiguous block tables only")
    blocks = tensor(k_cache).view(torch.uint8)
    blocks = blocks.as_strided((blocks.shape[0], 1), (cache_block_stride_bytes, 1))
    lengths = None if gather_lens is None else flat(gather_lens)
    cache_utils._DEQUANTIZE_AND_GATHER_K_CACHE_KERNEL(tensor(workspace), blocks, flat(seq_lens), lengths, table, cache_page, offset, use_fnuz=False)


@kernel(
    "indexer_q_rope_quant",
    numerics=TREE,
    contract={"floor": "1e-4", "scale_form": "pow2", "rotated_rounding": "bf16", "hadamard": "none"},
    platforms=OCP,
)
def fused_indexer_q_rope_quant(positions, q, cos_sin, weights, softmax_scale, head_scale, q_out, weights_out, rope_offset, rope_dim, dim, dialect):
    need(rope_offset == dim - rope_dim, "RoPE in the last dims only")
    need(dialect == "e4m3fn", "OCP codes only")
    codes = tensor(q_out).view(torch.float8_e4m3fn)
    inputs = map(tensor, (positions, q, cos_sin, weights))
    fused_indexer_q._FUSED_INDEXER_Q_ROPE_QUANT_TRITON_KERNEL(
        *inputs, softmax_scale, head_scale, codes, tensor(weights_out), fp8_max=448.0, use_fnuz=False
    )


@kernel("cp_gather_indexer_k_quant_cache", numerics=TREE, contract={"request_of_key": "token_to_seq"})
def cp_gather_indexer_keys(k, k_scale, cache, block_table, cu_seq_lens, token_to_seq, cache_page, cache_block_stride_bytes, head_dim, quant_block_size, shuffled, requests, keys):
    need(head_dim == quant_block_size, "one scale per key only")
    need(tensor(k).is_contiguous() and tensor(k_scale).is_contiguous(), "contiguous outputs only")
    if requests and keys:
        blocks = tensor(cache).view(torch.uint8)
        width = head_dim + 4
        rocm_aiter_mla_sparse.FP8_DTYPE = torch.float8_e4m3fn  # bytes are copied, so the dtype does not matter
        blocks = blocks.as_strided((blocks.shape[0], cache_page, width), (cache_block_stride_bytes, width, 1))
        rocm_aiter_mla_sparse.cp_gather_indexer_k_quant_cache_triton(
            blocks, tensor(k).view(torch.float8_e4m3fn), tensor(k_scale), tensor(block_table), flat(cu_seq_lens), flat(token_to_seq),
            cache_layout="NORMAL" if shuffled == "planar" else "SHUFFLE",
        )  # fmt: skip


@kernel("per_token_group_quant_fp8", numerics=TREE, platforms=OCP)
def per_token_group_quant(x, q, scales, tokens, columns, group_size, scale_format, quotient, dialect, amax_floor, scale_floor, q_row_stride, scales_group_stride):
    need(columns % group_size == 0, "whole groups only")
    need(scale_format in ("fp32", "power_of_two") and scale_floor == 0, "fp32 scales with a floor under amax only")
    need(q_row_stride == columns and scales_group_stride == 1, "row-major outputs only")
    need(dialect == "e4m3fn", "OCP codes only")
    groups = tokens * (columns // group_size)
    if groups:
        fp8_utils._per_token_group_quant_fp8[(groups,)](
            tensor(x), tensor(q).view(torch.float8_e4m3fn), tensor(scales), group_size, columns, tensor(x).stride(0), amax_floor,
            fp8_min=-448.0, fp8_max=448.0, use_ue8m0=scale_format == "power_of_two",
            BLOCK=1 << (group_size - 1).bit_length(), num_warps=1, num_stages=1,
        )  # fmt: skip


@kernel("compute_global_topk_indices_and_lens", numerics=TREE, contract={"compaction": "none", "bounds": "unchecked"})
def global_topk_indices(topk_indices, token_to_req, is_valid_token, block_table, global_indices, lens, block_size, tokens):
    if tokens:
        cache_utils._COMPUTE_GLOBAL_TOPK_INDICES_AND_LENS_KERNEL(
            tensor(global_indices), flat(lens), tensor(topk_indices), flat(token_to_req), tensor(block_table), block_size, flat(is_valid_token)
        )


@kernel("compute_global_topk_ragged_indices_and_indptr", numerics=TREE)
def global_topk_ragged(topk_indices, token_to_req, is_valid_token, block_table, block_size, tokens, topk, lens, indptr, **outputs):
    chosen, lengths, starts, table = tensor(topk_indices), flat(lens), flat(indptr), tensor(block_table)
    starts[:1] = 0
    if tokens:
        v4_rocm._compute_topk_lens_kernel[(tokens,)](lengths, chosen, chosen.stride(0), topk, flat(is_valid_token), TRITON_BLOCK_SIZE=1024)
    torch.cumsum(lengths, dim=0, out=starts[1:])
    if tokens * topk:
        v4_rocm._pack_global_topk_ragged_kernel[(tokens, math.ceil(topk / 128))](
            flat(outputs["flat"]), starts, chosen, chosen.stride(0), flat(token_to_req), table, table.stride(0), block_size, topk, BLOCK_SIZE=128
        )


@kernel("build_ragged_indices_from_dense", numerics=TREE, contract={"holes": "dropped"})
def ragged_from_dense(indices, lengths, rows, width, num_rows, indptr, **outputs):
    dense, lens, starts = tensor(indices), flat(lengths), flat(indptr)
    starts[:1] = 0
    if rows * width == 0:
        starts.zero_()
        return
    block = min(1 << (width - 1).bit_length(), 1024)
    rows_of_block = max(1, 1024 // block)
    counts = torch.empty(rows, dtype=torch.int32, device=dense.device)
    rocm_aiter_mla_sparse._count_valid_row_entries_kernel[(math.ceil(rows / rows_of_block),)](
        dense, lens, counts, starts, dense.stride(0), num_rows, rows, width, BLOCK_R=rows_of_block, BLOCK_W=block
    )
    torch.cumsum(counts, dim=0, out=starts[1:])
    rocm_aiter_mla_sparse._compact_dense_row_to_ragged_kernel[(rows,)](
        dense, lens, starts, flat(outputs["flat"]), dense.stride(0), num_rows, width, BLOCK_W=block
    )


@kernel("copy_ragged_to_graph_buffers", numerics=TREE, contract={"copied": "capacity"})
def copy_ragged(rows, max_per_row, indices, indptr, indices_buffer, indptr_buffer):
    v4_rocm._copy_ragged_to_graph_buffers(*map(flat, (indices, indptr, indices_buffer, indptr_buffer)), rows, max_per_row)


@kernel("c128a_decode_metadata", numerics=TREE)
def c128a_metadata(decode_tokens, prefill_tokens, max_compressed, block_size, positions, slot_mapping, token_to_req, block_table, decode_slots, decode_lens, prefill_indices):
    if decode_tokens + prefill_tokens:
        sparse_mla._BUILD_C128A_TOPK_METADATA_KERNEL(
            tensor(decode_slots), flat(decode_lens), tensor(prefill_indices), flat(positions), 128, max_compressed, decode_tokens,
            flat(token_to_req), tensor(block_table), block_size, flat(slot_mapping),
        )  # fmt: skip


@kernel("pack_seq", numerics=TREE)
def pack_seq(x, lengths, out, sequences, max_length, columns, tokens, pad_bits, x_row_stride):
    need(tensor(out).is_contiguous() and x_row_stride == columns, "contiguous rows only")
    need(pad_bits != 0xFFFFFFFF, "floats and bytes only")
    bytes_ = pad_bits == 0
    if sequences * max_length:
        common._PACK_SEQ_TRITON_KERNEL(
            tensor(x), tensor(out), flat(lengths), N=tokens, D=columns, Lmax=max_length,
            pad_value=0 if bytes_ else -math.inf, pad_is_uint8=bytes_, block_t=64, block_d=64,
        )  # fmt: skip


@kernel("unpack_seq", numerics=TREE)
def unpack_seq(x, lengths, out, sequences, max_length, columns, out_row_stride):
    need(out_row_stride == columns, "contiguous rows only")
    if sequences * max_length:
        common._UNPACK_SEQ_TRITON_KERNEL(tensor(x), tensor(out), flat(lengths), B=sequences, Lmax=max_length, D=columns, block_t=64, block_d=64)
