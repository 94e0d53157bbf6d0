# SPDX-License-Identifier: Apache-2.0
"""Kernels of the small engine: norms, cache writer, quantiser, router and sparse attention, one program per row.

A block of the cache has the codes of PAGE tokens, then their fp32 scales.
"""

import torch
import triton
import triton.language as tl

DIM = 128  # dims of a key
PAGE = 64
BLOCK_BYTES = PAGE * (DIM + 4)


@triton.jit
def _embed(table, tokens, lengths, x, HIDDEN: tl.constexpr, BLOCK: tl.constexpr, SKIP_PADDING: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    live = tl.load(lengths + row) > 0
    values = tl.load(table + tl.load(tokens + row).to(tl.int64) * HIDDEN + columns, (columns < HIDDEN) & live, 0.0)
    tl.store(x + row * HIDDEN + columns, values, (columns < HIDDEN) & (live | (not SKIP_PADDING)))


@triton.jit
def _rms_norm(x, residual, weight, out, eps, HIDDEN: tl.constexpr, BLOCK: tl.constexpr, ADD: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    inside, place = columns < HIDDEN, tl.program_id(0) * HIDDEN + tl.arange(0, BLOCK)
    values = tl.load(x + place, inside, 0.0).to(tl.float32)
    if ADD:
        values += tl.load(residual + place, inside, 0.0).to(tl.float32)
        tl.store(residual + place, values.to(tl.bfloat16), inside)
    scale = 1 / tl.sqrt(tl.sum(values * values, 0) / HIDDEN + eps)
    tl.store(out + place, (values * scale * tl.load(weight + columns, inside, 0.0).to(tl.float32)).to(tl.bfloat16), inside)


@triton.jit
def _quantise(values, floor):
    # Triton's "/" has an error of 2 ulp.
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(values), 0), floor), 448.0)
    return scale, tl.clamp(tl.div_rn(values, scale), -448.0, 448.0).to(tl.float8e4nv)


@triton.jit
def _insert(k, slots, cache, scales, DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_BYTES: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, DIM)
    slot = tl.load(slots + row)
    if slot >= 0:
        scale, codes = _quantise(tl.load(k + row * DIM + columns).to(tl.float32), 1e-4)
        block, offset = slot // PAGE, slot % PAGE
        tl.store(cache + block * BLOCK_BYTES + offset * DIM + columns, codes.to(tl.uint8, bitcast=True))
        tl.store(scales + block * (BLOCK_BYTES // 4) + PAGE * DIM // 4 + offset, scale)


@triton.jit
def _keys(cache, scales, block, offset, valid, DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_BYTES: tl.constexpr):
    place = (block * BLOCK_BYTES + offset * DIM)[:, None] + tl.arange(0, DIM)[None, :]
    codes = tl.load(cache + place, valid[:, None], 0).to(tl.float8e4nv, bitcast=True).to(tl.float32)
    return codes * tl.load(scales + block * (BLOCK_BYTES // 4) + PAGE * DIM // 4 + offset, valid, 0.0)[:, None]


@triton.jit
def _scores(q, weights, cache, scales, table, lengths, logits, row_stride, table_stride, DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_BYTES: tl.constexpr):
    row, page, offset = tl.program_id(0), tl.program_id(1), tl.arange(0, PAGE)
    position = page * PAGE + offset
    valid = position < tl.load(lengths + row)
    block = tl.load(table + row * table_stride + page).to(tl.int64)
    keys = _keys(cache, scales, block + 0 * offset, offset, valid, DIM, PAGE, BLOCK_BYTES)
    query = tl.load(q + row * DIM + tl.arange(0, DIM)).to(tl.float8e4nv, bitcast=True).to(tl.float32)
    score = tl.maximum(tl.sum(keys * query[None, :], 1), 0.0) * tl.load(weights + row)
    tl.store(logits + row * row_stride + position, tl.where(valid, score, float("-inf")))


@triton.jit
def _attend(q, cache, scales, table, indices, out, table_stride, K: tl.constexpr, DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_BYTES: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, DIM)
    position = tl.load(indices + row * K + tl.arange(0, K))
    valid = position >= 0
    position = tl.maximum(position, 0)
    block = tl.load(table + row * table_stride + position // PAGE).to(tl.int64)
    keys = _keys(cache, scales, block, position % PAGE, valid, DIM, PAGE, BLOCK_BYTES)
    query = tl.load(q + row * DIM + columns).to(tl.float32)
    score = tl.where(valid, tl.sum(keys * query[None, :], 1) * 0.08838835, -1e30)
    weight = tl.where(valid, tl.exp(score - tl.max(score, 0)), 0.0)
    total = tl.maximum(tl.sum(weight, 0), 1e-20)
    tl.store(out + row * DIM + columns, (tl.sum(keys * weight[:, None], 0) / total).to(tl.bfloat16))


@triton.jit
def _group_quant(x, q, scales, HIDDEN: tl.constexpr, GROUP: tl.constexpr):
    row, group = tl.program_id(0), tl.program_id(1)
    place = row * HIDDEN + group * GROUP + tl.arange(0, GROUP)
    scale, codes = _quantise(tl.load(x + place).to(tl.float32), 1e-10)
    tl.store(q + place, codes.to(tl.uint8, bitcast=True))
    tl.store(scales + row * (HIDDEN // GROUP) + group, scale)


@triton.jit
def _router(logits, bias, weights, ids, scale_pointer, scale_value, EXPERTS: tl.constexpr, TOPK: tl.constexpr, WIDTH: tl.constexpr, BY_VALUE: tl.constexpr):
    row, experts, chosen = tl.program_id(0), tl.arange(0, EXPERTS), tl.arange(0, WIDTH)
    x = tl.load(logits + row * EXPERTS + experts)
    score = tl.sqrt(tl.where(x > 20, x, tl.log(1 + tl.exp(x))))
    left = score + tl.load(bias + experts)
    weight, expert = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.int32)
    for i in tl.static_range(TOPK):
        best = tl.argmax(left, 0)
        weight = tl.where(chosen == i, tl.sum(tl.where(experts == best, score, 0.0), 0), weight)
        expert = tl.where(chosen == i, best, expert)
        left = tl.where(experts == best, float("-inf"), left)
    scale = scale_value if BY_VALUE else tl.load(scale_pointer)
    tl.store(weights + row * TOPK + chosen, weight / tl.sum(weight, 0) * scale, chosen < TOPK)
    tl.store(ids + row * TOPK + chosen, expert, chosen < TOPK)


@triton.jit
def _slots(lengths, table, slots, table_stride, live, padding, PAGE: tl.constexpr):
    row = tl.program_id(0)
    last = tl.maximum(tl.load(lengths + row) - 1, 0)
    block = tl.load(table + row * table_stride + last // PAGE).to(tl.int64)
    tl.store(slots + row, tl.where(row < live, block * PAGE + last % PAGE, padding))


CACHE = {"DIM": DIM, "PAGE": PAGE, "BLOCK_BYTES": BLOCK_BYTES}


def embed(table, tokens, lengths, x, skip_padding=False):
    _embed[(len(x),)](table, tokens, lengths, x, x.shape[1], triton.next_power_of_2(x.shape[1]), skip_padding)


def rms_norm(x, weight, out, eps):
    _rms_norm[(len(x),)](x, x, weight, out, eps, x.shape[1], triton.next_power_of_2(x.shape[1]), False)


def fused_add_rms_norm(x, residual, weight, eps):
    _rms_norm[(len(x),)](x, residual, weight, x, eps, x.shape[1], triton.next_power_of_2(x.shape[1]), True)


def insert(k, slots, cache):
    _insert[(len(k),)](k, slots, cache, cache.view(torch.float32), **CACHE)


def scores(q, weights, cache, table, lengths, logits, columns):
    _scores[(len(q), columns // PAGE)](q, weights, cache, cache.view(torch.float32), table, lengths, logits, logits.stride(0), table.stride(0), **CACHE)


def attend(q, cache, table, indices, out):
    _attend[(len(q),)](q, cache, cache.view(torch.float32), table, indices, out, table.stride(0), indices.shape[1], **CACHE)


def group_quant(x, q, scales):
    _group_quant[(len(x), x.shape[1] // 128)](x, q, scales, x.shape[1], 128)


def router(logits, bias, weights, ids, scale):
    by_value = isinstance(scale, float)
    width = triton.next_power_of_2(ids.shape[1])
    _router[(len(logits),)](logits, bias, weights, ids, bias if by_value else scale, scale if by_value else 0.0, logits.shape[1], ids.shape[1], width, by_value)


def hash_router(logits, tokens, table, weights, ids, scale):
    ids.copy_(table[tokens.long()])
    score = torch.nn.functional.softplus(logits.gather(1, ids.long())).sqrt()
    weights.copy_(score / score.sum(-1, keepdim=True) * scale)


def top_k(logits, lengths, indices, columns):
    """Indices of the k largest scores, the largest first. A row of at most k entries has its columns in order."""
    k = indices.shape[1]
    inside = torch.arange(columns, device=logits.device) < lengths[:, None]
    chosen = logits[:, :columns].masked_fill(~inside, float("-inf")).topk(k).indices
    indices.copy_(torch.where(lengths[:, None] <= k, _in_order(lengths, k), chosen))


def all_positions(lengths, indices):
    """As top_k, if no row has more than k entries."""
    indices.copy_(_in_order(lengths, indices.shape[1]))


def _in_order(lengths, k):
    columns = torch.arange(k, device=lengths.device)
    return torch.where(columns < lengths[:, None], columns, -1)


def slot_mapping(lengths, table, slots, live, padding=-1):
    _slots[(len(slots),)](lengths, table, slots, table.stride(0), live, padding, PAGE)
