# SPDX-License-Identifier: Apache-2.0
"""V4's compressor in numpy, as vLLM 0.33, vLLM 0.22.1 and SGLang compute it.

A request's tokens stand at the end of its sequence. Its n-th state is complete as soon as n * ratio
of its tokens are there.
"""

import numpy as np
from formats import to_bf16
from plumb_kernels import kernel

EXACT = {"deterministic": 1}


def compressor(op, **contract):
    return kernel(op, platforms="sim-*", numerics=EXACT, contract=contract)


def closed_states(query_start_loc, seq_lens, ratio):
    """(token, request, number of the state) of each token that completes one."""
    for request, length in enumerate(seq_lens[:, 0]):
        begin, end = query_start_loc[request : request + 2, 0]
        for n in range(ratio, int(length) + 1, ratio):
            token = int(end) - (int(length) - n) - 1
            if token >= begin:
                yield token, request, n // ratio - 1


def map_states(query_start_loc, seq_lens, block_table, ratio, page, compressed_slots, written):
    compressed_slots[:] = -1
    for token, request, state in closed_states(query_start_loc, seq_lens, ratio):
        if written(token):
            compressed_slots[token] = int(block_table[request, state // page]) * page + state % page


@compressor("compressed_slot_mapping", own_slot="required")
def slots_of_written_tokens(query_start_loc, seq_lens, slot_mapping, block_table, ratio, page, compressed_slots):
    written = np.array(slot_mapping[:, 0]) >= 0
    map_states(query_start_loc, seq_lens, block_table, ratio, page, compressed_slots, lambda token: written[token])


@compressor("compressed_slot_mapping", own_slot="ignored")
def slots_of_all_tokens(query_start_loc, seq_lens, block_table, ratio, page, compressed_slots):
    map_states(query_start_loc, seq_lens, block_table, ratio, page, compressed_slots, lambda token: True)


# ---- states of positions


def save_states(rows, state, kv, score, slot_mapping, block_rows, row_bytes):
    for token in np.flatnonzero(slot_mapping >= 0):
        block, row = divmod(int(slot_mapping[token]), block_rows)
        values = rows(kv[token], score[token], token)
        state[block, row * row_bytes :][: values.nbytes] = values.view(np.uint8)


@compressor("save_partial_states")
def save_partial_states(kv, score, positions, slot_mapping, ratio, form, states_rows, states_row_stride_bytes, cache, ape=None):
    def row(kv, score, token):
        state = np.concatenate([kv, score + ape[int(positions[token]) % ratio] if form == "biased" else score])
        return to_bf16(state) if form == "raw_bf16" else state

    save_states(row, cache, kv, score, slot_mapping, states_rows, states_row_stride_bytes)
