# SPDX-License-Identifier: Apache-2.0
#
# The MTP input norm in Triton and top-k in torch, on the pointers and the stream that plumb gives.
# Nothing here waits for the device or copies to the host, so that all of it can be captured; memory
# for intermediate results is torch's.
import torch
import triton
import triton.language as tl

from bridge import Unsupported

SIMULATED = False

TYPES = {torch.bfloat16: "<i2", torch.float32: "<f4", torch.int32: "<i4", torch.int64: "<i8"}
MOST_KEYS = 1 << 28  # selected from at a time: 2 GiB of them


class Memory:
    def __init__(self, address, shape, typestr, strides):
        self.__cuda_array_interface__ = {
            "version": 3, "data": (address, False), "shape": shape, "typestr": typestr,
            "strides": strides, "stream": None}


def tensor(address, shape, dtype, strides=None):
    """A view of device memory; strides count elements."""
    size = torch.empty((), dtype=dtype).element_size()
    in_bytes = None if strides is None else tuple(size * stride for stride in strides)
    view = torch.as_tensor(Memory(address, tuple(shape), TYPES[dtype], in_bytes), device="cuda")
    return view.view(torch.bfloat16) if dtype == torch.bfloat16 else view


def on(stream):
    return torch.cuda.stream(torch.cuda.ExternalStream(stream or 0))


@triton.jit
def norm_kernel(x, positions, weight, out, hidden, eps, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < hidden
    keep = inside
    if MASKED:
        keep = inside & (tl.load(positions + row) != 0)
    value = tl.load(x + row * hidden + column, mask=keep, other=0.0).to(tl.float32)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / hidden + eps)
    tl.store(out + row * hidden + column, (value * scale * w).to(tl.bfloat16), mask=inside)


def norm_rows(x, positions, weight, out, eps):
    rows, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    norm_kernel[(rows,)](x, x if positions is None else positions, weight, out, hidden, eps,
                         MASKED=positions is not None, BLOCK=block,
                         num_warps=4 if block <= 4096 else 8)


def mtp_input_rms_norm(p):
    if p.hidden > 65536:
        raise Unsupported("one block for each row: hidden ends at 65536")
    if p.tokens == 0:
        return
    with on(p.stream):
        bf16 = torch.bfloat16
        row, slots = (p.tokens, p.hidden), (p.tokens * p.hc_mult, p.hidden)
        norm_rows(tensor(p.embeds, row, bf16), tensor(p.positions, (p.tokens,), torch.int64),
                  tensor(p.enorm_weight, (p.hidden,), bf16), tensor(p.out_embeds, row, bf16), p.eps)
        norm_rows(tensor(p.previous_hidden, slots, bf16), None,
                  tensor(p.hnorm_weight, (p.hidden,), bf16), tensor(p.out_hidden, slots, bf16),
                  p.eps)


def select(logits, starts, ends, k, out):
    """Row-local indices of the k largest logits of columns [starts, ends)."""
    columns = logits.shape[1]
    column = torch.arange(columns, device="cuda")
    inside = (column >= starts[:, None]) & (column < ends[:, None])
    # -NaN < -inf < ... < -0 < +0 < ... < +NaN as integers; what is outside is below all of them.
    bits = logits.contiguous().view(torch.int32)
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64)
    keys = torch.where(inside, keys, -(1 << 40))
    best = keys.topk(min(k, columns), dim=1, sorted=False).indices - starts[:, None]
    length = (ends - starts).clamp(min=0)[:, None]
    place = torch.arange(k, device="cuda")[None, :]
    short = torch.where(place < length, place, -1)
    if columns < k:  # then no row is longer than k
        out.copy_(short)
    else:
        out.copy_(torch.where(length > k, best, short))


def top_k(p, starts, ends):
    logits = tensor(p.logits, (p.num_rows, p.columns), torch.float32,
                    (p.logits_row_stride, p.logits_column_stride))
    out = tensor(p.indices, (p.num_rows, p.k), torch.int32)
    step = max(1, MOST_KEYS // p.columns)
    for first in range(0, p.num_rows, step):
        rows = slice(first, first + step)
        select(logits[rows], starts[rows], ends[rows], p.k, out[rows])


def top_k_per_row_prefill(p):
    if p.num_rows == 0:
        return
    with on(p.stream):
        if p.columns == 0:
            tensor(p.indices, (p.num_rows, p.k), torch.int32).fill_(-1)
            return
        starts = tensor(p.row_starts, (p.num_rows,), torch.int32).to(torch.int64)
        ends = tensor(p.row_ends, (p.num_rows,), torch.int32).to(torch.int64)
        top_k(p, starts, ends)


def top_k_per_row_decode(p):
    if p.num_rows == 0:
        return
    with on(p.stream):
        if p.columns == 0:
            tensor(p.indices, (p.num_rows, p.k), torch.int32).fill_(-1)
            return
        requests = p.num_rows // p.next_n
        query = torch.arange(p.next_n, device="cuda")
        if p.seq_lens_dims == 2:
            lengths = tensor(p.seq_lens, (requests, p.next_n), torch.int32,
                             (p.seq_lens_row_stride, 1))
            ends = lengths.to(torch.int64)
        else:
            lengths = tensor(p.seq_lens, (requests,), torch.int32, (p.seq_lens_row_stride,))
            ends = lengths.to(torch.int64)[:, None] - p.next_n + query[None, :] + 1
        ends = ends.reshape(-1).clamp(min=0)
        top_k(p, torch.zeros_like(ends), ends)
