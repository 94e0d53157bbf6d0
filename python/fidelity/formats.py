# SPDX-License-Identifier: Apache-2.0
"""Number formats in numpy, written from their definitions without plumb's code.

bf16: upper half of an fp32. E4M3FN: bias 7, no infinity, NaN is 0x7f and 0xff (OCP OFP8). E4M3FNUZ: bias 8,
no negative zero, NaN is 0x80 only. E8M0: 2^(byte - 127), NaN is 255. E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6
(both OCP MX 1.0).
"""

import numpy as np


def from_bf16(bits):
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def to_bf16(values):
    """Round to nearest even; NaN stays NaN."""
    with np.errstate(all="ignore"):
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def round_bf16(values):
    return from_bf16(to_bf16(values))


def _e4m3(bias, fnuz):
    codes = np.arange(128)
    exponent, mantissa = codes >> 3, codes & 7
    magnitudes = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias - 3), (8 + mantissa) * 2.0 ** (exponent - bias - 3.0))
    table = np.concatenate([magnitudes, -magnitudes])
    table[[0x80] if fnuz else [0x7F, 0xFF]] = np.nan
    return table.astype(np.float32)


E4M3FN = _e4m3(7, False)
E4M3FNUZ = _e4m3(8, True)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def table_of(format):
    return {"e4m3fn": E4M3FN, "e4m3fnuz": E4M3FNUZ, "e2m1": E2M1}[format]


def decode(format, codes):
    return table_of(format)[np.asarray(codes).astype(np.int64)]


def nearest_codes(magnitudes, values, ties="even"):
    """Index of the magnitude nearest to |value|, saturating. Ties go to the "even" index, "toward_zero" or "away"."""
    absolute = np.abs(np.asarray(values, np.float64))
    middle = (magnitudes[:-1].astype(np.float64) + magnitudes[1:]) / 2
    below = np.searchsorted(middle, absolute, side="left")  # a tie counts as below the middle
    tie = (below < len(middle)) & (absolute == middle[np.minimum(below, len(middle) - 1)])
    up = {"even": below % 2 == 1, "toward_zero": False, "away": True}[ties]
    return below + (tie & up)


def encode_e4m3(format, values):
    """Round to nearest even, saturating; NaN becomes the format's NaN."""
    values = np.asarray(values, np.float32)
    fnuz = format == "e4m3fnuz"
    magnitudes = (E4M3FNUZ if fnuz else E4M3FN)[: 128 if fnuz else 127]
    codes = nearest_codes(magnitudes, np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf))
    negative = np.signbit(values) & ~((codes == 0) & fnuz)
    nan = 0x80 if fnuz else 0x7F
    return np.where(np.isnan(values), nan, codes + 128 * negative).astype(np.uint8)


def encode_e2m1(values, ties="even", keeps_zero=True):
    """Round to nearest, saturating; NaN becomes 0. `keeps_zero`: negative numbers that become 0 keep their sign."""
    codes = nearest_codes(E2M1[:8], np.nan_to_num(values), ties)
    return codes + 8 * (np.signbit(values) & (keeps_zero | (codes != 0)))


def ue8m0_ceil(values):
    """Byte of the smallest power of two that is not below an fp32 value > 0."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits >> 23) + ((bits & 0x7FFFFF) != 0)).astype(np.uint8)


def from_ue8m0(codes):
    """2^(byte - 127); byte 0 is 2^-127, 255 is NaN."""
    codes = np.asarray(codes).astype(np.int32)
    return np.where(codes == 255, np.nan, np.ldexp(1.0, codes - 127)).astype(np.float32)
