# SPDX-License-Identifier: Apache-2.0
"""V4's compressor in numpy, as vLLM 0.33, vLLM 0.22.1 and SGLang compute it.

The tokens of a call are the last ones of each request's sequence. State n (from 1) of a request is complete when
n * ratio of its tokens exist.
"""

import numpy as np
from formats import encode_e2m1, encode_e4m3, from_bf16, from_ue8m0, round_bf16, to_bf16, ue8m0_ceil
from plumb_kernels import kernel

EXACT = {"deterministic": 1}


def compressor(op, **contract):
    return kernel(op, platforms="sim-*", numerics=EXACT, contract=contract)


def closed_states(query_start_loc, seq_lens, ratio):
    """Yields (token, request, index of the state) for each token that completes a state."""
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


# ---- compressed states


def partial_state(batch, request, position):
    """kv and score of one position, from the cache."""
    rows, start = batch["states_rows"], batch["states_row_stride_bytes"]
    block = batch["block_table"][request, position // rows]
    dtype = np.uint16 if batch["half"] else np.float32
    values = batch["states"][block, position % rows * start :]
    count = 2 * batch["width"] * np.dtype(dtype).itemsize
    values = np.ascontiguousarray(values[:count]).view(dtype)
    values = from_bf16(values) if batch["half"] else values
    return np.split(values, 2)


def group_window(batch, request, position):
    """Scores and kv [positions, channels] of the group that ends at `position` and, with overlap, of the group before it."""
    dim, ratio = batch["head_dim"], batch["ratio"]
    scores, kvs = [], []
    for group in range(1 if batch["overlap"] else 0, -1, -1):
        for q in range(position - (group + 1) * ratio + 1, position - group * ratio + 1):
            if q < 0:
                continue
            kv, score = partial_state(batch, request, q)
            if batch.get("ape") is not None:
                score = score + batch["ape"][q % ratio]
            # Each position has two projections: the next group uses the first one, its own group the second one.
            own = slice(dim, 2 * dim) if batch["overlap"] and group == 0 else slice(0, dim)
            scores.append(batch["bf16_step"](score[own]))
            kvs.append(kv[own])
    return np.stack(scores), np.stack(kvs)


def same(x):
    return x


# Rounding of results inside of a group's sum, and of the mean over the window and the normalised state.
ROUNDINGS = {"store": (same, same), "norm": (same, round_bf16), "every": (round_bf16, round_bf16)}


def compressed_state(batch, request, position):
    step, result = batch["bf16_step"], batch["bf16_result"]
    scores, kv = group_window(batch, request, position)
    with np.errstate(under="ignore"):
        weights = np.exp(scores - scores.max(axis=0))
        if step is same:
            c = (weights * kv).sum(axis=0) / weights.sum(axis=0)
        else:
            c = step(step(weights / weights.sum(axis=0)) * kv).sum(axis=0)
    c = result(c)
    y = result(c / np.sqrt(np.mean(c * c) + np.float32(batch["eps"])) * from_bf16(batch["weight"]))
    first = position - batch["ratio"] + 1
    cosine, sine = np.split(batch["cos_sin"][first], 2)
    even, odd = y[-64::2], y[-63::2]
    turned = np.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=1)
    return np.concatenate([y[:-64], turned.ravel()]).astype(np.float32)


def quantise(x, group, floor):
    """Rounds x to bf16 and quantises it. Returns codes and scale bytes."""
    x = round_bf16(x).reshape(-1, group)
    least, amax = np.float32(1e-4), np.abs(x).max(axis=1)
    scale = np.maximum(amax / np.float32(448), least) if floor == "scale" else np.maximum(amax, least) / np.float32(448)
    scale = ue8m0_ceil(scale)
    return encode_e4m3("e4m3fn", x / from_ue8m0(scale)[:, None]).ravel(), scale


def transformed(x):
    """Hadamard transform: Sylvester's matrix, divided by the root of its size."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < len(x):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (matrix[: len(x), : len(x)] @ x) * np.float32(len(x) ** -0.5)


def quantise_mxfp4(x):
    """E2M1 codes, two in a byte, and the scale bytes of 32 channels each."""
    x = round_bf16(x).reshape(-1, 32)
    least = np.float32(6 * 2.0**-126)
    scale = ue8m0_ceil(np.maximum(np.abs(x).max(axis=1), least) / np.float32(6))
    codes = encode_e2m1(x / from_ue8m0(scale)[:, None]).ravel()
    return (codes[0::2] | codes[1::2] << 4).astype(np.uint8), scale


def entry_of(state, layout, page, offset, floor, pad, cache_scale=None, hadamard=False, fp32_scales=False):
    """Yields (first byte in the page, bytes) for each part of a state's entry."""
    dim = len(state)
    if hadamard and layout.startswith("indexer"):
        state = transformed(round_bf16(state))
    if layout == "rows":
        yield offset * dim * 2, to_bf16(state).view(np.uint8)
    elif layout == "rows_fp8":
        inverse = np.float32(1) / np.float32(cache_scale[0])
        yield offset * dim, encode_e4m3("e4m3fn", round_bf16(state) * inverse)
    elif layout == "indexer_mxfp4":
        codes, scales = quantise_mxfp4(state)
        yield offset * dim // 2, codes
        yield page * dim // 2 + offset * dim // 32, scales
    elif layout == "indexer" and fp32_scales:
        x = round_bf16(state)
        scale = np.maximum(np.abs(x).max(), np.float32(1e-4)) / np.float32(448)
        yield offset * dim, encode_e4m3("e4m3fn", x * (np.float32(1) / scale))
        yield page * dim + offset * 4, np.array([scale], np.float32).view(np.uint8)
    elif layout in ("indexer", "indexer_bytes"):
        codes, scale = quantise(state, dim, "amax")
        yield offset * dim, codes
        stored = from_ue8m0(scale).view(np.uint8) if layout == "indexer" else np.repeat(scale, 4).astype(np.uint8)
        yield page * dim + offset * 4, stored
    else:
        codes, scales = quantise(state[:448], 64, floor)
        yield offset * 576, codes
        yield offset * 576 + 448, to_bf16(state[448:]).view(np.uint8)
        yield page * 576 + offset * 8, np.append(scales, 0).astype(np.uint8) if pad == "zero" else scales


def compressed_writer(name, floor, pad, rounding="store", hadamard="none", scale_form="pow2"):
    step, result = ROUNDINGS[rounding]
    contract = {"floor": floor, "pad": pad, "rounding": rounding, "hadamard": hadamard, "scale_form": scale_form}

    @kernel("compress_norm_rope_insert", name=name, platforms="sim-*", contract=contract, numerics={"chains": 8, "deterministic": 1})
    def write(
        positions, token_to_req, state_slot_mapping, slot_mapping, cache, cache_page, layout, form, ratio, overlap, head_dim, cache_scale=None, **batch
    ):  # fmt: skip
        batch |= {"ratio": ratio, "overlap": overlap, "head_dim": head_dim, "width": head_dim * (1 + overlap), "half": form == "raw_bf16"}
        batch |= {"bf16_step": step, "bf16_result": result}
        for token, slot in enumerate(slot_mapping):
            position = int(positions[token])
            if slot < 0 or state_slot_mapping[token] < 0 or (position + 1) % ratio:
                continue
            state = compressed_state(batch, int(token_to_req[token]), position)
            block, offset = divmod(int(slot), cache_page)
            for start, values in entry_of(state, layout, cache_page, offset, floor, pad, cache_scale, hadamard == "q_and_k", scale_form == "fp32"):
                cache[block, start : start + len(values)] = values

    return write


vllm_cuda = compressed_writer("vllm_cuda", "scale", "zero")
vllm_triton = compressed_writer("vllm_triton", "amax", "zero")
sglang = compressed_writer("sglang", "amax", "untouched", hadamard="q_and_k", scale_form="fp32")
deepseek = compressed_writer("deepseek", "amax", "zero", "norm")
transformers_bf16 = compressed_writer("transformers_bf16", "amax", "zero", "every")


# ---- the online form of C128A: states of open groups

GROUP = 128


def online_state(states, row, dim):
    """Largest scores, sums and means of a row. None: there is no state."""
    return None if row < 0 else np.split(np.array(states[row, : 3 * dim], np.float32), 3)


def merge(state, other):
    """The state of two parts of a group."""
    if state is None:
        return other
    largest = np.maximum(state[0], other[0])
    with np.errstate(under="ignore", over="ignore"):
        a, b = state[1] * np.exp(state[0] - largest), other[1] * np.exp(other[0] - largest)
        return largest, a + b, (state[2] * a + other[2] * b) / (a + b)


def whole_segment(kv, scores):
    """The state of consecutive tokens of a group, by a softmax over all of them and a place of padding, as SGLang has them.

    The place has the lowest fp32 score, so that tokens with scores of -inf alone have a finite largest score.
    """
    lowest = np.finfo(np.float32).min
    scores = np.vstack([scores, np.full((1, scores.shape[1]), lowest, np.float32)])
    kv = np.vstack([kv, np.zeros((1, kv.shape[1]), np.float32)])
    largest = scores.max(axis=0)
    with np.errstate(under="ignore", over="ignore"):
        weights = np.exp(scores - largest)
    total = weights.sum(axis=0)
    return largest, total, (weights * kv).sum(axis=0) / total


def token_by_token(kv, scores):
    state = None
    for k, z in zip(kv, scores):
        state = merge(state, (z, np.ones_like(z), k))
    return state


def halves(kv, scores):
    """The two halves of the tokens, merged."""
    middle = len(kv) // 2
    return whole_segment(kv, scores) if middle == 0 else merge(halves(kv[:middle], scores[:middle]), halves(kv[middle:], scores[middle:]))


def segments(begin, end, position):
    """Yields (first token, token behind the last, position of the first) of each group."""
    while begin < end:
        count = min(end - begin, GROUP - position % GROUP)
        yield begin, begin + count, position
        begin, position = begin + count, position + count


def online_compressor(name, segment_state):
    @kernel("online_compress", name=name, platforms="sim-*", numerics={"chains": 1, "deterministic": 1})
    def compress(kv, score, ape, query_start_loc, seq_lens, read_rows, write_rows, head_dim, states, out):
        for request, (begin, end) in enumerate(zip(query_start_loc[:-1, 0], query_start_loc[1:, 0])):
            state = None
            for first, last, position in segments(int(begin), int(end), int(seq_lens[request, 0]) - int(end - begin)):
                phase = position % GROUP
                front = online_state(states, int(read_rows[request, 0]), head_dim) if phase else None
                state = merge(front, segment_state(kv[first:last], score[first:last] + ape[phase : phase + last - first]))
                if phase + last - first == GROUP:
                    out[last - 1] = state[2]
                    state = None
            if state is not None and write_rows[request, 0] >= 0:
                states[int(write_rows[request, 0]), : 3 * head_dim] = np.concatenate(state)

    return compress


online_prefill = online_compressor("online_prefill", whole_segment)
online_decode = online_compressor("online_decode", token_by_token)
online_tree = online_compressor("online_tree", halves)


@kernel("online_compress_prefix", platforms="sim-*", numerics={"chains": 1, "deterministic": 1})
def online_prefixes(kv, score, ape, seq_lens, request_rows, verify_tokens, bank_rows, head_dim, states):
    for request, (length, row) in enumerate(zip(seq_lens[:, 0].astype(int), request_rows[:, 0].astype(int))):
        if length < 0 or not 0 <= row < bank_rows:
            continue
        first = request * verify_tokens
        for begin, end, position in segments(first, first + verify_tokens, length):
            phase = position % GROUP
            front = online_state(states, row, head_dim) if phase else None
            for last in range(begin + 1, end + 1):
                if phase + last - begin == GROUP:
                    break
                scores = score[begin:last] + ape[phase : phase + last - begin]
                states[row + (last - first) * bank_rows, : 3 * head_dim] = np.concatenate(merge(front, whole_segment(kv[begin:last], scores)))


@compressor("commit_online_states")
def commit_states(seq_lens, request_rows, pending_seq_lens, verify_tokens, bank_rows, head_dim, states):
    bits = states.view(np.uint32)
    for length, row in zip(seq_lens[:, 0].astype(int), request_rows[:, 0].astype(int)):
        if not 0 <= row < bank_rows or pending_seq_lens[row, 0] < 0:
            continue
        pending = int(pending_seq_lens[row, 0])
        accepted = min(max(length - pending, 0), verify_tokens)
        if accepted and (pending + accepted) % GROUP:
            bits[row, : 3 * head_dim] = bits[row + accepted * bank_rows, : 3 * head_dim]
