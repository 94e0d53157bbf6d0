# SPDX-License-Identifier: Apache-2.0
"""Triton's interpreter (TRITON_INTERPRET=1) as a device for released Triton kernels, without a GPU.

The interpreter of Triton 3.6 and 3.7 truncates fp32 to bf16 and rounds fp8 ties away from zero, where hardware rounds
to nearest even. It adds and compares bf16 as integers, and its maximum of a number and NaN is NaN. With numpy 2.4 it
cannot convert a one-element tensor to an integer, and float arguments have no `to`. mend() corrects all of these from
outside. A verdict in the interpreter is about the kernel's source only: neither a compiler nor a card has run it.
"""

import contextlib
import os
import sys
import types
from pathlib import Path

import numpy as np
import torch
import triton
import triton.language as tl

ROOT = Path(__file__).resolve().parents[2]


def wanted():
    return bool(os.environ.get("TRITON_INTERPRET"))


def _formats():
    sys.path.insert(0, str(ROOT / "python/fidelity"))
    import formats

    return formats


def mend(formats=None):
    """Corrects the conversions of fp32 to bf16 and both fp8 dialects (nearest even), and of bf16 to fp32. Call it once."""
    from triton.runtime import interpreter

    formats = formats or _formats()
    inexact = interpreter._convert_float

    def convert(data, source, target, mode):
        if source == tl.float32 and target == tl.bfloat16:
            return formats.to_bf16(data.view(np.float32))
        if source == tl.bfloat16 and target == tl.float32:
            return formats.from_bf16(data.view(np.uint16))
        if source == tl.float32 and target == tl.float8e4nv:
            return formats.encode_e4m3("e4m3fn", data.view(np.float32))
        if source == tl.float32 and target == tl.float8e4b8:
            return formats.encode_e4m3("e4m3fnuz", data.view(np.float32))
        return inexact(data, source, target, mode)

    interpreter._convert_float = convert

    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    of_two, of_one = builder.binary_op, builder.unary_op

    def widened(operand):
        return handle(formats.from_bf16(operand.data), tl.float32)

    def narrowed(result):
        return handle(formats.to_bf16(result.data), tl.bfloat16) if result.data.dtype == np.float32 else result

    def binary_op(self, left, right, op):
        if left.dtype.scalar != tl.bfloat16:
            return of_two(self, left, right, op)
        left, right = widened(left), widened(right)
        result = op(left.data, right.data)
        return handle(result, tl.int1) if result.dtype == bool else narrowed(handle(result, tl.float32))

    def unary_op(self, operand, op):
        if operand.dtype.scalar != tl.bfloat16:
            return of_one(self, operand, op)
        return narrowed(of_one(self, widened(operand), op))

    builder.binary_op, builder.unary_op = binary_op, unary_op
    builder.create_maxnumf = lambda self, left, right: self.binary_op(left, right, np.fmax)
    builder.create_minnumf = lambda self, left, right: self.binary_op(left, right, np.fmin)

    convert_argument = interpreter._implicit_cvt

    def implicit_cvt(argument):
        if isinstance(argument, float):
            return tl.tensor(handle(np.array([argument], np.float32), tl.float32), tl.float32)
        return convert_argument(argument)

    interpreter._implicit_cvt = implicit_cvt

    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.astype(np.int64).item())

    interpreter._patch_lang_tensor = patch_tensor


def pretend_card():
    """Makes torch.cuda answer as for an H100, because wrappers ask it for the card and its size."""
    card = types.SimpleNamespace(
        multi_processor_count=132, major=9, minor=0, name="interpreter", warp_size=32, gcnArchName="gfx942",
        shared_memory_per_block_optin=232448, max_threads_per_multi_processor=2048,
    )  # fmt: skip
    torch.cuda.get_device_properties = lambda *arguments: card
    torch.cuda.get_device_capability = lambda *arguments: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.device = lambda *arguments: contextlib.nullcontext()
    torch.cuda.device_of = lambda *arguments: contextlib.nullcontext()
    torch.cuda.get_device_name = lambda *arguments: card.name


def keep_first_config():
    """Makes triton.autotune take the first configuration, because the interpreter cannot measure times."""
    every = triton.autotune
    triton.autotune = lambda configs, *arguments, **more: every(configs[:1], *arguments, **more)


@triton.jit
def rsqrt(x):
    """Replaces libdevice's rsqrt, which the interpreter lacks."""
    return tl.math.rsqrt(x)


def start():
    """Prepares the interpreter. Adapters call it before their imports. Does nothing unless TRITON_INTERPRET is set."""
    if wanted():
        torch.set_num_threads(1)
        mend()
        pretend_card()
        keep_first_config()
