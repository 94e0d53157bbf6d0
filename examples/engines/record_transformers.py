# SPDX-License-Identifier: Apache-2.0
"""Records tiny DeepSeek models of transformers (deepseek_v4, deepseek_v32), and judges what they computed.

    pip install transformers==5.23.0 torch==2.11.0
    python record_transformers.py recording --judge

The models have random weights and all kinds of layers, and run in bf16 on the CPU: three requests, prompts
longer than the indexer's top-k, then decode steps. `v4_taps` and `v32_taps` record any other model of these
two kinds with plumb_kernels.traces.record. What these models promise of an op is in plumb's profile of
transformers (trace/profiles/transformers.toml).
"""

import argparse
import os
import subprocess
import sys

import torch
from plumb_kernels import traces
from transformers import DynamicCache
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as v4
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as v32


def rows(tensor, dims=1):
    """All leading dimensions joined into one."""
    return tensor.reshape(-1, *tensor.shape[tensor.dim() - dims :])


def bf16_constant(weight):
    """The weight in bf16 if that is exact. V4 keeps weights of norms in fp32."""
    rounded = weight.detach().to(torch.bfloat16)
    return traces.Described(rounded if torch.equal(rounded.to(weight.dtype), weight) else weight, constant=True)


def norm(recorder, cls, rounding):
    def describe(module, x):
        return {
            "op": "rms_norm", **recorder.place_of(module),
            "before": {"x": rows(x), "weight": bf16_constant(module.weight)},
            "scalars": {"eps": module.variance_epsilon, "rounding": rounding},
        }  # fmt: skip

    return traces.Tap(cls, "forward", describe, lambda result, *_: {"out": rows(result)})


class Rotary:
    """V4's RoPE of heads of 512 dims, together with the norm of the query heads that precedes it."""

    def __init__(self, recorder):
        self.recorder, self.place, self.normalised = recorder, {}, None

    def taps(self):
        return [
            traces.Tap(v4.DeepseekV4Attention, "forward", self.begin_attention),
            traces.Tap(v4.DeepseekV4UnweightedRMSNorm, "forward", observe=self.keep_norm),
            traces.Tap(v4, "apply_rotary_pos_emb", self.describe, self.after),
        ]

    def begin_attention(self, module, *_, **__):
        place = self.recorder.place_of(module)
        self.place = {"name": place["name"] + ".apply_rotary_pos_emb", "layer": place["layer"]}

    def keep_norm(self, result, module, x):
        self.normalised = (result, x, module.eps)

    @staticmethod
    def heads(x):
        return rows(x.transpose(1, 2), 2)  # tokens before heads

    def describe(self, x, cos, sin):
        if x.shape[-1] != 512:  # the indexer's
            return {**self.place, "name": "apply_rotary_pos_emb", "before": {"x": x, "cos": cos, "sin": sin}}
        table = [part.expand(x.shape[0], -1, -1).reshape(-1, 32).float() for part in (cos, sin)]
        made = {**self.place, "before": {"positions": torch.arange(len(table[0]))}}
        if self.normalised and x is self.normalised[0]:
            _, q, eps = self.normalised
            made["before"] |= {"q": self.heads(q), "cos_sin": torch.cat(table, -1)}
            return {**made, "op": "q_head_rms_norm_rope", "scalars": {"eps": eps}}
        # Rotation by -sin is the inverse of rotation by sin.
        made["before"] |= {"x": self.heads(x), "cos_sin": torch.cat([table[0], -table[1]], -1)}
        return {**made, "op": "inverse_rope", "scalars": {"placement": "copy"}}

    def after(self, result, x, *_):
        return {"out": self.heads(result) if x.shape[-1] == 512 else result}


class Compressors:
    """V4's compressors, of the main caches and of the indexer, for one request at a time.

    A call has the raw projections of all positions of its windows. They are kept here, from the calls of the cache:
    what the model itself carries from step to step (rests of groups, first halves for the overlap) is under test.
    """

    def __init__(self, recorder):
        self.recorder, self.inside, self.projections, self.closed = recorder, [], {}, {}

    def taps(self):
        modules = (v4.DeepseekV4HCACompressor, v4.DeepseekV4CSACompressor, v4.DeepseekV4Indexer)
        return [
            *(traces.Tap(module, "forward", lambda module, *_, **__: self.inside.append(module), observe=lambda *_, **__: self.inside.pop())
              for module in modules),
            traces.Tap(v4.DeepseekV4HCACache, "store_compression_weights", observe=self.keep),
            traces.Tap(v4.DeepseekV4HCACache, "update_compressor_states", observe=self.record),
        ]  # fmt: skip

    def keep(self, _, cache, name, kv, gate):
        """kv and gate [1, tokens, width] of new tokens."""
        state = torch.cat([kv[0], gate[0]], -1)
        earlier = self.projections.get((cache, name))
        self.projections[cache, name] = state if earlier is None else torch.cat([earlier, state])

    def record(self, _, cache, name, compressed):
        """compressed [1, new states, dim]."""
        states, first = compressed.shape[1], self.closed.get((cache, name), 0)
        if not states:
            return
        self.closed[cache, name] = first + states
        module, ratio = self.inside[-1], cache.compress_rate
        overlap = int(module.kv_proj.out_features == 2 * module.head_dim)
        groups = torch.arange(max(first - overlap, 0), first + states)
        of_groups = self.projections[cache, name][groups[0] * ratio : (groups[-1] + 1) * ratio]
        table = torch.zeros(first + states, dtype=torch.int32)
        table[groups] = torch.arange(len(groups), dtype=torch.int32)
        ends = (torch.arange(first, first + states) + 1) * ratio - 1
        cos, sin = module.rotary_emb(compressed, position_ids=torch.arange(ends[-1] + 1)[None], layer_type=module.rope_layer_type)
        stored = compressed.contiguous().view(torch.uint8).reshape(1, -1)
        place = self.recorder.place_of(module)
        described = {
            "op": "compress_norm_rope_insert", **place, "name": place["name"] + ".compress",
            "before": {
                "states": of_groups.contiguous().view(torch.uint8).reshape(len(groups), -1), "block_table": table[None],
                "token_to_req": torch.zeros(states, dtype=torch.int32), "positions": ends,
                "state_slot_mapping": table[ends // ratio].long() * ratio + ends % ratio, "ape": module.position_bias.detach().float(),
                "weight": bf16_constant(module.kv_norm.weight), "cos_sin": torch.cat([cos[0], sin[0]], -1).float(),
                "slot_mapping": torch.arange(states), "cache": torch.zeros_like(stored),
            },
            "scalars": {
                "eps": module.kv_norm.variance_epsilon, "ratio": ratio, "overlap": overlap, "state_rows": ratio, "page": states,
                "form": "raw_bf16", "layout": "rows",
            },
        }  # fmt: skip
        self.recorder.call(described, {"cache": stored})


def hyper_connection(recorder):
    def describe(module, streams):
        return {
            "op": "mhc_pre", **recorder.place_of(module),
            "before": {"residual": rows(streams, 2), "fn": module.fn, "scale": module.scale, "base": module.base},
            "scalars": {
                "rms_eps": module.input_norm.eps, "pre_eps": module.hc_eps, "sinkhorn_eps": module.hc_eps,
                "sinkhorn_iterations": module.hc_sinkhorn_iters,
            },
        }  # fmt: skip

    def after(result, *_):
        post, comb, layer_input = result
        return {"post": rows(post), "comb": rows(comb, 2), "layer_input": rows(layer_input)}

    return traces.Tap(v4.DeepseekV4HyperConnection, "forward", describe, after)


def hyper_head(recorder):
    def describe(module, streams):
        return {
            "op": "hc_head", **recorder.place_of(module),
            "before": {"hidden_states": rows(streams, 2), "fn": module.hc_fn, "scale": module.hc_scale, "base": module.hc_base},
            "scalars": {"rms_eps": module.input_norm.eps, "hc_eps": module.eps},
        }  # fmt: skip

    return traces.Tap(v4.DeepseekV4HyperHead, "forward", describe, lambda result, *_: {"out": rows(result)})


def attention(recorder):
    """V4's attention of one request over window and compressed keys, which are also the values."""

    def describe(module, q, key, value, mask, *, scaling, **_):
        tokens, keys = q.shape[2], key.shape[2]
        seen = torch.ones(tokens, keys, dtype=torch.bool) if mask is None else mask[0, 0] == 0
        width = int(seen.sum(-1).max())
        place = torch.argsort(seen.int(), dim=-1, descending=True, stable=True)[:, :width].int()
        chosen = torch.where(seen.gather(-1, place.long()), place, -1)
        return {
            "op": "sparse_mla_prefill", **recorder.place_of(module), "name": recorder.place_of(module)["name"] + ".attention",
            "before": {"q": rows(q.transpose(1, 2), 2)[:, None], "kv": key[0, 0], "kv_indices": chosen[:, None], "attn_sink": module.sinks.detach().float()},
            "scalars": {"sm_scale": scaling, "outputs": "out"},
        }  # fmt: skip

    return traces.Tap(v4, "eager_attention_forward", describe, lambda result, *_, **__: {"out": rows(result[0], 2)})


def top_k(recorder, place, scores, ends, indices):
    """Records rows with more than k columns. Shorter rows differ: plumb's op keeps column order, torch sorts by value."""
    scores, indices = rows(scores), rows(indices).int()
    ends = ends.reshape(-1).int().clamp(max=scores.shape[-1])
    long = ends > indices.shape[-1]
    before = {"logits": scores[long], "row_starts": torch.zeros_like(ends[long]), "row_ends": ends[long]}
    if long.any():
        recorder.call({"op": "top_k_per_row_prefill", **place, "before": before}, {"indices": indices[long]})


def v4_selection(recorder):
    """In V4 the indexer masks the scores, then selects."""
    scores = []

    def choose(result, module, hidden, q, position_ids, *_):
        ends = (position_ids + 1) // module.compress_rate
        top_k(recorder, recorder.place_of(module), scores.pop(), ends.expand(result.shape[:2]), result)

    return [
        traces.Tap(v4.DeepseekV4IndexerScorer, "forward", observe=lambda result, *_: scores.append(result)),
        traces.Tap(v4.DeepseekV4Indexer, "forward", observe=choose),
    ]


def v32_selection(recorder):
    """V3.2's indexer does not return its scores, so they are taken from its call of topk."""
    inside = []

    def chosen(result, tensor, k, dim=-1, **_):
        if inside:
            ends = torch.full(tensor.shape[:-1], tensor.shape[-1])
            top_k(recorder, inside[-1], tensor.float(), ends, result.indices)

    return [
        traces.Tap(v32.DeepseekV32Indexer, "forward", lambda module, *_, **__: inside.append(recorder.place_of(module)), observe=lambda *_, **__: inside.pop()),
        traces.Tap(torch.Tensor, "topk", observe=chosen),
    ]


def v32_router(recorder):
    def routed(result, module, hidden):
        logits, weights, ids = result
        described = {
            "op": "grouped_topk", **recorder.place_of(module),
            "before": {"logits": logits, "bias": module.e_score_correction_bias},
            "scalars": {
                "n_group": module.num_group, "topk_group": module.topk_group, "renormalize": int(module.norm_topk_prob),
                "routed_scaling_factor": module.routed_scaling_factor,
            },
        }  # fmt: skip
        recorder.call(described, {"weights": weights.float(), "ids": ids.int()})

    return traces.Tap(v32.DeepseekV32TopkRouter, "forward", observe=routed)


def others(recorder, classes):
    """Calls that plumb has no op for. They are recorded so that a first NaN is found there too."""

    def tap(cls):
        def after(result, *_, **__):
            return {"out": result[0] if isinstance(result, tuple) else result}

        return traces.Tap(cls, "forward", lambda module, x, *_, **__: {**recorder.place_of(module), "name": cls.__name__, "before": {"x": x}}, after)

    return [tap(cls) for cls in classes]


def v4_taps(recorder):
    return [
        norm(recorder, v4.DeepseekV4RMSNorm, "once"), hyper_connection(recorder), hyper_head(recorder),
        *Rotary(recorder).taps(), *Compressors(recorder).taps(), attention(recorder), *v4_selection(recorder), *others(recorder, [v4.DeepseekV4MLP, v4.DeepseekV4Experts]),
    ]  # fmt: skip


def v32_taps(recorder):
    return [
        norm(recorder, v32.DeepseekV32RMSNorm, "twice"), v32_router(recorder),
        *v32_selection(recorder), *others(recorder, [v32.DeepseekV32MLP, v32.DeepseekV32Experts]),
    ]  # fmt: skip


TINY = {"vocab_size": 97, "hidden_size": 128, "moe_intermediate_size": 32, "num_attention_heads": 4, "q_lora_rank": 64,
        "n_routed_experts": 16, "num_experts_per_tok": 6, "index_n_heads": 4, "index_topk": 8, "attn_implementation": "eager"}  # fmt: skip


def tiny_v4():
    kinds = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"]
    config = v4.DeepseekV4Config(
        **TINY, num_hidden_layers=4, head_dim=512, sliding_window=16, o_groups=2, o_lora_rank=32, index_head_dim=128,
        layer_types=kinds, mlp_layer_types=["hash_moe", "moe", "moe", "moe"],
        compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
    )  # fmt: skip
    return v4.DeepseekV4ForCausalLM(config)


def tiny_v32():
    config = v32.DeepseekV32Config(
        **TINY, num_hidden_layers=4, intermediate_size=64, num_key_value_heads=4, kv_lora_rank=64, qk_nope_head_dim=32,
        qk_rope_head_dim=32, v_head_dim=32, index_head_dim=64, n_group=4, topk_group=2, first_k_dense_replace=1,
    )  # fmt: skip
    return v32.DeepseekV32ForCausalLM(config)


def randomised(model):
    """Random weights of realistic size, in bf16. Hyper-connections and weights of norms are in fp32."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape)
        if "norm" in name:
            values = 1 + 0.2 * values
        elif parameter.dim() > 1:
            values = values / parameter.shape[-1] ** 0.5
        in_fp32 = "_hc." in name or "hc_head" in name or ("norm" in name and "DeepseekV4" in type(model).__name__)
        parameter.data = values.to(torch.bfloat16).to(torch.float32 if in_fp32 else torch.bfloat16)
    for name, buffer in model.named_buffers():
        if name.endswith("tid2eid"):
            buffer.copy_(torch.stack([torch.randperm(16)[:6] for _ in range(len(buffer))]))
        elif name.endswith("e_score_correction_bias"):
            buffer.copy_(0.1 * torch.randn(buffer.shape))
    return model.eval()


MODELS = {"v4": (tiny_v4, v4_taps), "v32": (tiny_v32, v32_taps)}


@torch.no_grad()
def record(folder, kind, seed=0, decode_steps=8, requests=3, before=lambda model: None):
    """Records one tiny model. `before(model)` may change it first."""
    torch.manual_seed(seed)
    make, taps = MODELS[kind]
    model = randomised(make())
    before(model)
    import transformers

    provenance = {"engine": "transformers", "version": transformers.__version__, "model": kind, "seed": str(seed)}
    with traces.record(folder, taps, provenance=provenance) as recorder:
        recorder.name_modules(model)
        caches = [DynamicCache(config=model.config) for _ in range(requests)]
        tokens = [torch.randint(0, 97, (1, 40 + 7 * request)) for request in range(requests)]
        for _ in range(decode_steps + 1):
            with recorder.step():
                for request in range(requests):
                    logits = model(input_ids=tokens[request], past_key_values=caches[request], use_cache=True).logits
                    tokens[request] = logits[:, -1:].argmax(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a new folder: one recording per model and seed in it")
    parser.add_argument("--model", choices=MODELS, action="append", help="default: both")
    parser.add_argument("--seeds", type=int, default=1, help="how many models of each kind")
    parser.add_argument("--judge", action="store_true", help="then judges each recording with $PLUMB_PROGRAM, or plumb")
    arguments = parser.parse_args()
    codes = []
    for kind in arguments.model or MODELS:
        for seed in range(arguments.seeds):
            folder = os.path.join(arguments.folder, f"{kind}-{seed}")
            record(folder, kind, seed)
            if arguments.judge:
                codes.append(subprocess.run([os.environ.get("PLUMB_PROGRAM", "plumb"), "judge", folder]).returncode)
    return max(codes, default=0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
