# SPDX-License-Identifier: Apache-2.0
"""Attention metadata in numpy as vLLM 0.22.1 and 0.33 compute it, one function per contract.

A slot is block_table[request, position // block] * block + position % block. Tensors [n, 1] are lists.
"""

import numpy as np
from plumb_kernels import kernel

EXACT = {"deterministic": 1}


def metadata(op, **contract):
    return kernel(op, platforms="sim-*", numerics=EXACT, contract=contract)


def slots(table, request, positions, block):
    positions = np.asarray(positions, np.int64)
    return table[request, positions // block].astype(np.int64) * block + positions % block


def write_indptr(indptr, lengths):
    indptr[0] = 0
    indptr[1:, 0] = np.cumsum(lengths)


def query_tokens(query_start_loc, seq_lens):
    """Yields (token, request, position) for each token. Tokens are numbered from the first request's first token."""
    starts = query_start_loc[:, 0].astype(np.int64) - int(query_start_loc[0, 0])
    for request, (start, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        for token in range(start, end):
            yield token, request, int(seq_lens[request, 0]) - (end - start) + token - start


# ---- ragged lists


def ragged_rows(indices, lengths, num_rows, dropped):
    for row, length in zip(indices, lengths[:, 0], strict=True):
        values = row[: max(0, min(int(length), len(row)))].astype(np.int64)
        valid = (values >= 0) & ((num_rows < 0) | (values < num_rows))
        if dropped:
            yield values[valid]
        else:
            yield values if num_rows < 0 else np.where(valid, values, -1)


def build_ragged(indices, lengths, num_rows, indptr, flat, dropped):
    rows = list(ragged_rows(indices, lengths, num_rows, dropped))
    write_indptr(indptr, [len(row) for row in rows])
    values = np.concatenate([*rows, np.zeros(0, np.int64)])
    flat[: len(values), 0] = values


@metadata("build_ragged_indices_from_dense", holes="dropped")
def drop_holes(indices, lengths, num_rows, indptr, flat):
    build_ragged(indices, lengths, num_rows, indptr, flat, True)


@metadata("build_ragged_indices_from_dense", holes="kept")
def keep_holes(indices, lengths, num_rows, indptr, flat):
    build_ragged(indices, lengths, num_rows, indptr, flat, False)


@metadata("copy_ragged_to_graph_buffers", copied="capacity")
def copy_capacity(indices, indptr, indices_buffer, indptr_buffer):
    indptr_buffer[: len(indptr)] = indptr
    indices_buffer[: len(indices)] = indices


@metadata("copy_ragged_to_graph_buffers", copied="length")
def copy_length(indices, indptr, indices_buffer, indptr_buffer):
    entries = int(indptr[-1, 0])
    indptr_buffer[: len(indptr)] = indptr
    indices_buffer[:entries] = indices[:entries]


# ---- top-k positions to slots


@metadata("compute_global_topk_ragged_indices_and_indptr")
def global_topk_ragged(topk_indices, token_to_req, block_table, is_valid_token, block_size, flat, indptr, lens):
    counts = np.where(is_valid_token[:, 0] != 0, (topk_indices >= 0).sum(axis=1), 0)
    write_indptr(indptr, counts)
    lens[:, 0] = counts
    for token, count in enumerate(counts):
        first = topk_indices[token, :count]
        valid = first >= 0
        found = slots(block_table, token_to_req[token, 0], np.where(valid, first, 0), block_size) if count else first
        flat[indptr[token, 0] : indptr[token + 1, 0], 0] = np.where(valid, found, -1)


@metadata("compute_global_topk_indices_and_lens", compaction="none", bounds="unchecked")
def global_topk_in_columns(topk_indices, token_to_req, block_table, is_valid_token, block_size, global_indices, lens):
    for token, positions in enumerate(topk_indices):
        valid = positions >= 0
        found = slots(block_table, token_to_req[token, 0], np.where(valid, positions, 0), block_size)
        global_indices[token] = np.where(valid, found, -1)
        lens[token] = valid.sum() if is_valid_token[token, 0] else 0


@metadata("compute_global_topk_indices_and_lens", compaction="left", bounds="checked")
def global_topk_to_the_left(topk_indices, token_to_req, block_table, is_valid_token, block_size, requests, global_indices, lens):
    for token, positions in enumerate(topk_indices):
        request = int(token_to_req[token, 0])
        known = is_valid_token[token, 0] != 0 and 0 <= request < requests
        inside = (positions >= 0) & (positions // block_size < block_table.shape[1])
        found = slots(block_table, request, positions[inside], block_size) if known else positions[:0]
        global_indices[token] = -1
        global_indices[token, : len(found)] = found
        lens[token] = len(found)


# ---- rows of the prefill workspace


def combine(chunk, queries, gather_lens, topk_indices, flat, indptr, lens, shifted, filled):
    rows = {}
    for token, request, position in queries:
        region = chunk["rows_per_request"] * request
        count = min((position + 1) // chunk["ratio"], chunk["top_k"])
        window = min(position + 1, chunk["window"])
        states = topk_indices[token, : min(count, topk_indices.shape[1])].astype(np.int64)
        states = np.where((states < 0) & (not shifted), -1, states + region)
        first = position - window + 1 - (int(chunk["seq_lens"][request, 0]) - int(gather_lens[request, 0]))
        rows[token] = (states, count, region + chunk["compressed_rows"] + first + np.arange(window))
    lengths = [rows[token][1] + len(rows[token][2]) if token in rows else 0 for token in range(len(lens))]
    lens[:, 0] = lengths
    write_indptr(indptr, lengths)
    if filled:
        flat[:] = -1
    for token, (states, count, window) in rows.items():
        begin = int(indptr[token, 0])
        flat[begin : begin + len(states), 0] = states
        flat[begin + count : begin + count + len(window), 0] = window


def combine_of(shifted, filled):
    def made(query_start_loc, seq_lens, gather_lens, topk_indices, flat, indptr, lens, **sizes):
        queries = query_tokens(query_start_loc, seq_lens)
        combine({**sizes, "seq_lens": seq_lens}, queries, gather_lens, topk_indices, flat, indptr, lens, shifted, filled)

    return made


COMBINE = "combine_topk_swa_indices_ragged"
combine_ragged = kernel(
    COMBINE, name="combine_ragged", platforms="sim-*", numerics=EXACT, contract={"minus_one": "shifted", "tail": "untouched", "missing": "untouched"}
)(combine_of(shifted=True, filled=False))
combine_filled = kernel(
    COMBINE, name="combine_filled", platforms="sim-*", numerics=EXACT, contract={"minus_one": "shifted", "tail": "minus_one", "missing": "minus_one"}
)(combine_of(shifted=True, filled=True))
combine_keeping_holes = kernel(
    COMBINE, name="combine_keeping_holes", platforms="sim-*", numerics=EXACT, contract={"minus_one": "keep", "tail": "untouched", "missing": "untouched"}
)(combine_of(shifted=False, filled=False))


def combine_dense(chunk, guarded, filled, repeated):
    """guarded: entries outside [0, compressed_rows) become -1. repeated: column 0 stands for columns that topk_indices lacks."""
    rows, topk = chunk["combined_indices"], chunk["topk_indices"].astype(np.int64)
    if filled:
        rows[:] = -1
    for token, request, position in query_tokens(chunk["query_start_loc"], chunk["seq_lens"]):
        seq_len, region = int(chunk["seq_lens"][request, 0]), chunk["rows_per_request"] * request
        columns = np.arange(min((position + 1) // chunk["ratio"], chunk["top_k"]))
        inside = columns < topk.shape[1]
        states = topk[token, np.where(inside, columns, 0)]
        outside = (states < 0) | (states >= chunk["compressed_rows"])
        states = np.where((outside & guarded) | ~(inside | repeated), -1, states + region)
        left, right = (int(chunk[side][token, 0]) if chunk.get(side) is not None else 0 for side in ("left_visible", "right_visible"))
        replay = int(chunk["replay_start"][request, 0]) if chunk.get("replay_start") is not None else 0
        start = max(position - (chunk["window"] - 1) - max(left - (chunk["window"] - 1), 0), replay, 0)
        window = np.arange(start, min(position + right + 1, seq_len))
        window += region + chunk["compressed_rows"] - (seq_len - int(chunk["gather_lens"][request, 0]))
        row = np.concatenate([states, window])
        rows[token, : len(row)] = row
        chunk["combined_lens"][token] = len(row)


def combine_dense_of(name, guarded, filled=True, repeated=True):
    contract = {
        "minus_one": "keep" if guarded else "shifted",
        "bounds": "checked" if guarded else "unchecked",
        "tail": "minus_one" if filled else "untouched",
        "missing": "column_0" if repeated else "minus_one",
    }

    def made(**chunk):
        combine_dense(chunk, guarded, filled, repeated)

    return kernel("combine_topk_swa_indices", name=name, platforms="sim-*", numerics=EXACT, contract=contract)(made)


combine_dense_cuda = combine_dense_of("combine_dense_cuda", guarded=False)
combine_dense_in_workspace = combine_dense_of("combine_dense_in_workspace", guarded=False, filled=False)
combine_dense_rocm = combine_dense_of("combine_dense_rocm", guarded=True)


# ---- sliding window and compressed states of decode tokens


def swa_decode(batch, outputs, clears):
    swa_indices, swa_lens, token_to_req, is_valid_token, gather_lens = outputs
    tokens, window, page = len(is_valid_token), batch["window"], batch["page"]
    valid = batch["slot_mapping"][:, 0] >= 0
    is_valid_token[:, 0] = valid
    token_to_req[:tokens] = 0
    swa_lens[:tokens] = 0
    if clears:
        swa_indices[:tokens][~valid] = -1
    for token, request, position in query_tokens(batch["query_start_loc"], batch["seq_lens"]):
        token_to_req[token] = request
        if not valid[token]:
            continue
        start = max(position - window + 1, 0)
        row = np.full(window, -1, np.int64)
        row[: position + 1 - start] = slots(batch["block_table"], request, np.arange(start, position + 1), page)
        swa_indices[token] = row
        swa_lens[token] = position + 1 - start
    queries = np.diff(batch["query_start_loc"][:, 0])
    gather_lens[:, 0] = queries + np.minimum(batch["seq_lens"][:, 0] - queries, window - 1)


@metadata("swa_decode_metadata", invalid_row="untouched")
def swa_leaving_invalid_rows(swa_indices, swa_lens, token_to_req, is_valid_token, gather_lens, **batch):
    swa_decode(batch, (swa_indices, swa_lens, token_to_req, is_valid_token, gather_lens), False)


@metadata("swa_decode_metadata", invalid_row="minus_one")
def swa_clearing_invalid_rows(swa_indices, swa_lens, token_to_req, is_valid_token, gather_lens, **batch):
    swa_decode(batch, (swa_indices, swa_lens, token_to_req, is_valid_token, gather_lens), True)


@metadata("c128a_decode_metadata")
def c128a(positions, slot_mapping, token_to_req, block_table, decode_slots, decode_lens, prefill_indices, decode_tokens, max_compressed, block_size):
    columns = np.arange(max_compressed)
    for token, position in enumerate(positions[:, 0]):
        states = min((int(position) + 1) // 128, max_compressed)
        if token >= decode_tokens:
            prefill_indices[token - decode_tokens] = np.where(columns < states, columns, -1)
            continue
        row = np.full(max_compressed, -1, np.int64)
        row[:states] = slots(block_table, token_to_req[token, 0], columns[:states], block_size)
        decode_slots[token] = row
        decode_lens[token] = states if slot_mapping[token, 0] >= 0 else 0


# ---- V3.2 on ROCm


def paged(query_start_loc, seq_lens, topk, req_id_per_token, paged_kv_indptr):
    """Writes ids and indptr. Returns the number of tokens."""
    lengths, tokens = np.zeros(len(req_id_per_token), np.int64), 0
    for token, request, position in query_tokens(query_start_loc, seq_lens):
        req_id_per_token[token] = request
        lengths[token] = min(position + 1, topk) if seq_lens[request, 0] > 0 else 0
        tokens = token + 1
    write_indptr(paged_kv_indptr, lengths)
    return tokens


@metadata("v32_paged_metadata", extent="full_fill")
def paged_filling_all(query_start_loc, seq_lens, topk, req_id_per_token, paged_kv_indptr, paged_kv_indices):
    req_id_per_token[:] = 0
    paged_kv_indices[:] = 0
    paged(query_start_loc, seq_lens, topk, req_id_per_token, paged_kv_indptr)


def clear_shrunk(tokens, entries, req_id_per_token, paged_kv_indices, extents):
    req_id_per_token[tokens : max(tokens, int(extents[0, 0]))] = 0
    paged_kv_indices[entries : max(entries, int(extents[1, 0]))] = 0
    extents[:, 0] = tokens, entries


@metadata("v32_paged_metadata", extent="n_topk")
def paged_by_topk(query_start_loc, seq_lens, topk, req_id_per_token, paged_kv_indptr, paged_kv_indices, extents):
    tokens = paged(query_start_loc, seq_lens, topk, req_id_per_token, paged_kv_indptr)
    clear_shrunk(tokens, tokens * topk, req_id_per_token, paged_kv_indices, extents)


@metadata("v32_paged_metadata", extent="entries")
def paged_by_entries(query_start_loc, seq_lens, topk, req_id_per_token, paged_kv_indptr, paged_kv_indices, extents):
    tokens = paged(query_start_loc, seq_lens, topk, req_id_per_token, paged_kv_indptr)
    clear_shrunk(tokens, int(paged_kv_indptr[-1, 0]), req_id_per_token, paged_kv_indices, extents)


def paged_slots(topk_indices, req_id_per_token, block_table, paged_kv_indptr, paged_kv_indices, page, missing):
    for token, (begin, end) in enumerate(zip(paged_kv_indptr[:-1, 0], paged_kv_indptr[1:, 0], strict=True)):
        chosen = topk_indices[token, : end - begin].astype(np.int64)
        inside = (chosen >= 0) & (chosen // page < block_table.shape[1])
        if end > begin:
            found = slots(block_table, req_id_per_token[token, 0], np.where(inside, chosen, 0), page)
            paged_kv_indices[begin:end, 0] = np.where(inside, found, missing)


@metadata("v32_paged_kv_indices", invalid="0")
def paged_slots_or_0(topk_indices, req_id_per_token, block_table, paged_kv_indptr, paged_kv_indices, page):
    paged_slots(topk_indices, req_id_per_token, block_table, paged_kv_indptr, paged_kv_indices, page, 0)


@metadata("v32_paged_kv_indices", invalid="minus_one")
def paged_slots_or_minus_one(topk_indices, req_id_per_token, block_table, paged_kv_indptr, paged_kv_indices, page):
    paged_slots(topk_indices, req_id_per_token, block_table, paged_kv_indptr, paged_kv_indices, page, -1)


# ---- V3.2 on CUDA


def converted(call, token, positions):
    """Row of each position of a token, or -1."""
    size, turn, block = call["dcp_size"], call["dcp_interleave"], call["block_size"]
    table = call["block_table"].astype(np.int64)
    local = positions // (size * turn) * turn + positions % turn
    valid = (positions >= 0) & (positions // turn % size == call["dcp_rank"]) & (local // block < table.shape[1])
    local = np.where(valid, local, 0)
    rows = table[call["req_id"][token, 0], local // block] * call["block_stride_rows"] + local % block
    prefill = int(call["prefill_request_id"][token, 0]) if call.get("prefill_request_id") is not None else -1
    if prefill >= 0:
        rows = int(call["workspace_starts"][prefill, 0]) + positions
    return np.where(valid, rows, -1)


def convert(call, tiles=None):
    """tiles: columns of a tile whose valid rows come first; the last tile is the first to store. None: rows stay in their columns."""
    for token, positions in enumerate(call["token_indices"].astype(np.int64)):
        rows = converted(call, token, positions)
        if call.get("valid_counts") is not None:
            call["valid_counts"][token] = (rows >= 0).sum()
        if tiles is not None:
            pieces = [rows[begin : begin + tiles] for begin in range(0, len(rows), tiles)][::-1]
            valid = np.concatenate([piece[piece >= 0] for piece in pieces])
            rows = np.concatenate([valid, np.full(len(rows) - len(valid), -1)])
        call["global_indices"][token] = rows


@metadata("convert_req_index_to_global", compaction="none")
def convert_in_place(**call):
    convert(call)


@metadata("convert_req_index_to_global", compaction="left")
def convert_to_the_left(**call):
    convert(call, tiles=call["topk"])


@metadata("convert_req_index_to_global", compaction="any_order")
def convert_in_tiles(**call):
    convert(call, tiles=128)


# ---- sequences of different length

PADDING = {"float32": -np.inf, "uint16": 0xFF80, "int32": -1, "uint8": 0}  # uint16: bf16 -inf


@metadata("pack_seq")
def pack(x, lengths, out):
    out[:] = PADDING[out.dtype.name]
    start = 0
    for sequence, length in enumerate(lengths[:, 0]):
        out[sequence, :length] = x[start : start + length]
        start += length


@metadata("unpack_seq")
def unpack(x, lengths, out):
    start = 0
    for sequence, length in enumerate(lengths[:, 0]):
        out[start : start + length] = x[sequence, :length]
        start += length
