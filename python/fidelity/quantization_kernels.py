# SPDX-License-Identifier: Apache-2.0
"""Quantisers of engines in numpy."""

import numpy as np
from formats import encode_e2m1, encode_e4m3, from_bf16, from_ue8m0, ue8m0_ceil

from plumb_kernels import kernel

F32 = np.float32
LARGEST = {"e4m3fn": F32(448), "e4m3fnuz": F32(224)}


def groups_of(x, size):
    """fp32 [tokens, groups, size]. The last group is padded with zeros."""
    values = from_bf16(x)
    missing = -values.shape[1] % size
    return np.pad(values, ((0, 0), (0, missing))).reshape(len(values), (values.shape[1] + missing) // size, size)


def quantise(values, scale, dialect, quotient):
    exact = values * (F32(1) / scale) if quotient == "reciprocal" else values / scale
    return encode_e4m3(dialect, np.clip(exact, -LARGEST[dialect], LARGEST[dialect]))


def packed(exponents, filler):
    """Packs exponents into int32 [tokens, words], the first group in the low byte."""
    missing = -exponents.shape[1] % 4
    codes = np.pad(exponents, ((0, 0), (0, missing)), constant_values=filler)
    return np.ascontiguousarray(codes).view(np.int32)


def per_token_group_quant(call, filler, zero_padding):
    tokens, size, dialect = call["tokens"], call["group_size"], call["dialect"]
    values = groups_of(call["x"], size)
    amax = np.maximum(np.abs(values).max(axis=2), F32(call["amax_floor"]))
    scale = np.maximum(amax / LARGEST[dialect], F32(call["scale_floor"]))
    form, out = call["scale_format"], call["scales"]
    codes = ue8m0_ceil(scale)
    if form != "fp32":
        scale = from_ue8m0(codes)
    call["q"][:] = quantise(values, scale[:, :, None], dialect, call["quotient"]).reshape(tokens, values.shape[1] * size)
    stored = packed(codes, filler) if form == "packed_ue8m0" else scale
    by_column = call["scales_token_stride"] == 1 and call["scales_group_stride"] > 1
    if not by_column:
        out[:] = stored.reshape(out.shape)
        return
    out[:, :tokens] = stored.T
    if form == "packed_ue8m0" and zero_padding:
        out[:-1, tokens:] = 0


@kernel("per_token_group_quant_fp8", contract={"filler": "0", "padding_rows": "zero"}, platforms="sim-*")
def packed_by_vllm(**call):
    """vLLM's packed register kernel."""
    per_token_group_quant(call, 0, True)


@kernel("per_token_group_quant_fp8", contract={"filler": "0", "padding_rows": "untouched"}, platforms="sim-*")
def packed_by_deep_gemm(**call):
    """DeepGEMM's layout kernels and SGLang."""
    per_token_group_quant(call, 0, False)


@kernel("per_token_group_quant_fp8", contract={"filler": "94", "padding_rows": "untouched"}, platforms="sim-*")
def packed_by_triton(**call):
    """vLLM's packed Triton kernel. Missing groups are masked zeros; their scale is the floor 1e-10, so the byte is 94 (2^-33)."""
    per_token_group_quant(call, 94, False)


@kernel("per_token_group_quant_fp8", contract={"filler": "127", "padding_rows": "untouched"}, platforms="sim-*")
def packed_by_test_helper(**call):
    """The helper of DeepGEMM's tests."""
    per_token_group_quant(call, 127, False)


@kernel("per_token_group_quant_fp8", contract={"filler": "any", "padding_rows": "untouched"}, platforms="sim-*")
def packed_by_tile_kernels(**call):
    per_token_group_quant(call, 200, False)


def quarter_down(amax, rounded):
    """Bytes of amax / 4 rounded down to a power of two. `rounded`: the mantissa is first rounded to one bit."""
    bits = amax.astype(F32).view(np.uint32) + np.uint32(0x200000 if rounded else 0)
    return np.clip((bits >> 23).astype(np.int32) - 2, 0, 254)


def mxfp4(x, q, scales, floor, ties, keeps_zero, rule="rceil"):
    values = groups_of(x, 32)
    amax = np.maximum(np.abs(values).max(axis=2), floor)
    scales[:] = ue8m0_ceil(amax / F32(6)) if rule == "rceil" else quarter_down(amax, rule == "even")
    exact = values.astype(np.float64) / np.ldexp(1.0, scales.astype(np.int32) - 127)[:, :, None]
    codes = encode_e2m1(exact, ties, keeps_zero).reshape(len(values), values.shape[1] * 32)
    q[:] = codes[:, 0::2] | codes[:, 1::2] << 4


@kernel("mxfp4_quant", contract={"floor": "0x1.8p-124", "ties": "even", "negative_zero": "kept", "scale_rule": "rceil"}, platforms="sim-*")
def mxfp4_of_hardware(x, q, scales):
    """The instruction cvt.rn.satfinite.e2m1x2, which vLLM and DeepSeek's fp4_act_quant use."""
    mxfp4(x, q, scales, F32(6 * 2.0**-126), "even", True)


@kernel("mxfp4_quant", contract={"floor": "1e-4", "ties": "toward_zero", "negative_zero": "dropped", "scale_rule": "rceil"}, platforms="sim-*")
def mxfp4_of_helper(x, q, scales):
    """DeepGEMM's test helper and SGLang's quant_fp4_e2m1."""
    mxfp4(x, q, scales, F32(1e-4), "toward_zero", False)


@kernel("mxfp4_quant", contract={"floor": "0x1p-125", "ties": "away", "negative_zero": "kept", "scale_rule": "even"}, platforms="sim-*")
def mxfp4_of_aiter(x, q, scales):
    """AITER's dynamic_mxfp4_quant. For amax from 1.75 * 2^127 on, AITER's byte is 254, here it is 253."""
    mxfp4(x, q, scales, F32(2.0**-125), "away", True, "even")


@kernel("mxfp4_quant", contract={"floor": "0x1p-125", "ties": "even", "negative_zero": "kept", "scale_rule": "floor"}, platforms="sim-*")
def mxfp4_of_torchao(x, q, scales):
    """torchao's to_mx with its default mode. A group with byte 0 is divided by 2^-126."""
    mxfp4(x, q, scales, F32(2.0**-125), "even", True, "floor")


@kernel("normalize_e4m3fn_to_e4m3fnuz", platforms="sim-*")
def normalize(weight_before, weight, weight_scale_before, weight_scale, input_scale_before, input_scale):
    weight[:] = np.where(weight_before == 0x80, 0, weight_before)
    weight_scale[:] = weight_scale_before * F32(2)
    if input_scale is not None:
        input_scale[:] = input_scale_before * F32(2)
