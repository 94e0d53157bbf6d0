# SPDX-License-Identifier: Apache-2.0
"""Sparse MLA of engines in numpy: FlashMLA's split decode with its tile plan, one pass without a plan, ROCm's
kernels without lse, prefills of both, and the workspace that a prefill reads.

Formulas: FlashMLA (csrc/sm90/decode/sparse_fp8, csrc/smxx/decode, tests/ref.py) and vLLM's ROCm kernels
(rocm_aiter_mla_sparse.py, cache_utils.py).
"""

import numpy as np
from formats import decode, from_bf16, from_ue8m0, round_bf16, to_bf16
from plumb_kernels import kernel

LOG2E, LN2 = np.float32(1.44269504), np.float32(0.693147181)
VALUE_DIMS = 512
TENSOR_CORES = {"product": "bf16", "accumulator": "f32", "chains": 1, "probability": "bf16", "function_ulp": 4}


class Cache:
    """Tokens of one paged cache, read by slot, as the bf16 numbers that enter the products."""

    def __init__(self, data, members, call):
        self.data, self.page, self.layout = call[data], call[members + "_page"], call[members + "_layout"]
        self.format, self.reading = call[members + "_dialect"], call[members + "_scale_reading"]

    def bytes(self, slots, first, count):
        block, column = slots // self.page, first + np.zeros_like(slots)
        return np.ascontiguousarray(self.data[block[:, None], column[:, None] + np.arange(count)])

    def tokens(self, slots):
        offset = slots % self.page
        if self.layout == "v32":
            codes, scales, rope = np.split(self.bytes(slots, offset * 656, 656), [512, 528], axis=1)
            return self.joined(codes, self.read_scales(np.ascontiguousarray(scales).view(np.float32)), 128, rope)
        codes, rope = np.split(self.bytes(slots, offset * 576, 576), [448], axis=1)
        scales = from_ue8m0(self.bytes(slots, self.page * 576 + offset * 8, 7))
        return self.joined(codes, scales, 64, rope)

    def read_scales(self, scales):
        if self.reading == "bf16":
            return round_bf16(scales)
        if self.reading == "e8m0":
            return (scales.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)
        return scales

    def joined(self, codes, scales, group, rope):
        nope = round_bf16(decode(self.format, codes) * np.repeat(scales, group, axis=1))
        return np.concatenate([nope, from_bf16(np.ascontiguousarray(rope).view(np.uint16))], axis=1)


class Rows:
    """Workspace of a prefill: rows of bf16. Indices may lie outside."""

    def __init__(self, data, rows):
        self.data, self.rows = data, rows

    def tokens(self, slots):
        return from_bf16(self.data[slots])


class Candidates:
    """Candidate lists of the query rows, dense or ragged."""

    def __init__(self, name, call):
        self.indices, self.lengths, self.indptr = (call[f"{name}_{part}"] for part in ("indices", "lengths", "indptr"))

    def length(self, request):
        if self.indices is None:
            return 0
        if self.indptr is not None:
            return int(self.indptr[request + 1] - self.indptr[request])
        return int(self.lengths[request]) if self.lengths is not None else self.indices.shape[2]

    def row(self, request, query):
        first = 0 if self.indptr is None else self.indptr[request]
        of_query = self.indices if self.indptr is not None else self.indices[request, query]
        return of_query[first : first + self.length(request)].astype(np.int64)


def keys(source, slots, limit=None):
    """Keys of the slots, and a mask of those that exist. Keys outside the mask are zeros and are not read."""
    valid = slots >= 0 if limit is None else (slots >= 0) & (slots < limit)
    if not valid.any():
        return np.zeros((len(slots), 1), np.float32), valid
    found = source.tokens(slots[valid])
    k = np.zeros((len(slots), found.shape[1]), np.float32)
    k[valid] = found
    return k, valid


class OnlineSoftmax:
    """FlashMLA's online softmax (running maximum, sum and output) for all heads of a query row, in base 2."""

    def __init__(self, q, sm_scale):
        self.q, self.factor = from_bf16(q), np.float32(sm_scale) * LOG2E
        self.m = np.full(len(q), -1e30, np.float32)
        self.sum = np.zeros(len(q), np.float32)
        self.out = np.zeros((len(q), VALUE_DIMS), np.float32)

    def add(self, k, valid):
        if not valid.any():
            return
        scores = np.where(valid, self.q @ k.T * self.factor, np.float32(-np.inf))
        m = np.maximum(self.m, scores.max(axis=1))
        p, rescale = np.exp2(scores - m[:, None]), np.exp2(self.m - m)
        self.sum = self.sum * rescale + p.sum(axis=1, dtype=np.float32)
        self.out = self.out * rescale[:, None] + round_bf16(p) @ k[:, :VALUE_DIMS]
        self.m = m

    @property
    def lonely(self):
        return self.sum == 0

    def lse(self):
        """lse in base 2; -infinity for a row without candidates."""
        return np.where(self.lonely, np.float32(-np.inf), np.log2(self.sum) + self.m)

    def normalised(self, sink):
        weight = 0 if sink is None else np.exp2(sink * LOG2E - self.m)
        return self.out * np.where(self.lonely, np.float32(0), 1 / (self.sum + weight))[:, None]


class Decode:
    """One call of sparse_mla_decode. `call`: the arguments by name."""

    def __init__(self, call):
        self.call = call
        self.lists = [Candidates("main", call), Candidates("extra", call)]
        self.caches = [Cache(name, name, call) if call[name] is not None else None for name in ("main_cache", "extra_cache")]

    def blocks(self, request, size):
        """Number of candidate blocks in each cache; at least one in the main cache."""
        main, extra = (-(-one.length(request) // size) for one in self.lists)
        return max(main, 1), extra

    def attend(self, request, query, begin, end, size):
        softmax = OnlineSoftmax(self.call["q"][request, query], self.call["sm_scale"])
        in_main = self.blocks(request, size)[0]
        for block in range(begin, end):
            which, first = (0, block * size) if block < in_main else (1, (block - in_main) * size)
            if first < self.lists[which].length(request):
                slots = self.lists[which].row(request, query)[first : first + size]
                softmax.add(*keys(self.caches[which], slots))
        return softmax

    def store(self, request, query, softmax):
        self.call["out"][request, query] = to_bf16(softmax.normalised(self.call["attn_sink"]))
        if self.call["lse"] is not None:
            lse = np.where(softmax.lonely, np.float32(np.inf), softmax.lse() * LN2)
            self.call["lse"][request, :, query] = lse


def plan(blocks, parts, overhead):
    """FlashMLA's get_decoding_sched_meta. Returns the tiles of all parts, and prefix sums of the splits."""
    payload = -(-sum(one + overhead for one in blocks) // parts) + overhead
    request = block = split = total = 0
    tiles, splits = [], [0]
    for _ in range(parts):
        tile = [request, 0, block, 0, split, int(block != 0), 0, 0]
        left = payload
        while request < len(blocks):
            rest = blocks[request] - block
            if left >= rest + overhead:
                total += split + 1
                splits.append(total)
                left -= rest + overhead
                request, block, split = request + 1, 0, 0
                continue
            if left > overhead:
                block, split = block + left - overhead, split + 1
            break
        tile[1] = request if block > 0 else request - 1
        tile[3] = block if block > 0 else blocks[request - 1]
        tile[6] = int(tile[3] != blocks[tile[1]])
        if tile[0] == tile[1]:
            tile[5] = tile[6] = tile[5] | tile[6]
        tiles.append(tile)
    return tiles, splits


def combine(lse, out, sink):
    """Combines the partial results of one row in the order of their slots, and adds the sink once."""
    most = lse.max(axis=0)
    most = np.where(np.isneginf(most), np.float32(0), most)
    z = np.exp2(lse - most).sum(axis=0, dtype=np.float32)
    total = np.where(z == 0, np.float32(np.inf), np.log2(z) + most)
    natural = total / LOG2E
    if sink is not None:
        lonely = np.where(np.isneginf(sink), np.float32(np.inf), sink * LOG2E)
        total = np.where(np.isposinf(total), lonely, total + np.log2(1 + np.exp2(sink * LOG2E - total)))
    made = np.zeros(out.shape[1:], np.float32)
    for weight, part in zip(np.exp2(lse - total), out):
        made += weight[:, None] * part
    return natural, made


@kernel("sparse_mla_decode", numerics={**TENSOR_CORES, "stores_partials": 1}, contract={"outputs": "all", "plan": "required"}, platforms="sim-*")
def flash_mla(**call):
    decode, size = Decode(call), call["plan_block_n"]
    blocks = [decode.blocks(request, size) for request in range(call["requests"])]
    counts = [sum(one) for one in blocks]
    tiles, splits = plan(counts, call["plan_num_parts"], call["plan_fixed_overhead"])
    call["tiles"][:], call["num_splits"][:] = tiles, splits
    partial_out, partial_lse = call["partial_out"], call["partial_lse"]
    for tile in tiles:
        first, last = tile[0], tile[1]
        for request in range(first, last + 1) if first < len(counts) else ():
            begin = tile[2] if request == first else 0
            end = tile[3] if request == last else counts[request]
            split = tile[5] if request == first else request == last and tile[6]
            for query in range(call["queries"]):
                softmax = decode.attend(request, query, begin, end, size)
                if not split:
                    decode.store(request, query, softmax)
                    continue
                slot = splits[request] + (tile[4] if request == first else 0)
                partial_out[slot, query] = softmax.normalised(None)
                partial_lse[slot, query] = softmax.lse()
    for request, (begin, end) in enumerate(zip(splits, splits[1:])):
        for query in range(call["queries"]) if end - begin > 1 else ():
            lse, made = combine(partial_lse[begin:end, query], partial_out[begin:end, query], call["attn_sink"])
            call["out"][request, query] = to_bf16(made)
            if call["lse"] is not None:
                call["lse"][request, :, query] = lse


def one_pass(call):
    decode, size = Decode(call), 64
    for request in range(call["requests"]):
        for query in range(call["queries"]):
            decode.store(request, query, decode.attend(request, query, 0, sum(decode.blocks(request, size)), size))


@kernel("sparse_mla_decode", numerics=TENSOR_CORES, contract={"outputs": "all", "plan": "none"}, platforms="sim-*")
def flash_mla_in_one_pass(**call):
    one_pass(call)


@kernel("sparse_mla_decode", numerics=TENSOR_CORES, contract={"outputs": "out", "plan": "required"}, platforms="sim-*")
def flash_mla_without_lse(**call):
    flash_mla(**call)


class RocmSoftmax:
    """Softmax of the ROCm kernels: base e, tiles of 16, the lowest float as the first maximum."""

    LOWEST = np.float32(-3.4028234663852886e38)

    def __init__(self, q, sm_scale):
        self.q, self.scale = from_bf16(q), np.float32(sm_scale)
        self.m = np.full(len(q), self.LOWEST, np.float32)
        self.sum = np.zeros(len(q), np.float32)
        self.out = np.zeros((len(q), VALUE_DIMS), np.float32)

    def add(self, source, slots, limit=None):
        for first in range(0, len(slots), 16):
            k, valid = keys(source, slots[first : first + 16], limit)
            if not valid.any():
                continue
            scores = np.where(valid, self.q @ k.T * self.scale, self.LOWEST)
            m = np.maximum(self.m, scores.max(axis=1))
            p = np.where(valid, np.exp(scores - m[:, None]), np.float32(0))
            rescale = np.exp(self.m - m)
            self.sum = self.sum * rescale + p.sum(axis=1, dtype=np.float32)
            self.out = self.out * rescale[:, None] + round_bf16(p) @ k[:, :VALUE_DIMS]
            self.m = m

    def result(self, sink):
        m = self.m if sink is None else np.maximum(self.m, sink)
        alpha = np.exp(self.m - m)
        total = self.sum * alpha + (0 if sink is None else np.exp(sink - m))
        scaled = self.out * alpha[:, None] / np.maximum(total, np.float32(1e-30))[:, None]
        return to_bf16(np.where((total > 0)[:, None], scaled, np.float32(0)))


@kernel("sparse_mla_decode", numerics=TENSOR_CORES, contract={"outputs": "out", "plan": "none"}, platforms="sim-*")
def rocm_sparse_attn_decode(**call):
    decode = Decode(call)
    for request in range(call["requests"]):
        for query in range(call["queries"]):
            softmax = RocmSoftmax(call["q"][request, query], call["sm_scale"])
            for cache, list_of in zip(decode.caches, decode.lists):
                if cache is not None:
                    softmax.add(cache, list_of.row(request, query))
            call["out"][request, query] = softmax.result(call["attn_sink"])


@kernel("sparse_mla_prefill", numerics=TENSOR_CORES, contract={"outputs": "all"}, platforms="sim-*")
def flash_mla_prefill(**call):
    lists, kv = Candidates("kv", call), Rows(call["kv"], call["kv_rows"])
    for row in range(call["rows"]):
        softmax = OnlineSoftmax(call["q"][row, 0], call["sm_scale"])
        slots = lists.row(row, 0)
        for first in range(0, len(slots), 64):
            softmax.add(*keys(kv, slots[first : first + 64], kv.rows))
        call["out"][row] = to_bf16(softmax.normalised(call["attn_sink"]))
        call["lse"][row] = np.where(softmax.lonely, np.float32(np.inf), softmax.lse() * LN2)
        call["max_logits"][row] = np.where(softmax.lonely, np.float32(-np.inf), softmax.m * LN2)


@kernel("sparse_mla_prefill", numerics=TENSOR_CORES, contract={"outputs": "out"}, platforms="sim-*")
def rocm_sparse_attn_prefill(**call):
    lists, kv = Candidates("kv", call), Rows(call["kv"], call["kv_rows"])
    for row in range(call["rows"]):
        softmax = RocmSoftmax(call["q"][row, 0], call["sm_scale"])
        softmax.add(kv, lists.row(row, 0), kv.rows)
        call["out"][row] = softmax.result(call["attn_sink"])


@kernel("sparse_mla_prefill", numerics={**TENSOR_CORES, "score": "bf16"}, contract={"outputs": "out"}, platforms="sim-*")
def torch_attention_in_steps(**call):
    """torch without a fused kernel: each step stores bf16. A sink is one more score, without a value."""
    lists, kv = Candidates("kv", call), Rows(call["kv"], call["kv_rows"])
    sinks = call["attn_sink"]
    for row in range(call["rows"]):
        k, valid = keys(kv, lists.row(row, 0), kv.rows)
        if not valid.any():
            call["out"][row] = 0
            continue
        k = k[valid]
        scores = round_bf16(round_bf16(from_bf16(call["q"][row, 0]) @ k.T) * np.float32(call["sm_scale"]))
        if sinks is not None:
            scores = np.concatenate([scores, round_bf16(np.ravel(sinks))[:, None]], axis=1)
        weights = np.exp(round_bf16(scores - scores.max(axis=1, keepdims=True)))
        p = round_bf16(weights / weights.sum(axis=1, keepdims=True))
        call["out"][row] = to_bf16(p[:, : len(k)] @ k[:, :VALUE_DIMS])


@kernel("dequantize_and_gather_k_cache", platforms="sim-*")
def dequantize_and_gather(**call):
    cache = Cache("k_cache", "cache", call)
    for request in range(call["requests"]):
        length = int(call["seq_lens"][request])
        count = length if call["gather_lens"] is None else int(call["gather_lens"][request])
        position = np.arange(length - count, length)
        block = call["block_table"][request, position // cache.page].astype(np.int64)
        first = call["offset"]
        if count > 0:
            call["workspace"][request, first : first + count] = to_bf16(cache.tokens(block * cache.page + position % cache.page))


def blocks_of(call):
    """Candidate blocks of each request: of the main cache (at least one) and of the extra cache."""

    def lengths(name):
        given, ragged = call[f"{name}_length"], call[f"{name}_indptr"]
        if ragged is not None:
            return np.diff(ragged.ravel().astype(np.int64))
        return np.full(call["requests"], call[name]) if given is None else given.ravel().astype(np.int64)

    block_n = call["block_n"]
    blocks = np.maximum(-(-lengths("topk") // block_n), 1)
    if call["extra_topk"]:
        blocks = blocks - (-lengths("extra_topk") // block_n)
    return blocks


@kernel("get_decoding_sched_meta", platforms="sim-*")
def sched_meta_of_flashmla(**call):
    """FlashMLA's planner. It promises nothing about parts without work."""
    blocks, overhead, parts = blocks_of(call), call["fixed_overhead"], call["num_sm_parts"]
    payload = -(-int((blocks + overhead).sum()) // parts) + overhead
    request = block = split = 0
    splits, tiles = [0], call["tile_scheduler_metadata"]
    for part in range(parts):
        first, begin, number, left = request, block, split, payload
        while request < len(blocks):
            rest = int(blocks[request]) - block
            if left < rest + overhead:
                if left > overhead:
                    block, split = block + left - overhead, split + 1
                break
            splits.append(splits[-1] + split + 1)
            left, request, block, split = left - rest - overhead, request + 1, 0, 0
        last = request if block else request - 1
        end = block or int(blocks[last])
        flags = [begin > 0, end != blocks[last]]
        if first == last:
            flags = [any(flags)] * 2
        tiles[part, :7] = first, last, begin, end, number, *flags
    call["num_splits"].ravel()[:] = splits


@kernel("get_decoding_sched_meta", platforms="sim-*")
def sched_meta_of_equal_parts(**call):
    """Another valid division: parts with equal numbers of blocks, the last part first."""
    blocks, parts = blocks_of(call), call["num_sm_parts"]
    ends = np.cumsum(blocks)
    starts = ends - blocks
    cuts = np.arange(parts + 1) * ends[-1] // parts
    tiles, splits = call["tile_scheduler_metadata"], np.zeros(len(blocks), np.int64)
    tiles[:, 0] = len(blocks)
    for part in range(parts):
        if cuts[part] == cuts[part + 1]:
            continue
        first, last = np.searchsorted(ends, [cuts[part], cuts[part + 1] - 1], side="right")
        begin, end = cuts[part] - starts[first], cuts[part + 1] - starts[last]
        flags = [begin > 0, end != blocks[last]]
        if first == last:
            flags = [any(flags)] * 2
        tiles[parts - 1 - part, :7] = first, last, begin, end, splits[first], *flags
        splits[first : last + 1] += 1
    call["num_splits"].ravel()[:] = np.append(0, np.cumsum(splits))
