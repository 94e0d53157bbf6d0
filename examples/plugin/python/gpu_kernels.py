# SPDX-License-Identifier: Apache-2.0
"""The MTP input norm in Triton and top-k in torch, for a GPU.

    plumb run --plugin gpu_kernels.py --platform cuda-sm90

Tensors are passed as torch views, on the current stream. No function waits for the device or copies to the host, so
that a graph can capture all of it. torch allocates intermediate results.
"""

import torch
import triton
import triton.language as tl
from plumb_kernels import kernel

MOST_KEYS = 1 << 28  # largest number of keys per selection: 2 GiB


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
    hidden = x.shape[-1]
    block = triton.next_power_of_2(hidden)
    norm_kernel[(x.numel() // hidden,)](
        x, x if positions is None else positions, weight, out, hidden, eps,
        MASKED=positions is not None, BLOCK=block, num_warps=4 if block <= 4096 else 8,
    )


# One block per row. At least 128 threads add up squares, then a tree adds the threads' sums.
@kernel(
    "mtp_input_rms_norm",
    platforms="cuda-*",
    numerics={"chains": 128, "deterministic": 1},
    contract={"rounding": "once"},
    supports=lambda hidden: hidden <= 65536 or "one block for each row: hidden is at most 65536",
)
def mtp_input_rms_norm(embeds, previous_hidden, positions, enorm_weight, hnorm_weight, out_embeds, out_hidden, eps):
    if embeds.numel() == 0:
        return
    norm_rows(embeds, positions, enorm_weight, out_embeds, eps)
    norm_rows(previous_hidden, None, hnorm_weight, out_hidden, eps)


def select(logits, starts, ends, k, out):
    """Row-local indices of the k largest logits of columns [starts, ends)."""
    columns = logits.shape[1]
    column = torch.arange(columns, device=logits.device)
    inside = (column >= starts[:, None]) & (column < ends[:, None])
    # Integer keys in the order -NaN < -inf < ... < -0 < +0 < ... < +NaN. Columns outside are below all of them.
    # A bf16 number and its fp32 form have the same place in the order.
    bits = logits.contiguous().to(torch.float32).view(torch.int32)
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64)
    keys = torch.where(inside, keys, -(1 << 40))
    best = keys.topk(min(k, columns), dim=1, sorted=False).indices - starts[:, None]
    length = (ends - starts).clamp(min=0)[:, None]
    place = torch.arange(k, device=logits.device)[None, :]
    short = torch.where(place < length, place, -1)
    if columns < k:  # then no row is longer than k
        out.copy_(short)
    else:
        out.copy_(torch.where(length > k, best, short))


def top_k(logits, starts, ends, k, out):
    if logits.numel() == 0:
        out.fill_(-1)
        return
    step = max(1, MOST_KEYS // logits.shape[1])
    for first in range(0, logits.shape[0], step):
        rows = slice(first, first + step)
        select(logits[rows], starts[rows], ends[rows], k, out[rows])


@kernel("top_k_per_row_prefill", platforms="cuda-*", numerics={"deterministic": 1}, contract={"nan_order": "sign_ordered"})
def top_k_per_row_prefill(logits, row_starts, row_ends, indices, k, num_rows, logits_column_stride):
    starts, ends = (rows[:num_rows].to(torch.int64) for rows in (row_starts, row_ends))
    top_k(logits[:, ::logits_column_stride], starts, ends, k, indices)


@kernel("top_k_per_row_decode", platforms="cuda-*", numerics={"deterministic": 1}, contract={"nan_order": "sign_ordered"})
def top_k_per_row_decode(logits, seq_lens, indices, next_n, k, logits_column_stride, seq_lens_dims):
    ends = seq_lens.to(torch.int64)
    if seq_lens_dims == 1:
        ends = ends[:, :1] - next_n + torch.arange(next_n, device=seq_lens.device)[None, :] + 1
    ends = ends.reshape(-1).clamp(min=0)
    top_k(logits[:, ::logits_column_stride], torch.zeros_like(ends), ends, k, indices)
