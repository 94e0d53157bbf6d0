# SPDX-License-Identifier: Apache-2.0
"""FlashMLA as compiled in vLLM 0.22.1's wheel, for sm90 (torch 2.11).

    pip download --no-deps vllm==0.22.1 && unzip -q vllm-0.22.1-*.whl 'vllm/_flashmla_C*' -d vllm-0.22.1
    export FLASHMLA=$PWD/vllm-0.22.1/vllm/_flashmla_C.abi3.so
    PYTHONPATH=build/sim/python plumb run --plugin flashmla.py --platform cuda-sm90
"""

import os

import torch
from plumb_kernels import Unsupported, kernel

torch.ops.load_library(os.environ["FLASHMLA"])
FLASHMLA = torch.ops._flashmla_C

# bf16 products in the matrix units of sm90; p is rounded to bf16 for P V
NUMERICS = {"product": "bf16", "probability": "bf16", "deterministic": 1, "chains": 1, "function_ulp": 4, "sum_unit": "sm90_bf16"}
BYTES_OF_A_TOKEN = {"v32": 656, "v4": 584}


def need(condition, what):
    if not condition:
        raise Unsupported(what)


def paged(cache, page, layout, block_stride, blocks):
    """The cache's memory as [blocks, page, 1, bytes per token]."""
    size = BYTES_OF_A_TOKEN[layout]
    shape = (max(blocks, 1), page, 1, size)
    return cache.view(torch.uint8).as_strided(shape, (block_stride, size, size, 1)).view(torch.float8_e4m3fn)


def call(function, *arguments):
    try:
        return function(*arguments)
    except RuntimeError as error:  # shapes that FlashMLA refuses
        text = str(error).splitlines()[0]
        if "CUDA error" in text:
            raise
        raise Unsupported(text) from None


# FlashMLA makes a plan in each call.
@kernel("sparse_mla_decode", numerics=NUMERICS, contract={"plan": "none"}, platforms="cuda-sm90")
def sparse_decode(q, heads, sm_scale, attn_sink, out, lse, **more):
    need(heads in (64, 128), "64 or 128 heads only")
    need(more["main_indptr"] is None and more["extra_indptr"] is None, "dense indices only")
    need(more["main_width"] % 64 == 0 and more["extra_width"] % 64 == 0, "widths that are multiples of 64 only")
    need(out.is_contiguous(), "contiguous outputs only")
    need(more["main_cache_layout"] == "v4" or more["main_cache_scale_reading"] == "bf16", "scales of V3.2 are read as bf16 only")
    caches = {}
    for name in ("main", "extra"):
        if more[f"{name}_cache"] is not None and more[f"{name}_width"]:
            caches[name] = paged(
                more[f"{name}_cache"], more[f"{name}_cache_page"], more[f"{name}_cache_layout"],
                more[f"{name}_cache_block_stride_bytes"], more[f"{name}_cache_num_blocks"],
            )  # fmt: skip
    extra = (caches["extra"], more["extra_indices"], more["extra_lengths"]) if "extra" in caches else (None, None, None)
    result = call(
        FLASHMLA.sparse_decode_fwd, q, caches["main"], more["main_indices"], more["main_lengths"], attn_sink, None, None, *extra, 512, sm_scale, out
    )
    lse.copy_(result[1])


@kernel("sparse_mla_prefill", numerics=NUMERICS, platforms="cuda-sm90")
def sparse_prefill(q, kv, kv_indices, kv_lengths, kv_indptr, heads, rows, candidates_width, sm_scale, attn_sink, out, max_logits, lse):
    need(heads in (64, 128), "64 or 128 heads only")
    need(kv_indptr is None, "dense indices only")
    need(candidates_width % 128 == 0, "widths that are multiples of 128 only")
    need(kv.stride(0) % 8 == 0, "rows of kv that lie 16 bytes apart only")  # FlashMLA does not check this
    if not rows:
        return
    queries, chosen = q.reshape(rows, heads, q.shape[-1]), kv_indices.reshape(rows, 1, candidates_width)
    if kv_lengths is not None:
        # FlashMLA requires this: an index after the length that names a row with a NaN would make the result NaN.
        columns = torch.arange(candidates_width, device=chosen.device)
        chosen = torch.where(columns < kv_lengths.reshape(rows, 1, 1), chosen, -1)
    results = call(FLASHMLA.sparse_prefill_fwd, queries, kv.unsqueeze(1), chosen, sm_scale, 512, attn_sink, kv_lengths, None)
    for mine, theirs in zip((out, max_logits, lse), results):
        if mine is not None:
            mine.copy_(theirs)
