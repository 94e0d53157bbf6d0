# SPDX-License-Identifier: Apache-2.0
"""Modules of transformers' DeepSeek models (deepseek_v4, deepseek_v32) as implementations of plumb's ops.

    pip install transformers==5.23.0 torch==2.11.0
    PYTHONPATH=build/sim/python plumb run --plugin transformers_models.py --platform sim-sm90

They run in plain torch on the CPU, with plumb's tensors as parameters of the modules. Code in the middle of a layer's
forward() runs with dummies in place of the sublayers around it.
"""

import functools
from types import SimpleNamespace

import torch
from plumb_kernels import Unsupported, kernel
from torch.func import functional_call
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as v4
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as v32

torch.set_num_threads(1)
on_cpu = functools.partial(kernel, platforms="sim-*")

# torch sums a row in 4 vectors of at least 8 lanes. Its exp and log1p have an error of 1 ulp.
SUMS = {"deterministic": 1, "chains": 32, "function_ulp": 2}
# A GEMM of MKL sums along K. Its bits may depend on the alignment of its operands.
GEMM = {"chains": 1, "function_ulp": 2}


def tensor(array):
    """A torch tensor over the memory of an argument. numpy holds bf16 as uint16."""
    if array is None or isinstance(array, torch.Tensor):
        return array
    made = torch.from_numpy(array)
    return made.view(torch.bfloat16) if made.dtype == torch.uint16 else made


def need(condition, what):
    if not condition:
        raise Unsupported(what)


def without_memory(cls, *arguments):
    with torch.device("meta"):
        return cls(*arguments)


def call(module, parameters, *arguments):
    return functional_call(module, {name: tensor(array) for name, array in parameters.items()}, arguments)


class Reached(Exception):
    """Ends forward() when a dummy has received the result."""


def reach(*result):
    raise Reached(*result)


def part_of_layer(cls, stand_ins):
    layer = cls.__new__(cls)
    torch.nn.Module.__init__(layer)
    layer.__dict__.update(stand_ins)
    return layer.forward


# Norms and RoPE


def normalise(cls, x, weight, out, eps):
    tensor(out).copy_(call(without_memory(cls, x.shape[-1], eps), {"weight": weight}, tensor(x)))


@on_cpu("rms_norm", numerics=SUMS, contract={"rounding": "twice"})
def v32_rms_norm(x, weight, out, eps, hidden):
    ones = torch.ones(hidden, dtype=torch.bfloat16)
    normalise(v32.DeepseekV32RMSNorm, x, ones if weight is None else weight, out, eps)


@on_cpu("q_kv_rms_norm", numerics=SUMS, contract={"rounding": "twice"})
def v32_latent_norms(q, kv, q_weight, kv_weight, out_q, out_kv, eps):
    normalise(v32.DeepseekV32RMSNorm, q, q_weight, out_q, eps)
    normalise(v32.DeepseekV32RMSNorm, kv, kv_weight, out_kv, eps)


# V4 keeps norm weights in fp32, so the result is rounded once.
@on_cpu("mtp_shared_head_rms_norm", numerics=SUMS, contract={"rounding": "once"})
def v4_rms_norm(x, weight, out, eps):
    normalise(v4.DeepseekV4RMSNorm, x, tensor(weight).float(), out, eps)


@on_cpu("fused_add_rms_norm", numerics=SUMS, contract={"rounding": "twice", "sum": "bf16"})
def v32_add_norm(x, residual, weight, eps):
    norm = without_memory(v32.DeepseekV32RMSNorm, len(weight), eps)

    def norm_of_sum(total):
        reach(total, call(norm, {"weight": weight}, total))

    stand_ins = {
        "input_layernorm": lambda hidden: hidden,
        "self_attn": lambda **more: (tensor(x), None),
        "post_attention_layernorm": norm_of_sum,
    }
    try:
        part_of_layer(v32.DeepseekV32DecoderLayer, stand_ins)(tensor(residual))
    except Reached as end:
        tensor(residual).copy_(end.args[0])
        tensor(x).copy_(end.args[1])


def rotated(heads, positions, cos_sin, sign):
    """RoPE of [tokens, heads, dims]. V4's function takes heads before tokens."""
    cos, sin = tensor(cos_sin)[tensor(positions)].chunk(2, dim=-1)
    return v4.apply_rotary_pos_emb(heads.transpose(0, 1)[None], cos[None], sign * sin[None])[0].transpose(0, 1)


@on_cpu("inverse_rope", numerics=SUMS)
def v4_inverse_rope(x, positions, cos_sin, out):
    tensor(x if out is None else out).copy_(rotated(tensor(x), positions, cos_sin, -1))


# 1/rms of each head is a bf16 number.
@on_cpu("q_head_rms_norm_rope", numerics=SUMS, contract={"rounding": "factor"})
def v4_q_head_norm(q, positions, cos_sin, out, eps):
    heads = tensor(out if q is None else q)
    normalised = v4.DeepseekV4UnweightedRMSNorm(eps)(heads)
    tensor(out).copy_(rotated(normalised, positions, cos_sin, 1))


# Hyper-connections


def hyper_connection(hidden, rms_eps, pre_eps, sinkhorn_eps, sinkhorn_iterations, post_mult, norm_weight):
    need(post_mult == 2, "post_mult of 2 only")
    need(pre_eps == sinkhorn_eps, "one eps for pre and Sinkhorn only")
    need(norm_weight is None, "no fused norm")
    config = SimpleNamespace(
        hidden_size=hidden, hc_mult=4, hc_sinkhorn_iters=sinkhorn_iterations, hc_eps=pre_eps, rms_norm_eps=rms_eps
    )
    return without_memory(v4.DeepseekV4HyperConnection, config)


OPTIONS = ("hidden", "rms_eps", "pre_eps", "sinkhorn_eps", "sinkhorn_iterations", "post_mult", "norm_weight")


def mix(streams, arguments):
    module = hyper_connection(**{name: arguments[name] for name in OPTIONS})
    parameters = {name: arguments[name] for name in ("fn", "scale", "base")}
    results = call(module, parameters, streams)
    for name, result in zip(("post", "comb", "layer_input"), results):
        tensor(arguments[name]).copy_(result[0])


@on_cpu("mhc_pre", numerics=GEMM, contract={"scaled": "operand"})
def v4_hyper_connection(residual, tokens, **more):
    streams = tensor(residual)
    need(streams.is_contiguous(), "contiguous streams only")
    if tokens:
        mix(streams[None], more)


def streams_after(x, residual, post, comb):
    """The streams that a layer passes from its attention to its second hyper-connection."""
    stand_ins = {
        "attn_hc": lambda streams: (tensor(post)[None], tensor(comb)[None], None),
        "input_layernorm": lambda hidden: hidden,
        "self_attn": lambda hidden: (tensor(x).float()[None], None),
        "ffn_hc": reach,
    }
    try:
        part_of_layer(v4.DeepseekV4DecoderLayer, stand_ins)(tensor(residual).float()[None])
    except Reached as end:
        return end.args[0]


# Runs in fp32: a bf16 model rounds post and comb to bf16, which no contract of plumb declares.
@on_cpu("mhc_post", numerics=GEMM)
def v4_streams(x, residual, post, comb, out, tokens):
    if tokens:
        tensor(out).copy_(streams_after(x, residual, post, comb)[0])


@on_cpu("hc_head", numerics=GEMM, contract={"rounding": "once"})
def v4_hyper_head(hidden_states, fn, scale, base, out, rms_eps, hc_eps, hidden, tokens):
    config = SimpleNamespace(hidden_size=hidden, hc_mult=4, hc_eps=hc_eps, rms_norm_eps=rms_eps)
    head = without_memory(v4.DeepseekV4HyperHead, config)
    if tokens:
        tensor(out).copy_(call(head, {"hc_fn": fn, "hc_scale": scale, "hc_base": base}, tensor(hidden_states)[None])[0])


# Routers


class NoProjection:
    """A router weight with which F.linear() returns its input, because plumb's inputs are the logits."""

    def type(self, dtype):
        return self

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), more=None):
        return arguments[0]


def router(cls, parameters, **config):
    made = without_memory(cls, SimpleNamespace(hidden_size=config["num_local_experts"], **config))
    del made._parameters["weight"]
    made.weight = NoProjection()
    return lambda *arguments: call(made, parameters, *arguments)[1:]


def store(results, weights, ids):
    for result, output in zip(results, (weights, ids)):
        tensor(output).copy_(result)


UNSORTED = {"ties": "any", "order": "any"}  # torch.topk(sorted=False)
TORCH_SCORE = {"softplus": "threshold_20", "softplus_small": "log1p", "nan_score": "nan", "zero_sum": "epsilon"}


@on_cpu("sqrt_softplus_topk", numerics=SUMS, contract={**TORCH_SCORE, **UNSORTED, "weight": "score"})
def v4_router(logits, bias, weights, ids, experts, topk, renormalize, routed_scaling_factor, is_padding, token_expert_indices):
    need(renormalize, "renormalised weights only")
    need(is_padding is None and token_expert_indices is None, "no mask of tokens and no token_expert_indices")
    need(tensor(logits).dtype == torch.float32, "bf16 logits have scores in bf16")
    route = router(
        v4.DeepseekV4TopKRouter, {"e_score_correction_bias": bias}, num_experts_per_tok=topk, num_local_experts=experts,
        scoring_func="sqrtsoftplus", routed_scaling_factor=routed_scaling_factor,
    )  # fmt: skip
    store(route(tensor(logits)), weights, ids)


@on_cpu("hash_routing", numerics=SUMS, contract={**TORCH_SCORE, "strangers": "never"})
def v4_hash_router(logits, input_ids, tid2eid, weights, ids, experts, topk, renormalize, routed_scaling_factor):
    need(renormalize, "renormalised weights only")
    need(tensor(logits).dtype == torch.float32, "bf16 logits have scores in bf16")
    route = router(
        v4.DeepseekV4HashRouter, {"tid2eid": tid2eid}, num_experts_per_tok=topk, num_local_experts=experts, vocab_size=len(tid2eid),
        scoring_func="sqrtsoftplus", routed_scaling_factor=routed_scaling_factor,
    )  # fmt: skip
    store(route(tensor(logits), tensor(input_ids)), weights, ids)


@on_cpu("grouped_topk", numerics=SUMS, contract={"arithmetic": "fp32", "nonfinite": "ordered_bits", "kernel_domain": "everywhere", "bias_format": "fp32", **UNSORTED})
def v32_router(logits, bias, weights, ids, experts, topk, n_group, topk_group, renormalize, routed_scaling_factor):
    route = router(
        v32.DeepseekV32TopkRouter, {"e_score_correction_bias": bias}, num_experts_per_tok=topk, num_local_experts=experts,
        n_group=n_group, topk_group=topk_group, norm_topk_prob=bool(renormalize), routed_scaling_factor=routed_scaling_factor,
    )  # fmt: skip
    need(tensor(logits).is_contiguous(), "contiguous logits only")
    store(route(tensor(logits)), weights, ids)


# Compressor


def projections(states, block_table, request, first, last, rows, row_bytes, width):
    """kv and gate [1, positions, width] of positions first to last, from the cache of partial states."""
    found = []
    for position in range(first, last + 1):
        block = tensor(states)[int(block_table[request, position // rows])]
        start = position % rows * row_bytes
        found.append(block[start : start + 2 * width * 4].clone().view(torch.float32))
    return (part[None] for part in torch.stack(found).split(width, -1))


def compressed_state(position, kv, gate, bias, weight, cos_sin, eps, ratio, overlap):
    """The state that `position` closes, by forward() of the compressor with dummies for all but the norm."""
    cls = v4.DeepseekV4CSACompressor if overlap else v4.DeepseekV4HCACompressor
    groups = kv.shape[1] // ratio
    number = position // ratio
    angles = torch.stack([tensor(cos_sin)[(number - back) * ratio] for back in reversed(range(groups))])[None]
    dim = kv.shape[2] // 2 if overlap else kv.shape[2]
    norm = without_memory(v4.DeepseekV4RMSNorm, dim, eps)
    module = SimpleNamespace(
        compress_rate=ratio, head_dim=dim, rope_layer_type="compress", kv_proj=lambda _: kv, gate_proj=lambda _: gate, position_bias=bias,
        kv_norm=lambda x: call(norm, {"weight": weight}, x), rotary_emb=lambda *_, **__: angles.chunk(2, -1),
        indexer=lambda *_: torch.zeros(1, 1, 1, dtype=torch.long),
    )  # fmt: skip
    states, _ = cls.forward(module, kv, None, torch.zeros(1, 1, dtype=torch.long), None, 0)
    return states[0, 0, -1]


# In fp32. With a bias of bf16, as in a bf16 model, scores are other numbers than those of plumb's fp32 `ape`.
@on_cpu("compress_norm_rope_insert", numerics=SUMS, contract={"rounding": "store"})
def v4_compressor(cache, slot_mapping, state_slot_mapping, positions, token_to_req, layout, form, ratio, overlap, head_dim, cache_page, weight,
                  cos_sin, eps, states, block_table, states_rows, states_row_stride_bytes, ape=None, **_):  # fmt: skip
    need(layout == "rows", "a cache of bf16 rows only")
    need(form != "raw_bf16", "partial states in fp32 only")
    width = head_dim * (1 + overlap)
    bias = torch.zeros(ratio, width) if ape is None else tensor(ape)
    for token, slot in enumerate(slot_mapping):
        position, request = int(positions[token]), int(token_to_req[token])
        if slot < 0 or state_slot_mapping[token] < 0 or (position + 1) % ratio:
            continue
        first = max(position + 1 - ratio * (1 + overlap), 0)
        kv, gate = projections(states, block_table, request, first, position, states_rows, states_row_stride_bytes, width)
        state = compressed_state(position, kv, gate, bias, tensor(weight).float(), cos_sin, eps, ratio, overlap)
        block, offset = divmod(int(slot), cache_page)
        row = tensor(cache)[block, offset * 2 * head_dim : (offset + 1) * 2 * head_dim]
        row.copy_(state.to(torch.bfloat16).view(torch.uint8))


# Indexer and attention


CODES = {"e4m3fn": torch.float8_e4m3fn, "e4m3fnuz": torch.float8_e4m3fnuz}


# The scorer takes keys without scales, so the scores are multiplied by each key's scale.
@on_cpu("fp8_mqa_logits", numerics=GEMM)
def v4_indexer_scorer(q, k, k_scale, weights, starts, ends, logits, keys, rows, max_seqlen_k, q_dialect, k_dialect):
    need(not max_seqlen_k, "columns of all keys only")
    if not rows * keys:
        return
    queries, codes = (tensor(one).view(CODES[dialect]).float()[None] for one, dialect in ((q, q_dialect), (k, k_dialect)))
    scorer = SimpleNamespace(softmax_scale=1.0, weights_scaling=1.0, weights_proj=lambda hidden: hidden)
    scores = v4.DeepseekV4IndexerScorer.forward(scorer, queries, codes, tensor(weights)[None])[0] * tensor(k_scale).reshape(-1)
    columns = torch.arange(keys)
    outside = (columns < tensor(starts).reshape(-1, 1)) | (columns >= tensor(ends).reshape(-1, 1))
    tensor(logits)[:, :keys].copy_(scores.masked_fill(outside, float("-inf")))


@on_cpu("sparse_mla_prefill", numerics={**GEMM, "probability": "f32"}, contract={"outputs": "out"})
def v4_attention(q, kv, kv_indices, kv_lengths, kv_indptr, heads, rows, kv_rows, key_dims, candidates_width, sm_scale, attn_sink, out):
    need(key_dims == 512, "keys that are the values only")
    need(attn_sink is not None, "attention with sinks only")
    need(kv_indptr is None, "dense indices only")
    module = SimpleNamespace(num_key_value_groups=heads, sinks=tensor(attn_sink), training=False)
    for row in range(rows):
        chosen = tensor(kv_indices).reshape(rows, candidates_width)[row].long()
        if kv_lengths is not None:
            chosen = chosen[: int(tensor(kv_lengths).reshape(-1)[row])]
        chosen = chosen[(chosen >= 0) & (chosen < kv_rows)]
        keys = tensor(kv)[chosen].float()[None, None]
        query = tensor(q).reshape(rows, heads, key_dims)[row].float()[None, :, None]
        result = v4.eager_attention_forward(module, query, keys, keys, None, sm_scale)[0]
        tensor(out).reshape(rows, heads, 512)[row].copy_(result[0, 0])
