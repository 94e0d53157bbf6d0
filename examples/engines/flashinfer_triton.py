# SPDX-License-Identifier: Apache-2.0
"""Triton norms of FlashInfer in Triton's interpreter.

    pip download --no-deps flashinfer-python==0.7.2.post1 && mkdir -p released
    unzip -q flashinfer_python-*.whl '*.py' -d released/flashinfer_python-0.7.2.post1; export RELEASED=$PWD/released
    PYTHONPATH=build/sim/python TRITON_INTERPRET=1 plumb run --plugin flashinfer_triton.py --platform sim-sm90
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_files
import triton_interpreter

triton_interpreter.start()
FOLDER, VERSION = released_files.folder("flashinfer_python")
released_files.use(
    "flashinfer", FOLDER, ["flashinfer.triton.norm", "flashinfer.triton.kernels.norm", "flashinfer.triton.kernels.quant"]
)

from adapter_tensors import TREE, need, norm_kernels, tensor
from flashinfer.triton import norm as norms
from plumb_kernels import kernel

ONCE = {"rounding": "once"}


def norm(x, weight, out, eps):
    need(weight is not None, "with a weight only")
    if tensor(x).numel():
        norms.rms_norm(tensor(x), tensor(weight), tensor(out), eps)


rms_norm, shared_head, q_kv_norm = norm_kernels(norm, numerics=TREE, contract=ONCE, platforms="sim-*")


@kernel("fused_add_rms_norm", numerics=TREE, contract={"rounding": "once", "sum": "fp32_squares"}, platforms="sim-*")
def fused_add_norm(x, residual, weight, eps, tokens):
    """The sum of squares uses the fp32 sum; the normalised row is computed from the stored sum."""
    need(tensor(x).stride(0) == tensor(residual).stride(0), "one row stride for both")
    if tokens:
        norms.rms_norm_add_residual(tensor(x), tensor(residual), tensor(weight), eps)
