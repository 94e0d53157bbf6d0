# SPDX-License-Identifier: Apache-2.0
"""The RMSNorm family and RoPE in numpy, in fp32, under each declared contract.

Functions with `twice` or `factor` in their names round to bf16 before the next product: `twice` the normalised row,
`factor` also 1/rms.
"""

import numpy as np
from formats import from_bf16, round_bf16, to_bf16
from plumb_kernels import kernel

ROPE = 64
np.seterr(all="ignore")  # adversarial rows hold infinities and NaN


def normalised(x, weight, eps, rounding, squared=None):
    """`squared`: array whose mean square is used; default: x."""
    squared = x if squared is None else squared
    root = np.sqrt(np.mean(squared * squared, axis=-1, keepdims=True) + np.float32(eps))
    y = x * round_bf16(np.float32(1) / root) if rounding == "factor" else x / root
    if rounding in ("twice", "factor"):
        y = round_bf16(y)
    return y if weight is None else y * from_bf16(weight)


def rotated(x, cos_sin, positions, direction):
    """Applies RoPE to the last 64 dims of x [tokens, heads, 512], in neighbouring pairs."""
    turns = cos_sin[positions][:, None, :]
    cosine, sine = turns[..., : ROPE // 2], direction * turns[..., ROPE // 2 :]
    y = x.copy()
    even, odd = x[..., -ROPE::2], x[..., 1 - ROPE :: 2]
    y[..., -ROPE::2] = even * cosine - odd * sine
    y[..., 1 - ROPE :: 2] = even * sine + odd * cosine
    return y


@kernel("rms_norm", contract={"rounding": "once"}, platforms="sim-*")
def rms_norm(x, weight, out, eps):
    out[:] = to_bf16(normalised(from_bf16(x), weight, eps, "once"))


@kernel("rms_norm", contract={"rounding": "twice"}, platforms="sim-*")
def rms_norm_twice(x, weight, out, eps):
    out[:] = to_bf16(normalised(from_bf16(x), weight, eps, "twice"))


def add_and_norm(x, residual, weight, eps, rounding, sum):
    added = from_bf16(x) + from_bf16(residual)
    residual[:] = to_bf16(added)
    rows = added if sum == "fp32" else from_bf16(residual)
    squared = added if sum == "fp32_squares" else rows
    x[:] = to_bf16(normalised(rows, weight, eps, rounding, squared))


@kernel("fused_add_rms_norm", contract={"rounding": "once", "sum": "bf16"}, platforms="sim-*")
def fused_add_rms_norm(x, residual, weight, eps):
    add_and_norm(x, residual, weight, eps, "once", "bf16")


@kernel("fused_add_rms_norm", contract={"rounding": "twice", "sum": "bf16"}, platforms="sim-*")
def fused_add_rms_norm_twice(x, residual, weight, eps):
    add_and_norm(x, residual, weight, eps, "twice", "bf16")


@kernel("fused_add_rms_norm", contract={"rounding": "once", "sum": "fp32"}, platforms="sim-*")
def fused_add_rms_norm_fp32(x, residual, weight, eps):
    add_and_norm(x, residual, weight, eps, "once", "fp32")


@kernel("fused_add_rms_norm", contract={"rounding": "twice", "sum": "fp32"}, platforms="sim-*")
def fused_add_rms_norm_fp32_twice(x, residual, weight, eps):
    add_and_norm(x, residual, weight, eps, "twice", "fp32")


@kernel("fused_add_rms_norm", contract={"rounding": "once", "sum": "fp32_squares"}, platforms="sim-*")
def fused_add_rms_norm_fp32_squares(x, residual, weight, eps):
    """FlashInfer 0.7.2 and xFormers 0.0.35 in Triton."""
    add_and_norm(x, residual, weight, eps, "once", "fp32_squares")


def mtp_inputs(embeds, previous_hidden, positions, enorm_weight, hnorm_weight, out_embeds, out_hidden, eps, rounding):
    kept = np.where(positions[:, None] == 0, np.float32(0), from_bf16(embeds))
    out_embeds[:] = to_bf16(normalised(kept, enorm_weight, eps, rounding))
    out_hidden[:] = to_bf16(normalised(from_bf16(previous_hidden), hnorm_weight, eps, rounding))


@kernel("mtp_input_rms_norm", contract={"rounding": "once"}, platforms="sim-*")
def mtp_input_rms_norm(embeds, previous_hidden, positions, enorm_weight, hnorm_weight, out_embeds, out_hidden, eps):
    mtp_inputs(embeds, previous_hidden, positions, enorm_weight, hnorm_weight, out_embeds, out_hidden, eps, "once")


@kernel("mtp_input_rms_norm", contract={"rounding": "twice"}, platforms="sim-*")
def mtp_input_rms_norm_twice(embeds, previous_hidden, positions, enorm_weight, hnorm_weight, out_embeds, out_hidden, eps):
    mtp_inputs(embeds, previous_hidden, positions, enorm_weight, hnorm_weight, out_embeds, out_hidden, eps, "twice")


@kernel("mtp_shared_head_rms_norm", contract={"rounding": "once"}, platforms="sim-*")
def mtp_shared_head_rms_norm(x, weight, out, eps):
    out[:] = to_bf16(normalised(from_bf16(x), weight, eps, "once"))


@kernel("mtp_shared_head_rms_norm", contract={"rounding": "twice"}, platforms="sim-*")
def mtp_shared_head_rms_norm_twice(x, weight, out, eps):
    out[:] = to_bf16(normalised(from_bf16(x), weight, eps, "twice"))


@kernel("q_kv_rms_norm", contract={"rounding": "once"}, platforms="sim-*")
def q_kv_rms_norm(q, kv, q_weight, kv_weight, out_q, out_kv, eps):
    out_q[:] = to_bf16(normalised(from_bf16(q), q_weight, eps, "once"))
    out_kv[:] = to_bf16(normalised(from_bf16(kv), kv_weight, eps, "once"))


@kernel("q_kv_rms_norm", contract={"rounding": "twice"}, platforms="sim-*")
def q_kv_rms_norm_twice(q, kv, q_weight, kv_weight, out_q, out_kv, eps):
    out_q[:] = to_bf16(normalised(from_bf16(q), q_weight, eps, "twice"))
    out_kv[:] = to_bf16(normalised(from_bf16(kv), kv_weight, eps, "twice"))


@kernel("q_head_rms_norm_rope", contract={"rounding": "once", "placement": "copy"}, platforms="sim-*")
def q_head_rms_norm_rope(q, positions, cos_sin, out, eps):
    out[:] = to_bf16(rotated(normalised(from_bf16(q), None, eps, "once"), cos_sin, positions, 1))


@kernel("q_head_rms_norm_rope", contract={"rounding": "twice", "placement": "copy"}, platforms="sim-*")
def q_head_rms_norm_rope_twice(q, positions, cos_sin, out, eps):
    out[:] = to_bf16(rotated(normalised(from_bf16(q), None, eps, "twice"), cos_sin, positions, 1))


@kernel("q_head_rms_norm_rope", contract={"rounding": "factor", "placement": "copy"}, platforms="sim-*")
def q_head_rms_norm_rope_factor(q, positions, cos_sin, out, eps):
    """transformers 5.23: 1/rms is rounded to the format of q."""
    out[:] = to_bf16(rotated(normalised(from_bf16(q), None, eps, "factor"), cos_sin, positions, 1))


@kernel("q_head_rms_norm_rope", contract={"rounding": "once", "placement": "in_place"}, platforms="sim-*")
def q_head_rms_norm_rope_in_place(positions, cos_sin, out, eps):
    out[:] = to_bf16(rotated(normalised(from_bf16(out), None, eps, "once"), cos_sin, positions, 1))


@kernel("inverse_rope", contract={"placement": "in_place"}, platforms="sim-*")
def inverse_rope(x, positions, cos_sin):
    x[..., -ROPE:] = to_bf16(rotated(from_bf16(x), cos_sin, positions, -1))[..., -ROPE:]


@kernel("inverse_rope", contract={"placement": "copy"}, platforms="sim-*")
def inverse_rope_copy(x, positions, cos_sin, out):
    out[..., :-ROPE] = x[..., :-ROPE]
    out[..., -ROPE:] = to_bf16(rotated(from_bf16(x), cos_sin, positions, -1))[..., -ROPE:]
