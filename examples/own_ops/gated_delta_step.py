# SPDX-License-Identifier: Apache-2.0
"""One decode step of Gated DeltaNet: the state decays, is corrected towards v, and is read by q.

Formula: "Gated Delta Networks" (arXiv 2412.06464), equation 10; fused_recurrent_gated_delta_rule of
flash-linear-attention has the same order of operations.

    plumb run --ops gated_delta_step.py --plugin gated_delta_step.py --op gated_delta_step
"""

import numpy as np
from plumb_kernels import Input, Output, bf16, float32, kernel, op
from plumb_kernels import tracked as t


@op(sizes={"requests": [3, 1], "heads": [4, 2], "k_dim": [32, 64], "v_dim": [24, 64]})
def gated_delta_step(
    q: Input("bf16", "requests", "heads", "k_dim"),
    k: Input("bf16", "requests", "heads", "k_dim", scale=0.1),
    v: Input("bf16", "requests", "heads", "v_dim"),
    g: Input("f32", "requests", "heads", between=(-4, 0), says="logarithm of the decay"),
    beta: Input("f32", "requests", "heads", between=(0, 1)),
    state: Input("f32", "requests", "heads", "k_dim", "v_dim"),
    scale: float = 0.17677669,
) -> {
    "out": Output("bf16", "requests", "heads", "v_dim"),
    "new_state": Output("f32", "requests", "heads", "k_dim", "v_dim"),
}:
    """S = exp(g) state; new_state = S + k (beta (v - k S)); out = scale * q new_state."""
    decayed = state * t.exp(g)[:, :, None, None]
    delta = (v - t.sum(decayed * k[..., None], axis=2)) * beta[:, :, None]
    new_state = decayed + k[..., None] * delta[:, :, None, :]
    return t.sum(new_state * q[..., None], axis=2) * scale, new_state


@kernel("gated_delta_step", numerics={"deterministic": 1, "chains": 8})
def step(q, k, v, g, beta, state, scale, out, new_state):
    q, k, v = float32(q), float32(k), float32(v)
    decayed = state * np.exp(g)[:, :, None, None]
    delta = (v - (decayed * k[..., None]).sum(2)) * beta[:, :, None]
    new_state[...] = decayed + k[..., None] * delta[:, :, None, :]
    out[...] = bf16((new_state * q[..., None]).sum(2) * np.float32(scale))
