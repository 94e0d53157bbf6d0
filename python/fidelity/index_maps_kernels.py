# SPDX-License-Identifier: Apache-2.0
"""Index maps of FlashInfer's sparse MLA in vLLM 0.33, and of SGLang, in numpy. Tensors [n, 1] are lists."""

import numpy as np
from metadata_kernels import metadata, query_tokens, slots


def spanned(slot, block, span):
    """Slots of a cache whose blocks lie span slots apart. Negative ones stay as they are."""
    slot = np.asarray(slot, np.int64)
    return np.where(slot < 0, slot, slot // block * span + slot % block)


def padded(values, columns):
    return np.concatenate([values, np.full(columns - len(values), -1, np.int64)])


@metadata("build_flashinfer_mixed_sparse_indices")
def mixed_sparse_indices(sparse_indices, sparse_topk_lens, **call):
    window, decodes, compressed = call["window"], call["decode_tokens"], sparse_indices.shape[1] - call["window"]
    swa_block, block = call["swa_block_size"], call["compressed_block_size"]
    valid = call.get("decode_is_valid_token")
    lens = call.get("decode_compressed_lens")

    def states(request, chosen):
        """Slots of compressed positions. They count the block size from block to block."""
        return np.where(chosen < 0, -1, slots(call["compressed_block_table"], request, np.maximum(chosen, 0), block))

    def write(token, swa, chosen, length):
        sparse_indices[token, :window] = spanned(padded(swa, window), swa_block, call["swa_block_span"])
        sparse_indices[token, window:] = spanned(padded(chosen, compressed), block, call["compressed_block_span"])
        sparse_topk_lens[token] = window + length

    for token in range(decodes):
        swa = call["decode_swa_indices"][token].astype(np.int64)
        chosen = call["decode_compressed_indices"][token].astype(np.int64) if call["decode_topk"] else np.zeros(0, np.int64)
        length = len(chosen) if lens is None else int(lens[token, 0])
        if valid is not None:
            length = int((chosen >= 0).sum()) if valid[token, 0] else 0
            chosen = states(call["token_to_req"][token, 0], chosen)
        write(token, swa, chosen, length)

    for token, request, position in query_tokens(call["query_start_loc"], call["seq_lens"]):
        if token < decodes:
            continue
        length = min((position + 1) // call["ratio"], call["top_k"])
        swa = slots(call["swa_block_table"], request, np.arange(max(position - window + 1, 0), position + 1), swa_block)
        chosen = np.zeros(0, np.int64)
        if length > 0:
            chosen = states(request, call["prefill_topk_indices"][token - decodes, :length].astype(np.int64))
        write(token, swa, chosen, length)


@metadata("transform_index_page_table")
def transform_index(page_indices, topk_indices, page_table, page_size, seq_lens=None, cu_seqlens_q=None, raw_indices=None, **_):
    bits = page_size.bit_length() - 1
    rows = np.arange(len(topk_indices))
    if cu_seqlens_q is not None:
        owners = np.repeat(np.arange(len(cu_seqlens_q) - 1), np.diff(cu_seqlens_q[:, 0]))
        rows = np.concatenate([owners, np.full(len(rows) - len(owners), -1)])
    columns = np.arange(topk_indices.shape[1])
    for token, row in enumerate(rows):
        raw = topk_indices[token].astype(np.int64)
        if seq_lens is not None and seq_lens[token, 0] <= len(columns):
            raw = np.where(columns < seq_lens[token, 0], columns, -1)
        if row < 0:
            raw = np.full(len(columns), -1)
        pages = page_table[max(row, 0)].astype(np.int64)[np.maximum(raw, 0) >> bits]
        page_indices[token] = np.where(raw < 0, -1, pages << bits | raw & (page_size - 1))
        if raw_indices is not None:
            raw_indices[token] = raw
