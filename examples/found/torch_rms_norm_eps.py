# SPDX-License-Identifier: Apache-2.0
"""torch 2.6.0: rms_norm of bf16 rounds eps to bf16, so that small rows are too long or too short.

    python3 -m venv torch-2.6 && torch-2.6/bin/pip install torch==2.6.0 numpy
    torch-2.6/bin/python torch_rms_norm_eps.py    # torch 2.7.1 and later are right (2.7.0 was not tried)
"""

import sys

import torch

torch.manual_seed(0)
x, weight = (3e-4 * torch.randn(64, 512)).bfloat16(), torch.ones(512).bfloat16()
made = torch.nn.functional.rms_norm(x, (512,), weight, 1e-6)
rows = x.double()


def right(eps):
    return (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + eps)).bfloat16()


rounded = torch.tensor(1e-6).bfloat16().double()
with_eps, with_rounded = ((made == right(one)).double().mean().item() for one in (1e-6, rounded))
sys.exit(f"{with_eps:.1%} as with eps, {with_rounded:.1%} as with its bf16 value" if with_rounded > with_eps else 0)
