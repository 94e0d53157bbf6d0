# SPDX-License-Identifier: Apache-2.0
"""Taps with which plumb_kernels.traces records vLLM 0.22.1's DeepSeek-V4 model on a GPU (vllm_gpu_engine.py).

Known ops have plumb's names. Other functions (fused_inv_rope_fp8_quant, the grouped product of the output, experts) have
only a name: plumb looks for NaN in their results, and shadow steps compare them.
"""

import importlib

import torch
from plumb_kernels import traces

SUMS = {"chains": 32, "function_ulp": 4}
# FlashMLA: bf16 products in the matrix units of sm90, p is rounded to bf16.
FLASHMLA = {"product": "bf16", "probability": "bf16", "chains": 1, "function_ulp": 4, "sum_unit": "sm90_bf16"}
# DeepGEMM: wgmma on tf32, which takes the upper bits of fp32 operands, and on e4m3.
TF32 = {"product": "tf32_truncated", "chains": 1, "function_ulp": 4, "sum_unit": "sm90_bf16", "sum_step": 8}
FP8 = {"chains": 1, "function_ulp": 4, "sum_unit": "sm90_fp8"}
FEW_TOKENS = 16  # up to this number a TileLang kernel computes the mixes in fp32, beyond it DeepGEMM in tf32
PLANS = {"block_n": 64, "fixed_overhead": 5}  # FlashMLA's planner on sm90


def as_bytes(cache):
    """A view of cache blocks with one row of bytes per block. Blocks of 584 bytes per token are padded to a multiple of 576."""
    data = cache.view(torch.uint8).flatten(1)
    size = data.shape[1]
    if size % 584 == 0:
        size = -(-size // 576) * 576
    return data.as_strided((data.shape[0], size), data.stride())


def blocks_of(slots, page):
    """Before a step: the blocks that contain the slots. A call without slots has block 0, which must not change."""
    return lambda: torch.unique(slots[slots >= 0] // page).tolist() or [0]


def blocks_in(table):
    return lambda: torch.unique(table.clamp(min=0)).tolist()


def blocks_of_windows(table, token_to_req, positions, window, rows):
    """Before a step: blocks of the last `window` positions of each token."""

    def numbers():
        columns = (positions[:, None] - torch.arange(window, device=positions.device)).clamp(min=0) // rows
        requests = token_to_req.long().clamp(max=len(table) - 1)  # padding has numbers of earlier steps
        return torch.unique(table[requests[:, None], columns].clamp(min=0)).tolist()

    return numbers


def written(logits, lengths):
    """Logits, and 0 behind the keys: the kernel leaves these elements unwritten, and shadow steps must not compare them."""
    return logits.masked_fill(torch.arange(logits.shape[1], device=logits.device) >= lengths.reshape(-1, 1), 0)


class Taps:
    """Functions outside of modules get the name of the layer that is running."""

    def __init__(self, recorder):
        self.recorder, self.layers, self.tables = recorder, [], {}
        self.decode = None

    def place(self, function):
        layer = self.layers[-1] if self.layers else -1
        return {"name": f"layers.{layer}.{function}" if layer >= 0 else function, "layer": layer}

    def enter(self, number):
        def describe(module, *_, **__):
            self.layers.append(number(module))

        return describe

    def leave(self, *_, **__):
        self.layers.pop()

    @staticmethod
    def table(cos_sin):
        return traces.Described(cos_sin, constant=True)

    @staticmethod
    def cache(cache, slots, page):
        return traces.Described(as_bytes(cache), blocks=blocks_of(slots, page), at_most=64)

    def unknown(self, name, inputs, outputs):
        """A tap's two functions for an op that plumb does not know. Both get a function of the arguments."""
        return lambda *a, **n: {**self.place(name), "name": name, "before": inputs(*a, **n)}, outputs

    def norm(self, module, x, residual=None):
        if residual is not None:
            return None
        return {"op": "rms_norm", "name": "norm", "numerics": SUMS, "before": {"x": x, "weight": module.weight},
                "scalars": {"eps": module.variance_epsilon, "rounding": "once"}}  # fmt: skip

    def q_kv_norm(self, q, kv, q_weight, kv_weight, eps):
        return {"op": "q_kv_rms_norm", **self.place("q_kv_norm"), "numerics": SUMS, "scalars": {"eps": eps, "rounding": "once"},
                "before": {"q": q, "kv": kv, "q_weight": q_weight, "kv_weight": kv_weight}}  # fmt: skip

    def _mixes(self, rms_eps, pre_eps, sinkhorn_eps, post_mult, iterations, norm_eps):
        return {"rms_eps": rms_eps, "norm_eps": norm_eps, "pre_eps": pre_eps, "sinkhorn_eps": sinkhorn_eps, "post_mult": post_mult,
                "sinkhorn_iterations": iterations}  # fmt: skip

    def mhc_pre(self, residual, fn, scale, base, *numbers):
        *mixes, _splits, norm_weight, norm_eps = numbers
        return {"op": "mhc_pre", **self.place("mhc_pre"), "numerics": TF32, "scalars": {**self._mixes(*mixes, norm_eps), "scaled": "product"},
                "before": {"residual": residual, "fn": fn, "scale": scale, "base": base, "norm_weight": norm_weight}}  # fmt: skip

    def mhc_post_pre(self, x, residual, post, comb, fn, scale, base, *numbers):
        *mixes, _splits, _tile, norm_weight, norm_eps = numbers
        return {
            "op": "mhc_fused_post_pre", **self.place("mhc_post_pre"), "numerics": SUMS if len(x) <= FEW_TOKENS else TF32,
            "scalars": {**self._mixes(*mixes, norm_eps), "unrounded_rows": str(FEW_TOKENS), "gemm_operand": "fp32"},
            "before": {"x": x, "residual": residual, "post_before": post[..., 0], "comb_before": comb, "fn": fn, "scale": scale, "base": base,
                       "norm_weight": norm_weight},
        }  # fmt: skip

    def hc_head(self, x, fn, scale, base, out, _hidden, rms_eps, hc_eps, _streams):
        return {"op": "hc_head", "name": "hc_head", "numerics": SUMS, "scalars": {"rms_eps": rms_eps, "hc_eps": hc_eps, "rounding": "once"},
                "before": {"hidden_states": x, "fn": fn, "scale": scale, "base": base}}  # fmt: skip

    def q_norm_rope(self, module, q, kv, positions, metadata):
        if not isinstance(metadata, dict):
            return None
        return {
            "op": "q_head_rms_norm_rope", **self.place("q_norm_rope"), "numerics": SUMS, "scalars": {"eps": module.eps, "rounding": "once", "placement": "copy"},
            "before": {"q": q, "positions": positions, "cos_sin": self.table(module.rotary_emb.cos_sin_cache)},
        }  # fmt: skip

    def insert(self, q, kv, cache, slots, positions, cos_sin, heads, eps, page):
        """The fused kernel's keys. A second launch into a cache of its own gives the rotated keys."""
        tokens = len(slots)
        own = torch.zeros(-(-tokens // page), cache.stride(0), dtype=torch.uint8, device=cache.device)
        self.fused(q, kv, own[:, : cache.shape[1]], torch.arange(tokens, device=cache.device), positions, cos_sin, heads, eps, page)
        rotated = own[:, : page * 576].reshape(-1, 576)[:tokens, 448:].view(torch.bfloat16)
        key = torch.cat([kv[:tokens, :448], rotated], 1)
        if id(cos_sin) not in self.tables:
            half = cos_sin.shape[1] // 2
            self.tables[id(cos_sin)] = torch.cat([cos_sin[:, :half], -cos_sin[:, half:]], 1)
        # Rotation by sin is the inverse of rotation by -sin.
        self.recorder.call(
            {"op": "inverse_rope", **self.place("kv_rope"), "numerics": SUMS, "scalars": {"placement": "copy"},
             "before": {"x": kv[:tokens, None], "positions": positions[:tokens], "cos_sin": self.table(self.tables[id(cos_sin)])}},
            {"out": key[:, None]},
        )  # fmt: skip
        return {
            "op": "quantize_and_insert_k_cache", **self.place("insert"), "numerics": SUMS, "scalars": {"page": page, "floor": "1e-4", "pad": "zero", "skip": "negative"},
            "before": {"kv": key, "slot_mapping": slots, "cache": self.cache(cache.view(len(cache), page, 584), slots, page)},
        }  # fmt: skip

    def save(self, *, kv, score, ape, positions, state_cache, slot_mapping, block_size, **_):
        return {
            "op": "save_partial_states", **self.place(f"save_partial_states.{kv.shape[-1]}"), "numerics": SUMS, "scalars": {"state_rows": block_size, "form": "biased"},
            "before": {"kv": kv, "score": score, "ape": ape, "positions": positions, "slot_mapping": slot_mapping,
                       "cache": self.cache(state_cache, slot_mapping, block_size)},
        }  # fmt: skip

    def compress(self, *, state_cache, num_actual, token_to_req_indices, positions, slot_mapping, block_table, block_size, cos_sin_cache, kv_cache,
                 k_cache_metadata, head_dim, compress_ratio, overlap, rms_norm_weight, rms_norm_eps, **_):  # fmt: skip
        positions, slots = positions[:num_actual], k_cache_metadata.slot_mapping[:num_actual]
        # The kernel reads as many numbers, and the view ends in front of padded tokens in an eager step with full graphs' metadata.
        requests = token_to_req_indices.as_strided((num_actual,), token_to_req_indices.stride())
        window = blocks_of_windows(block_table, requests, positions, compress_ratio * (1 + overlap), block_size)
        return {
            "op": "compress_norm_rope_insert", **self.place(f"compress.{head_dim}"), "numerics": SUMS,
            "before": {
                "states": traces.Described(as_bytes(state_cache), blocks=window, at_most=160), "block_table": block_table,
                "token_to_req": requests, "positions": positions, "state_slot_mapping": slot_mapping, "weight": rms_norm_weight,
                "cos_sin": self.table(cos_sin_cache), "slot_mapping": slots, "cache": self.cache(kv_cache, slots, kv_cache.shape[1]),
            },
            "scalars": {"eps": rms_norm_eps, "ratio": compress_ratio, "overlap": int(overlap), "state_rows": block_size, "page": kv_cache.shape[1],
                        "form": "biased", "layout": "main" if head_dim == 512 else "indexer", "floor": "amax", "pad": "zero"},
        }  # fmt: skip

    def indexer_q(self, positions, q, cos_sin, weights, softmax_scale, head_scale, use_fp4=False):
        return {
            "op": "indexer_q_rope_quant", **self.place("indexer_q"), "numerics": SUMS,
            "before": {"q": q, "positions": positions, "cos_sin": self.table(cos_sin), "weights": weights},
            "scalars": {"softmax_scale": softmax_scale, "head_scale": head_scale, "rope_offset": 64, "rope_pairs": "interleaved", "floor": "1e-4",
                        "scale_form": "pow2", "rotated_rounding": "bf16", "hadamard": "none"},
        }  # fmt: skip

    def logits(self, q, cache, weights, lengths, table, _schedule, *, max_model_len, clean_logits):
        return {
            "op": "fp8_paged_mqa_logits", **self.place("logits"), "numerics": FP8,
            "before": {"q": q[0], "weights": weights, "context_lens": lengths, "block_table": table,
                       "cache": traces.Described(as_bytes(cache), blocks=blocks_in(table), at_most=64)},
            "scalars": {"page": cache.shape[1], "length": max_model_len, "clean": 0, "context_lens_dims": lengths.dim(), "layout": "planar", "scaled": "product"},
        }  # fmt: skip

    def top_k(self, logits, lengths, indices, _workspace, k, _longest):
        return {"op": "top_k_per_row_decode", **self.place("top_k"), "before": {"logits": written(logits, lengths), "seq_lens": lengths}}

    def global_top_k(self, indices, token_to_req, table, page, valid):
        return {
            "op": "compute_global_topk_indices_and_lens", **self.place("global_top_k"), "scalars": {"block_size": page, "compaction": "none", "bounds": "unchecked"},
            "before": {"topk_indices": indices, "token_to_req": token_to_req[: len(indices), None], "is_valid_token": valid.view(torch.uint8)[:, None],
                       "block_table": table},
        }  # fmt: skip

    def enter_decode(self, *, swa_metadata, attn_metadata, **_):
        self.decode = swa_metadata, attn_metadata

    def attention(self, *, q, k_cache, indices, topk_length, softmax_scale, attn_sink, extra_k_cache, extra_indices_in_kvcache, extra_topk_length, **_):
        main = traces.Described(as_bytes(k_cache.squeeze(2)), blocks=blocks_of(indices, k_cache.shape[1]), at_most=64)
        before = {"q": q, "main_cache": main, "main_indices": indices, "main_lengths": topk_length, "attn_sink": attn_sink}
        scalars = {"sm_scale": softmax_scale, "page": k_cache.shape[1], "layout": "v4", "form": "dense", "plan": "none"}
        if extra_k_cache is not None:
            before |= {
                "extra_cache": traces.Described(as_bytes(extra_k_cache.squeeze(2)), blocks=blocks_in(self.decode[1].block_table), at_most=128),
                "extra_indices": extra_indices_in_kvcache.view(len(q), 1, -1), "extra_lengths": extra_topk_length,
            }  # fmt: skip
            scalars["extra_page"] = extra_k_cache.shape[1]
        return {"op": "sparse_mla_decode", **self.place("attention"), "numerics": FLASHMLA, "before": before, "scalars": scalars}

    def plan(self, _, *, indices, topk_length, extra_indices_in_kvcache, extra_topk_length, tile_scheduler_metadata, **__):
        """FlashMLA's plan, which the first call of a kind makes for all layers of this kind."""
        tiles, splits = tile_scheduler_metadata.tile_scheduler_metadata.clone(), tile_scheduler_metadata.num_splits
        tiles[:, 7] = 0  # left unwritten by FlashMLA
        before = {"topk_length": topk_length[:, None]}
        if extra_topk_length is not None:
            before["extra_topk_length"] = extra_topk_length[:, None]
        extra = 0 if extra_indices_in_kvcache is None else extra_indices_in_kvcache.shape[-1]
        self.recorder.call(
            {"op": "get_decoding_sched_meta", **self.place("plan"), "before": before,
             "scalars": {"topk": indices.shape[-1], "extra_topk": extra, "num_sm_parts": len(tiles), **PLANS}},
            {"tile_scheduler_metadata": tiles, "num_splits": splits[:, None]},
        )  # fmt: skip

    def prefill(self, *, q, kv, indices, sm_scale, attn_sink, topk_length, out):
        return {
            "op": "sparse_mla_prefill", **self.place("prefill"), "numerics": FLASHMLA, "scalars": {"sm_scale": sm_scale, "form": "dense"},
            "before": {"q": q[:, None], "kv": kv.view(-1, kv.shape[-1]), "kv_indices": indices, "kv_lengths": topk_length, "attn_sink": attn_sink},
        }  # fmt: skip

    def router(self, weights, ids, _, logits, renormalize, scale, bias, tokens, table):
        scalars = {"routed_scaling_factor": scale, "renormalize": int(renormalize), "softplus": "threshold_20", "softplus_small": "log1p", "zero_sum": "one"}
        described = {**self.place("router"), "numerics": SUMS, "scalars": scalars}
        if table is None:
            return {"op": "sqrt_softplus_topk", **described, "before": {"logits": logits, "bias": bias}}
        # The kernel writes all elements. Before the call they are any memory, which shadow steps must not compare.
        before = {"logits": logits, "input_ids": tokens, "tid2eid": table, "weights": torch.zeros_like(weights), "ids": torch.zeros_like(ids)}
        return {"op": "hash_routing", **described, "before": before, "scalars": {**scalars, "vocabulary": len(table)}}


def taps(recorder):
    importlib.import_module("vllm.model_executor.kernels.mhc")
    from vllm import _custom_ops
    from vllm.model_executor.layers import sparse_attn_indexer
    from vllm.model_executor.layers.layernorm import RMSNorm
    from vllm.models.deepseek_v4 import attention, compressor
    from vllm.models.deepseek_v4.nvidia import flashmla, model

    seen, Tap, ops = Taps(recorder), traces.Tap, torch.ops
    seen.fused = ops._C.fused_deepseek_v4_qnorm_rope_kv_rope_quant_insert
    wrapper = attention.DeepseekV4MultiHeadLatentAttentionWrapper
    number = lambda module: int(module.prefix.split("layers.")[1].split(".")[0])
    cache = seen.cache
    return [
        Tap(model.DeepseekV4DecoderLayer, "forward", seen.enter(lambda layer: layer.attn.layer_id), observe=seen.leave),
        Tap(wrapper, "attention_impl", seen.enter(number), observe=seen.leave),
        Tap(attention.DeepseekV4MLAAttention, "forward", seen.enter(number), observe=seen.leave),
        Tap(RMSNorm, "forward", seen.norm, lambda out, *_: {"out": out}),
        Tap(attention, "fused_q_kv_rmsnorm", seen.q_kv_norm, lambda out, *_: {"out_q": out[0], "out_kv": out[1]}),
        Tap(ops.vllm, "mhc_pre_tilelang", seen.mhc_pre, lambda out, *_: {"post": out[0][..., 0], "comb": out[1], "layer_input": out[2]}),
        Tap(ops.vllm, "mhc_fused_post_pre_tilelang", seen.mhc_post_pre,
            lambda out, *_: {"residual_out": out[0], "post": out[1][..., 0], "comb": out[2], "layer_input": out[3]}),
        Tap(ops.vllm, "hc_head_fused_kernel_tilelang", seen.hc_head, lambda _, x, fn, scale, base, out, *__: {"out": out}),
        Tap(wrapper, "_fused_qnorm_rope_kv_insert", seen.q_norm_rope, lambda out, *_: {"out": out}),
        Tap(ops._C, "fused_deepseek_v4_qnorm_rope_kv_rope_quant_insert", seen.insert,
            lambda _, q, kv, to, slots, p, t, h, e, page: {"cache": cache(to.view(len(to), page, 584), slots, page)}),
        Tap(compressor, "save_partial_states", seen.save,
            lambda _, *, state_cache, slot_mapping, block_size, **__: {"cache": cache(state_cache, slot_mapping, block_size)}),
        Tap(compressor, "compress_norm_rope_store_triton", seen.compress,
            lambda _, *, kv_cache, k_cache_metadata, num_actual, **__: {
                "cache": cache(kv_cache, k_cache_metadata.slot_mapping[:num_actual], kv_cache.shape[1])}),
        Tap(attention, "fused_indexer_q_rope_quant", seen.indexer_q, lambda out, *_, **__: {"q_out": out[0], "weights_out": out[1]}),
        Tap(sparse_attn_indexer, "fp8_fp4_paged_mqa_logits", seen.logits,
            lambda logits, q, cache, weights, lengths, *_, **__: {"logits": written(logits, lengths)}),
        Tap(ops._C, "persistent_topk", seen.top_k, lambda _, logits, lengths, indices, *__: {"indices": indices}),
        Tap(flashmla, "compute_global_topk_indices_and_lens", seen.global_top_k, lambda out, *_: {"global_indices": out[0], "lens": out[1][:, None]}),
        Tap(flashmla.DeepseekV4FlashMLASparseImpl, "_forward_decode", seen.enter_decode),
        Tap(flashmla, "flash_mla_with_kvcache", seen.attention, lambda result, **_: {"out": result[0], "lse": result[1]}, seen.plan),
        Tap(flashmla, "flash_mla_sparse_fwd", seen.prefill, lambda result, **_: dict(zip(("out", "max_logits", "lse"), result))),
        Tap(_custom_ops, "topk_hash_softplus_sqrt", seen.router, lambda _, weights, ids, *__: {"weights": weights, "ids": ids}),
        Tap(attention, "fused_inv_rope_fp8_quant", *seen.unknown("inv_rope_quant", lambda o, p, *_, **__: {"o": o, "positions": p},
            lambda out, *_, **__: {"codes": out[0], "scales": out[1]})),
        Tap(ops.vllm, "deepseek_v4_fp8_einsum", *seen.unknown("output_product", lambda a, s, *_: {"a": a, "scales": s}, lambda _, a, s, w, t, out, *__: {"z": out})),
        Tap(model.DeepseekV4MoE, "forward", *seen.unknown("experts", lambda _, x, ids=None: {"x": x}, lambda out, *_: {"out": out})),
    ]  # fmt: skip
