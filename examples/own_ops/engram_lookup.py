# SPDX-License-Identifier: Apache-2.0
"""Engram's lookup: rows of an fp8 table by hash bucket, with UE8M0 scales of 32 codes.

Formula: vLLM's and TileKernels' engram_lookup. A bucket outside of this rank's part of the table gives zeros.

    plumb run --ops engram_lookup.py --plugin engram_lookup.py --op engram_lookup
"""

import numpy as np
from plumb_kernels import Input, Output, bf16, kernel, op
from plumb_kernels import tracked as t


@op(sizes={"tokens": [5, 1, 40], "heads": [4, 1], "rows": 64, "dim": [64, 96]})
def engram_lookup(
    buckets: Input("i64", "tokens", "heads", least=-1, below="rows"),
    table: Input("u8", "rows", "dim", says="e4m3fn codes"),
    scales: Input("u8", "rows", "dim/32", least=118, below=137, says="UE8M0, one of 32 codes"),
) -> Output("bf16", "tokens", "heads*dim"):
    """Rows of an fp8 table by bucket; bucket -1 gives zeros."""
    rows = t.array(t.e4m3fn(table) * np.repeat(t.e8m0(scales), 32, axis=1))
    found = t.where((buckets >= 0)[..., None], rows[np.maximum(buckets, 0)], 0.0)
    return t.reshape(found, (buckets.shape[0], -1))


def decode_e4m3fn(codes):
    exponent, mantissa = codes >> 3 & 15, (codes & 7).astype(np.float32)
    size = np.where(exponent == 0, mantissa / 512, np.ldexp(1 + mantissa / 8, exponent.astype(np.int32) - 7))
    return np.where(codes & 127 == 127, np.nan, np.where(codes & 128, -size, size)).astype(np.float32)


@kernel("engram_lookup", numerics={"deterministic": 1})
def lookup(buckets, table, scales, out):
    factors = (scales.astype(np.uint32) << 23).view(np.float32)
    rows = decode_e4m3fn(table) * np.repeat(factors, 32, axis=1)
    found = np.where((buckets >= 0)[..., None], rows[np.maximum(buckets, 0)], np.float32(0))
    out[...] = bf16(found.reshape(len(buckets), -1))
