# SPDX-License-Identifier: Apache-2.0
#
# The same ops in plain Python, on simulated platforms, whose device memory is memory of the process:
# shows that the way through plugin.cpp and bridge.py works, without a GPU or a package.
#   PLUMB_PYTHON_KERNELS=check_kernels plumb run --plugin python_kernels.so --case ...
import ctypes
import math
import struct

SIMULATED = True


def array(ctype, address, count):
    return (ctype * count).from_address(address)


def from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def to_bf16(value):
    if math.isnan(value):
        return 0x7FC0
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def norm_rows(x, keep, weight, out, rows, hidden, eps):
    x, out = array(ctypes.c_uint16, x, rows * hidden), array(ctypes.c_uint16, out, rows * hidden)
    weights = [from_bf16(bits) for bits in array(ctypes.c_uint16, weight, hidden)]
    for row in range(rows):
        begin = row * hidden
        values = [from_bf16(bits) if keep(row) else 0.0 for bits in x[begin:begin + hidden]]
        scale = 1 / math.sqrt(math.fsum(v * v for v in values) / hidden + eps) if all(
            map(math.isfinite, values)) else math.nan
        out[begin:begin + hidden] = [to_bf16(v * scale * w) for v, w in zip(values, weights)]


def mtp_input_rms_norm(p):
    positions = array(ctypes.c_int64, p.positions, p.tokens)
    norm_rows(p.embeds, lambda row: positions[row] != 0, p.enorm_weight, p.out_embeds, p.tokens,
              p.hidden, p.eps)
    norm_rows(p.previous_hidden, lambda row: True, p.hnorm_weight, p.out_hidden,
              p.tokens * p.hc_mult, p.hidden, p.eps)


def order_key(bits):
    return ~bits & 0xFFFFFFFF if bits & 0x80000000 else bits | 0x80000000


def select(p, row, start, end):
    out = array(ctypes.c_int32, p.indices + 4 * row * p.k, p.k)
    length = max(0, end - start)
    order = list(range(length))
    if length > p.k:
        first = p.logits + 4 * (row * p.logits_row_stride + start * p.logits_column_stride)
        bits = array(ctypes.c_uint32, first, (length - 1) * p.logits_column_stride + 1)
        order.sort(key=lambda i: -order_key(bits[i * p.logits_column_stride]))
    out[:] = (order + [-1] * p.k)[:p.k]


def top_k_per_row_prefill(p):
    starts = array(ctypes.c_int32, p.row_starts, p.num_rows)
    ends = array(ctypes.c_int32, p.row_ends, p.num_rows)
    for row in range(p.num_rows):
        select(p, row, starts[row], ends[row])


def top_k_per_row_decode(p):
    for row in range(p.num_rows):
        request, query = divmod(row, p.next_n)
        lengths = array(ctypes.c_int32, p.seq_lens + 4 * request * p.seq_lens_row_stride, p.next_n
                        if p.seq_lens_dims == 2 else 1)
        end = lengths[query] if p.seq_lens_dims == 2 else lengths[0] - p.next_n + query + 1
        select(p, row, 0, end)
