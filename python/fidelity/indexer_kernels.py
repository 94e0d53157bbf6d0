# SPDX-License-Identifier: Apache-2.0
"""The lightning indexer in numpy: quantised queries, scores of keys, gathering of keys."""

import numpy as np
from formats import decode, encode_e4m3, from_bf16, from_ue8m0, round_bf16, ue8m0_ceil

from plumb_kernels import kernel

F32 = np.float32


def rotated(q, cos_sin, positions, rope_dim, rope_offset, rope_pairs):
    """Applies RoPE to bf16 queries. Returns fp32 [tokens, heads, dim]."""
    values = np.array(from_bf16(q))
    half = rope_dim // 2
    table = np.stack([cos_sin[position] for position in positions])[:, None, :]
    cosine, sine = table[..., :half], table[..., half:]
    part = values[..., rope_offset : rope_offset + rope_dim]
    first, second = (part[..., 0::2], part[..., 1::2]) if rope_pairs == "interleaved" else (part[..., :half], part[..., half:])
    turned = first * cosine - second * sine, second * cosine + first * sine
    if rope_pairs == "interleaved":
        part[..., 0::2], part[..., 1::2] = turned
    else:
        part[..., :half], part[..., half:] = turned
    return values


def transformed(values):
    """Hadamard transform (Sylvester's matrix). A width that is not a power of two is padded with zeros."""
    dim, matrix = values.shape[-1], np.ones((1, 1), F32)
    while len(matrix) < dim:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (values @ matrix[:dim, :dim]) * F32(dim**-0.5)


def quantise(call, floor, pow2, through_bf16, hadamard=False):
    values = rotated(call["q"], call["cos_sin"], call["positions"], call["rope_dim"], call["rope_offset"], call["rope_pairs"])
    if through_bf16:
        values = round_bf16(values)
    if hadamard:
        values = transformed(values)
        values = round_bf16(values) if through_bf16 else values
    largest = F32(448 if call["dialect"] == "e4m3fn" else 224)
    scale = np.maximum(np.abs(values).max(axis=2), F32(floor)) / largest
    weights = from_bf16(call["weights"])
    softmax, head = F32(call["softmax_scale"]), F32(call["head_scale"])
    if pow2:
        scale = from_ue8m0(ue8m0_ceil(scale))
        codes = values / scale[..., None]
        call["weights_out"][:] = weights * scale * softmax * head
    else:
        codes = values * (F32(1) / scale)[..., None]
        call["weights_out"][:] = weights * (softmax * head) * scale
    call["q_out"][:] = encode_e4m3(call["dialect"], codes)


@kernel("indexer_q_rope_quant", contract={"floor": "1e-4", "scale_form": "pow2", "rotated_rounding": "bf16", "hadamard": "none"}, platforms="sim-*")
def indexer_q_of_vllm(**call):
    """The fused kernel of vLLM 0.22.1 and 0.33."""
    quantise(call, 1e-4, True, True)


@kernel("indexer_q_rope_quant", contract={"floor": "1e-10", "scale_form": "pow2", "rotated_rounding": "bf16", "hadamard": "none"}, platforms="sim-*")
def indexer_q_unfused(**call):
    """RoPE, then per_token_group_quant_fp8: vLLM's path for V3.2."""
    quantise(call, 1e-10, True, True)


@kernel("indexer_q_rope_quant", contract={"floor": "1e-4", "scale_form": "fp32", "rotated_rounding": "none", "hadamard": "none"}, platforms="sim-*")
def indexer_q_of_sglang(**call):
    quantise(call, 1e-4, False, False)


@kernel("indexer_q_rope_quant", contract={"floor": "1e-4", "scale_form": "fp32", "rotated_rounding": "bf16", "hadamard": "none"}, platforms="sim-*")
def indexer_q_fp32_scale(**call):
    quantise(call, 1e-4, False, True)


@kernel("indexer_q_rope_quant", contract={"floor": "1e-4", "scale_form": "pow2", "rotated_rounding": "none", "hadamard": "none"}, platforms="sim-*")
def indexer_q_fp32_rotation(**call):
    quantise(call, 1e-4, True, False)


@kernel("indexer_q_rope_quant", contract={"floor": "1e-4", "scale_form": "pow2", "rotated_rounding": "bf16", "hadamard": "q_and_k"}, platforms="sim-*")
def indexer_q_of_deepseek(**call):
    """model.py of V3.2, which rounds scales up to powers of two."""
    quantise(call, 1e-4, True, True, True)


@kernel("indexer_q_rope_quant", contract={"floor": "1e-4", "scale_form": "fp32", "rotated_rounding": "none", "hadamard": "q_and_k"}, platforms="sim-*")
def indexer_q_of_sglang_for_v4(**call):
    quantise(call, 1e-4, False, False, True)


def scores(q, keys, key_scale, weights):
    """Scores [n] of keys [n, dim] for the queries [heads, dim] of one token, all fp32."""
    products = np.maximum(keys @ q.T, F32(0))
    return (products @ weights) * key_scale


def scores_of_scaled_keys(q, keys, key_scale, weights):
    return scores(q, keys * key_scale[:, None], F32(1), weights)


def score_windows(score, q, k, k_scale, weights, starts, ends, logits, keys, max_seqlen_k, clean_logits, q_dialect, k_dialect, **more):
    queries = decode(q_dialect, q)
    for row in range(len(q)):
        start, end = min(max(int(starts[row]), 0), keys), min(max(int(ends[row]), 0), keys)
        if clean_logits:
            logits[row, :keys] = -np.inf
        if end <= start:
            continue
        first = 0 if max_seqlen_k > 0 else start
        own = decode(k_dialect, k[start:end])
        logits[row, first : first + end - start] = score(queries[row], own, k_scale[start:end], weights[row])


@kernel("fp8_mqa_logits", platforms="sim-*")
def mqa_logits(**call):
    score_windows(scores, **call)


@kernel("fp8_mqa_logits", contract={"scaled": "operand"}, platforms="sim-*")
def mqa_logits_of_scaled_keys(**call):
    score_windows(scores_of_scaled_keys, **call)


def tokens_of(block, page, dim, shuffled):
    """Codes [page, dim] and fp32 scales [page] of a block's bytes."""
    codes, scale = block[: page * dim], block[page * dim : page * (dim + 4)]
    if shuffled and page > 1:
        codes = codes.reshape(page // 16, dim // 16, 16, 16).transpose(0, 2, 1, 3)
    return codes.reshape(page, dim), np.ascontiguousarray(scale).view(F32)


def walk_contexts(page, score_block, call):
    """score_block(row, block, count): scores of a block's first tokens."""
    next_n, lengths, limit = call["next_n"], call["context_lens"], call["max_context_len"]
    for row in range(call["requests"] * next_n):
        request, i = divmod(row, next_n)
        if call["context_lens_dims"] == 2:
            length = int(np.reshape(lengths[request], -1)[i])
        else:
            length = int(np.reshape(lengths[request], -1)[0]) - next_n + i + 1
        length = max(length, 0)
        out = call["logits"][row]
        if call["clean_logits"]:
            out[length:limit] = -np.inf
        for column in range(0, length, page):
            block = call["cache"][int(call["block_table"][request][column // page])]
            count = min(page, length - column)
            out[column : column + count] = score_block(row, block, count)


def score_contexts(score, call):
    page, dim = call["cache_page"], call["dim"]
    queries = decode(call["q_dialect"], call["q"]).reshape(-1, call["heads"], dim)

    def score_block(row, block, count):
        codes, scale = tokens_of(block, page, dim, call["shuffled"] == "shuffled")
        keys = decode(call["cache_dialect"], codes[:count])
        return score(queries[row], keys, scale[:count], call["weights"][row])

    walk_contexts(page, score_block, call)


@kernel("fp8_paged_mqa_logits", platforms="sim-*")
def paged_mqa_logits(**call):
    score_contexts(scores, call)


@kernel("fp8_paged_mqa_logits", contract={"scaled": "operand"}, platforms="sim-*")
def paged_mqa_logits_of_scaled_keys(**call):
    score_contexts(scores_of_scaled_keys, call)


def mx_vectors(codes, scales, dim):
    """MXFP4 vectors [n, dim]: two codes in a byte, the even dim low, and 2^(scale - 127) for each 32 dims."""
    numbers = decode("e2m1", np.stack([codes & 15, codes >> 4], -1).reshape(-1, dim // 32, 32))
    return np.ldexp(numbers, scales.reshape(-1, dim // 32, 1).astype(np.int32) - 127).reshape(-1, dim)


@kernel("fp4_paged_mqa_logits", platforms="sim-*")
def paged_mqa_logits_of_mxfp4(**call):
    page, dim = call["page"], call["dim"]
    queries = mx_vectors(call["q"].reshape(-1, dim // 2), call["q_scales"], dim).reshape(-1, call["heads"], dim)

    def score_block(row, block, count):
        codes, scales = block[: page * dim // 2], block[page * dim // 2 :][: page * dim // 32]
        keys = mx_vectors(codes.reshape(page, dim // 2)[:count], scales.reshape(page, dim // 32)[:count], dim)
        return scores(queries[row], keys, F32(1), call["weights"][row])

    walk_contexts(page, score_block, call)


def gathered(call, requests):
    """`requests`: request of each row; a number outside of the batch skips the row."""
    starts, page, dim = call["cu_seq_lens"].ravel().astype(np.int64), call["cache_page"], call["head_dim"]
    rows = np.arange(len(requests))
    inside = (requests >= 0) & (requests < call["requests"])
    rows, requests = rows[inside], requests[inside]
    inside = (starts[requests] <= rows) & (rows < starts[requests + 1])
    rows, requests = rows[inside], requests[inside]
    block, offset = call["block_table"], (rows - starts[requests]) % page
    scale_bytes = call["k_scale"].shape[1]
    for row, request, at in zip(rows, requests, offset):
        data = call["cache"][int(block[request, (row - starts[request]) // page])]
        if call["shuffled"] == "shuffled" and page > 1:
            tiles = data[: page * dim].reshape(page // 16, dim // 16, 16, 16)
            call["k"][row] = tiles[at // 16, :, at % 16].reshape(dim)
        else:
            call["k"][row] = data[at * dim : (at + 1) * dim]
        call["k_scale"][row] = data[page * dim + at * scale_bytes :][:scale_bytes]


@kernel("cp_gather_indexer_k_quant_cache", contract={"request_of_key": "cu_seq_lens"}, platforms="sim-*")
def gather_of_vllm_cuda(**call):
    if call["requests"] and call["keys"]:
        gathered(call, np.searchsorted(call["cu_seq_lens"].ravel(), np.arange(call["keys"]), side="right") - 1)


@kernel("cp_gather_indexer_k_quant_cache", contract={"request_of_key": "token_to_seq"}, platforms="sim-*")
def gather_of_vllm_rocm(**call):
    if call["requests"] and call["keys"]:
        gathered(call, call["token_to_seq"].ravel().astype(np.int64))


def segments(context_lens, split_kv):
    return -(-context_lens[:, -1].astype(np.int64) // split_kv)


def entries_at(starts, prefix, counts, atoms, most):
    request = np.minimum(np.searchsorted(prefix * atoms, starts, side="right"), most)
    counts, before = np.append(counts, 0), np.append(0, prefix)
    each, offset = counts[request], starts - before[request] * atoms
    some = np.maximum(each, 1)
    return np.stack([request * atoms + np.where(each > 0, offset // some, 0), np.where(each > 0, offset % some, 0)], axis=1)


@kernel("paged_mqa_logits_metadata", platforms="sim-*")
def old_schedule_of_deepgemm(context_lens, schedule, slots, split_kv, atoms):
    counts = segments(context_lens, split_kv)
    prefix, slot = np.cumsum(counts), np.arange(slots + 1)
    share, rest = divmod(prefix[-1] * atoms, slots)
    schedule[:] = entries_at(slot * share + np.minimum(slot, rest), prefix, counts, atoms, len(counts))


@kernel("paged_mqa_logits_metadata", platforms="sim-*")
def new_schedule_of_deepgemm(context_lens, schedule, slots, split_kv, atoms):
    counts = segments(context_lens, split_kv)
    prefix, slot = np.cumsum(counts), np.arange(slots)
    share, rest = divmod(prefix[-1] * atoms, slots)
    schedule[:-1] = entries_at(slot * share + np.maximum(slot - (slots - rest), 0), prefix, counts, atoms, len(counts) - 1)
    schedule[-1] = len(counts) * atoms, 0


@kernel("paged_mqa_logits_metadata", platforms="sim-*")
def schedule_of_whole_requests(context_lens, schedule, slots, atoms):
    """Assigns whole requests, in order: a partition other than plumb's, and as right."""
    schedule[:, 0] = np.arange(slots + 1) * len(context_lens) // slots * atoms
    schedule[:, 1] = 0
