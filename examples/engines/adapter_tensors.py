# SPDX-License-Identifier: Apache-2.0
"""Torch tensors over the memory of a kernel's arguments, for the adapters in this folder."""

import torch
from plumb_kernels import Unsupported, kernel

TREE = {"deterministic": 1, "chains": 256, "function_ulp": 2}  # sums within a block, then a tree
OCP = ("sim-sm90", "sim-gfx950", "cuda-*")
FNUZ = ("sim-gfx942",)


def tensor(array):
    """A torch tensor over the memory of an argument. numpy holds bf16 as uint16."""
    if array is None or isinstance(array, torch.Tensor):
        return array
    made = torch.from_numpy(array)
    return made.view(torch.bfloat16) if made.dtype == torch.uint16 else made


def flat(array):
    return tensor(array).reshape(-1)


def need(condition, what):
    if not condition:
        raise Unsupported(what)


def contiguous(*arrays):
    return all(one is None or tensor(one).is_contiguous() for one in arrays)


def fp8(array, dialect):
    return tensor(array).view(torch.float8_e4m3fn if dialect == "e4m3fn" else torch.float8_e4m3fnuz)


def norm_kernels(norm, **declared):
    """rms_norm, mtp_shared_head_rms_norm and q_kv_rms_norm made from norm(x, weight, out, eps)."""

    @kernel("rms_norm", **declared)
    def rms_norm(x, weight, out, eps):
        norm(x, weight, out, eps)

    @kernel("mtp_shared_head_rms_norm", **declared)
    def shared_head(x, weight, out, eps):
        norm(x, weight, out, eps)

    @kernel("q_kv_rms_norm", **declared)
    def q_kv_norm(q, kv, q_weight, kv_weight, out_q, out_kv, eps):
        norm(q, q_weight, out_q, eps)
        norm(kv, kv_weight, out_kv, eps)

    return rms_norm, shared_head, q_kv_norm
