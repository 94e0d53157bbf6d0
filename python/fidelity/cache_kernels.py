# SPDX-License-Identifier: Apache-2.0
"""Cache writers in numpy. Each makes the choices of the engine that it is named after.

Layouts: FlashMLA's README (V3.2: 656 bytes per token; V4: 584 bytes, first the data of all tokens of a block, then
their scales), DeepGEMM's paged indexer cache (the codes of all keys of a block, then their fp32 scales).
"""

import numpy as np
from formats import encode_e4m3, from_bf16, from_ue8m0, ue8m0_ceil
from plumb_kernels import kernel

FLOORS = {"0x1p-126": 2.0**-126, "1e-4": 1e-4, "1e-8": 1e-8}


def largest(dialect):
    return np.float32(224 if dialect == "e4m3fnuz" else 448)


def places(slot_mapping, page, skip):
    """Tokens that are written, their blocks, and their offsets in the blocks."""
    keep = {"minus_one": slot_mapping != -1, "negative": slot_mapping >= 0, "never": slot_mapping == slot_mapping}[skip]
    tokens = np.flatnonzero(keep)
    return tokens, slot_mapping[tokens] // page, slot_mapping[tokens] % page


def quantise(x, group, dialect, amax_floor=0.0, scale_floor=0.0, power_of_two=True):
    """Quantises groups of columns. Returns codes [tokens, columns] and fp32 scales [tokens, groups]."""
    groups = x.reshape(len(x), x.shape[1] // group, group)
    amax = np.maximum(np.abs(groups).max(axis=2), np.float32(amax_floor))
    scales = np.maximum(amax / largest(dialect), np.float32(scale_floor))
    if power_of_two:
        scales = from_ue8m0(ue8m0_ceil(scales))
    scaled = np.clip(groups / scales[:, :, None], -largest(dialect), largest(dialect))
    return encode_e4m3(dialect, scaled).reshape(x.shape), scales


def store(cache, blocks, starts, rows):
    """Writes row i to cache[blocks[i], starts[i]:]."""
    for block, start, row in zip(blocks, starts, np.ascontiguousarray(rows).view(np.uint8)):
        cache[block, start : start + len(row)] = row


def v4_writer(name, skip, pad, floor):
    @kernel("quantize_and_insert_k_cache", contract={"skip": skip, "pad": pad, "floor": floor}, numerics={"deterministic": 1}, platforms="sim-*", name=name)
    def write(kv, slot_mapping, cache, cache_page, cache_dialect):
        tokens, blocks, offsets = places(slot_mapping, cache_page, skip)
        rows = kv[tokens]
        codes, scales = quantise(from_bf16(rows[:, :448]), 64, cache_dialect, amax_floor=FLOORS[floor])
        store(cache, blocks, offsets * 576, codes)
        store(cache, blocks, offsets * 576 + 448, rows[:, 448:])
        bytes_of_scales = (scales.view(np.uint32) >> 23).astype(np.uint8)
        if pad == "zero":
            bytes_of_scales = np.pad(bytes_of_scales, ((0, 0), (0, 1)))
        store(cache, blocks, cache_page * 576 + offsets * 8, bytes_of_scales)

    return write


def v32_writer(name, skip, scale_form, floor):
    contract = {"skip": skip, "scale_form": scale_form, "floor": floor}

    @kernel("concat_and_cache_ds_mla", contract=contract, numerics={"function_ulp": 0.5, "deterministic": 1}, platforms="sim-*", name=name)
    def write(kv_c, k_pe, slot_mapping, cache, cache_page, cache_dialect):
        tokens, blocks, offsets = places(slot_mapping, cache_page, skip)
        codes, scales = quantise(from_bf16(kv_c[tokens]), 128, cache_dialect, scale_floor=FLOORS[floor], power_of_two=scale_form == "pow2")
        store(cache, blocks, offsets * 656, codes)
        store(cache, blocks, offsets * 656 + 512, scales)
        store(cache, blocks, offsets * 656 + 528, k_pe[tokens])

    return write


def indexer_writer(name, skip, scale_form, floor):
    contract = {"skip": skip, "scale_form": scale_form, "floor": floor}

    @kernel("indexer_k_quant_and_cache", contract=contract, numerics={"function_ulp": 0.5, "deterministic": 1}, platforms="sim-*", name=name)
    def write(k, slot_mapping, cache, cache_page, cache_dialect, head_dim, quant_block_size, shuffled):
        tokens, blocks, offsets = places(slot_mapping, cache_page, skip)
        codes, scales = quantise(from_bf16(k[tokens]), quant_block_size, cache_dialect, FLOORS[floor], power_of_two=scale_form == "pow2")
        store(cache, blocks, cache_page * head_dim + offsets * scales.shape[1] * 4, scales)
        if shuffled == "planar" or cache_page == 1:
            store(cache, blocks, offsets * head_dim, codes)
            return
        for tile in range(head_dim // 16):  # layout [page / 16][head_dim / 16][16 tokens][16 bytes]
            starts = offsets // 16 * 16 * head_dim + tile * 256 + offsets % 16 * 16
            store(cache, blocks, starts, codes[:, 16 * tile : 16 * tile + 16])

    return write


quantize_and_insert_k_cache_vllm = v4_writer("vllm", "minus_one", "zero", "1e-4")
quantize_and_insert_k_cache_sglang_fused = v4_writer("sglang_fused", "negative", "untouched", "1e-4")
quantize_and_insert_k_cache_sglang = v4_writer("sglang", "never", "untouched", "1e-4")
quantize_and_insert_k_cache_sglang_triton = v4_writer("sglang_triton", "never", "untouched", "1e-8")
concat_and_cache_ds_mla_vllm_0_22 = v32_writer("vllm_0_22", "negative", "fp32", "0x1p-126")
concat_and_cache_ds_mla_vllm_0_33 = v32_writer("vllm_0_33", "negative", "pow2", "1e-4")
indexer_k_quant_and_cache_vllm = indexer_writer("vllm", "negative", "pow2", "1e-4")
indexer_k_quant_and_cache_sglang = indexer_writer("sglang", "never", "fp32", "1e-4")
indexer_k_quant_and_cache_sglang_triton = indexer_writer("sglang_triton", "never", "fp32", "1e-8")
