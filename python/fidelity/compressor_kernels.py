# SPDX-License-Identifier: Apache-2.0
"""V4's compressor in numpy: slots of compressed states as vLLM 0.33 and 0.22.1 compute them.

A request's tokens stand at the end of its sequence. Its n-th state is complete as soon as n * ratio
of its tokens are there.
"""

import numpy as np
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
