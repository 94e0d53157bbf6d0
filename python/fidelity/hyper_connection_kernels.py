# SPDX-License-Identifier: Apache-2.0
"""Hyper-connections in numpy, in fp32. Streams are [tokens, 4, hidden]. fn is indexed by (stream, hidden) along K."""

import numpy as np
from formats import from_bf16, round_bf16, to_bf16
from plumb_kernels import kernel

np.seterr(all="ignore")  # padded rows hold infinities and NaN


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def reciprocal_root(x, eps):
    return 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps))


def sinkhorn(logits, iterations, eps):
    matrix = np.exp(logits - logits.max(axis=2, keepdims=True))
    matrix = matrix / matrix.sum(axis=2, keepdims=True) + eps
    matrix = matrix / (matrix.sum(axis=1, keepdims=True) + eps)
    for _ in range(iterations - 1):
        matrix = matrix / (matrix.sum(axis=2, keepdims=True) + eps)
        matrix = matrix / (matrix.sum(axis=1, keepdims=True) + eps)
    return matrix


def weighted_sum(weights, streams):
    total = weights[:, 0, None] * streams[:, 0]
    for j in range(1, 4):
        total = total + weights[:, j, None] * streams[:, j]
    return total


def mix(squared, products, streams, call):
    """squared [tokens, K]: operand of the mean square. products [tokens, 24]: x fn^T. streams: for layer_input."""
    finish(products * reciprocal_root(squared, call["rms_eps"]), streams, call)


def finish(mixes, streams, call):
    tokens = len(streams)
    scale, base = call["scale"], call["base"]
    call["post"][:] = sigmoid(mixes[:, 4:8] * scale[1] + base[4:8]) * np.float32(call["post_mult"])
    logits = (mixes[:, 8:] * scale[2] + base[8:]).reshape(tokens, 4, 4)
    call["comb"][:] = sinkhorn(logits, call["sinkhorn_iterations"], np.float32(call["sinkhorn_eps"]))
    pre = sigmoid(mixes[:, :4] * scale[0] + base[:4]) + np.float32(call["pre_eps"])
    y = weighted_sum(pre, streams)
    if call["norm_weight"] is not None:
        y = round_bf16(y) * reciprocal_root(y, call["norm_eps"]) * from_bf16(call["norm_weight"])
    call["layer_input"][:] = to_bf16(y)


def mixed_streams(x, residual, post, comb):
    """post[n] x + sum over m of comb[m, n] residual[m]: fp32 [tokens, 4, hidden]."""
    streams = from_bf16(residual)
    new = [post[:, n, None] * from_bf16(x) + weighted_sum(comb[:, :, n], streams) for n in range(4)]
    return np.stack(new, axis=1)


@kernel("mhc_pre", contract={"mixes": "fp32"}, platforms="sim-*")
def mhc_pre(residual, fn, **call):
    streams = from_bf16(residual)
    x = streams.reshape(len(streams), fn.shape[1])
    mix(x, x @ fn.T, streams, call)


@kernel("mhc_pre", contract={"mixes": "fp32", "scaled": "operand"}, platforms="sim-*")
def mhc_pre_of_scaled_streams(residual, fn, **call):
    streams = from_bf16(residual)
    x = streams.reshape(len(streams), fn.shape[1])
    finish((x * reciprocal_root(x, call["rms_eps"])) @ fn.T, streams, call)


@kernel("mhc_pre", numerics={"product": "bf16"}, contract={"mixes": "bf16"}, platforms="sim-*")
def mhc_pre_of_bf16_matrices(residual, fn, **call):
    """FlagGems 5.0.2: fn and the products are rounded to bf16."""
    streams = from_bf16(residual)
    x = streams.reshape(len(streams), fn.shape[1])
    mix(x, round_bf16(x @ round_bf16(fn).T), streams, call)


@kernel("mhc_pre_broadcast", platforms="sim-*")
def mhc_pre_broadcast(residual, residual_out, fn, **call):
    residual_out[:] = residual[:, None]
    x = from_bf16(residual)
    mix(x, x @ fn.T, np.repeat(x[:, None], 4, axis=1), call)


@kernel("mhc_post", platforms="sim-*")
def mhc_post(x, residual, post, comb, out):
    out[:] = to_bf16(mixed_streams(x, residual, post, comb))


def post_pre(unrounded_rows, gemm_operand, x, residual, post_before, comb_before, fn, residual_out, call):
    new = mixed_streams(x, residual, post_before, comb_before)
    residual_out[:] = to_bf16(new)
    stored = round_bf16(new)
    flat = (len(new), fn.shape[1])
    summed = (new if len(new) <= unrounded_rows else stored).reshape(flat)
    if gemm_operand == "bf16_split":
        high = round_bf16(fn)
        low = round_bf16(fn - high)
        products = stored.reshape(flat) @ high.T + stored.reshape(flat) @ low.T
    else:
        products = summed @ fn.T
    mix(summed, products, stored, call)


@kernel("mhc_fused_post_pre", contract={"unrounded_rows": "0", "gemm_operand": "fp32"}, platforms="sim-*")
def mhc_fused_post_pre(x, residual, post_before, comb_before, fn, residual_out, **call):
    post_pre(0, "fp32", x, residual, post_before, comb_before, fn, residual_out, call)


@kernel("mhc_fused_post_pre", contract={"unrounded_rows": "16", "gemm_operand": "fp32"}, platforms="sim-*")
def mhc_fused_post_pre_16(x, residual, post_before, comb_before, fn, residual_out, **call):
    post_pre(16, "fp32", x, residual, post_before, comb_before, fn, residual_out, call)


@kernel("mhc_fused_post_pre", contract={"unrounded_rows": "32", "gemm_operand": "fp32"}, platforms="sim-*")
def mhc_fused_post_pre_32(x, residual, post_before, comb_before, fn, residual_out, **call):
    post_pre(32, "fp32", x, residual, post_before, comb_before, fn, residual_out, call)


@kernel("mhc_fused_post_pre", contract={"unrounded_rows": "127", "gemm_operand": "fp32"}, platforms="sim-*")
def mhc_fused_post_pre_127(x, residual, post_before, comb_before, fn, residual_out, **call):
    post_pre(127, "fp32", x, residual, post_before, comb_before, fn, residual_out, call)


@kernel("mhc_fused_post_pre", contract={"unrounded_rows": "1023", "gemm_operand": "fp32"}, platforms="sim-*")
def mhc_fused_post_pre_1023(x, residual, post_before, comb_before, fn, residual_out, **call):
    post_pre(1023, "fp32", x, residual, post_before, comb_before, fn, residual_out, call)


@kernel("mhc_fused_post_pre", contract={"unrounded_rows": "1023", "gemm_operand": "bf16_split"}, platforms="sim-*")
def mhc_fused_post_pre_split(x, residual, post_before, comb_before, fn, residual_out, **call):
    post_pre(1023, "bf16_split", x, residual, post_before, comb_before, fn, residual_out, call)


def head(hidden_states, fn, scale, base, out, rms_eps, hc_eps, rounding):
    streams = from_bf16(hidden_states)
    x = streams.reshape(len(streams), fn.shape[1])
    r = reciprocal_root(x, rms_eps)
    mixes = round_bf16(x * r) @ fn.T if rounding == "twice" else (x @ fn.T) * r
    out[:] = to_bf16(weighted_sum(sigmoid(mixes * scale[0] + base) + np.float32(hc_eps), streams))


@kernel("hc_head", contract={"rounding": "once"}, platforms="sim-*")
def hc_head(hidden_states, fn, scale, base, out, rms_eps, hc_eps):
    head(hidden_states, fn, scale, base, out, rms_eps, hc_eps, "once")


@kernel("hc_head", contract={"rounding": "twice"}, platforms="sim-*")
def hc_head_twice(hidden_states, fn, scale, base, out, rms_eps, hc_eps):
    head(hidden_states, fn, scale, base, out, rms_eps, hc_eps, "twice")
