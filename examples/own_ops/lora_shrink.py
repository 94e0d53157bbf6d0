# SPDX-License-Identifier: Apache-2.0
"""The first half of a LoRA layer, each token with the adapter of its request.

Formula: "Punica" (arXiv 2310.18547), section 4; vLLM's lora_shrink.

    plumb run --ops lora_shrink.py --plugin lora_shrink.py --op lora_shrink
"""

import numpy as np
from plumb_kernels import Input, Output, float32, kernel, op
from plumb_kernels import tracked as t


@op(sizes={"tokens": [6, 1, 17], "hidden": [256, 1024], "rank": [16, 8], "adapters": [3, 1]})
def lora_shrink(
    x: Input("bf16", "tokens", "hidden"),
    a: Input("bf16", "adapters", "rank", "hidden", scale=0.05),
    adapter: Input("i32", "tokens", below="adapters"),
    scaling: float = 0.5,
) -> Output("f32", "tokens", "rank"):
    """out[i] = scaling * a[adapter[i]] @ x[i]."""
    out = x[:, None, :] @ t.transpose(a[adapter])
    return out[:, 0, :] * scaling


@kernel("lora_shrink", numerics={"deterministic": 1, "chains": 8})
def shrink(x, a, adapter, scaling, out):
    x, a = float32(x), float32(a)
    for i, of_token in enumerate(adapter):
        out[i] = np.float32(scaling) * (a[of_token] @ x[i])
