# SPDX-License-Identifier: Apache-2.0
"""vLLM 0.22.1's own engine with a tiny DeepSeek-V4 on a Hopper GPU, from an unpacked wheel.

start() returns vLLM's LLM object. vLLM imports more packages than this model uses. Those of DUMMIES need not be installed.
Without nvidia-cutlass-dsl, vLLM's Triton kernels replace its CuTe kernels.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import sys
import tempfile
import textwrap
import types

import torch
from vllm_files import Anything

DUMMIES = ("cv2", "humming", "llguidance", "lmformatenforcer", "mistral_common", "outlines_core", "xgrammar")
# By mode: what vLLM captures. "pieces": its first model runner, graphs that are broken at attention. "v2": its second model
# runner, a full graph of a decode step.
GRAPHS = {"eager": "NONE", "pieces": "PIECEWISE", "v2": "FULL_DECODE_ONLY"}
CAPTURED_REQUESTS = 8

TINY = {
    "model_type": "deepseek_v4", "architectures": ["DeepseekV4ForCausalLM"], "vocab_size": 1024, "hidden_size": 1024, "moe_intermediate_size": 256,
    "num_hidden_layers": 4, "compress_ratios": [0, 4, 128, 4], "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512,
    "q_lora_rank": 512, "o_lora_rank": 256, "o_groups": 8, "qk_rope_head_dim": 64, "sliding_window": 128, "index_n_heads": 64,
    "index_head_dim": 128, "index_topk": 512, "n_routed_experts": 256, "num_experts_per_tok": 6, "n_shared_experts": 1, "num_hash_layers": 1,
    "routed_scaling_factor": 1.5, "norm_topk_prob": True, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "hidden_act": "silu",
    "swiglu_limit": 10.0, "rms_norm_eps": 1e-6, "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "rope_theta": 10000.0,
    "compress_rope_theta": 160000.0, "max_position_embeddings": 4096, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "bos_token_id": 0, "eos_token_id": 1, "expert_dtype": "fp8",
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
    "rope_scaling": {"rope_type": "yarn", "type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 256},
}  # fmt: skip


class _Dummy(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class _Dummies(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of DUMMIES that are not installed."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in DUMMIES else None

    def create_module(self, spec):
        module = _Dummy(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def edited(function, old, new):
    """The function with a piece of its source replaced."""
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(f"the source of {function.__qualname__} has this text {source.count(old)} times: {old}")
    made = {}
    exec(source.replace(old, new), inspect.unwrap(function).__globals__, made)
    return made[function.__name__]


@torch.no_grad()
def randomise(model):
    """Random weights of realistic size. vLLM's dummy weights are all below 1e-3."""
    generator = torch.Generator("cuda").manual_seed(0)
    for name, parameter in model.named_parameters():
        if parameter.dtype in (torch.int32, torch.int64):
            continue
        values = torch.randn(parameter.shape, generator=generator, device="cuda")
        if "scale_inv" in name:
            values = torch.full_like(values, 2.0**-6)
        elif parameter.dtype == torch.float8_e4m3fn:
            values = values * 2.0**6 / parameter.shape[-1] ** 0.5
        elif "norm" in name:
            values = 1 + 0.2 * values
        elif name.endswith("bias"):
            values = 0.1 * values
        elif parameter.dim() > 1 and not name.endswith("ape"):
            values = values / parameter.shape[-1] ** 0.5
        parameter.copy_(values.to(parameter.dtype))
    for name, parameter in model.named_parameters():
        if name.endswith("tid2eid"):
            rows = [torch.randperm(TINY["n_routed_experts"], generator=generator, device="cuda")[: parameter.shape[1]] for _ in range(len(parameter))]
            parameter.copy_(torch.stack(rows))


def _without_cute():
    """The compressor's CuTe kernels are replaced by vLLM's Triton kernels for the same call."""
    from vllm.models.deepseek_v4 import compressor

    name = "vllm.models.deepseek_v4.nvidia.ops.sparse_attn_compress_cutedsl"
    stand_in = types.ModuleType(name)
    stand_in.compress_norm_rope_store_cutedsl = lambda **named: compressor.compress_norm_rope_store_triton(**named)
    sys.modules[name] = stand_in


def prepare(mode):
    """Sets vLLM's environment. Call it before any import of vLLM. It does not import the model."""
    os.environ.update({
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_USE_BREAKABLE_CUDAGRAPH": str(int(mode == "pieces")), "VLLM_USE_V2_MODEL_RUNNER": str(int(mode == "v2")),
        "VLLM_DEEP_GEMM_WARMUP": "skip", "VLLM_USE_FLASHINFER_SAMPLER": "0",
    })  # fmt: skip
    sys.meta_path.append(_Dummies())
    from vllm.model_executor.model_loader import dummy_loader
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda function: function()  # a new process would not have the dummies
    dummy_loader.DummyModelLoader.load_weights = lambda self, model, config: randomise(model)


def start(mode):
    """vLLM's LLM object with the tiny model."""
    from vllm import LLM

    if importlib.util.find_spec("cutlass") is None:
        _without_cute()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(TINY, file)
        return LLM(
            folder, load_format="dummy", skip_tokenizer_init=True, enforce_eager=mode == "eager", dtype="bfloat16", kv_cache_dtype="fp8",
            max_model_len=4096, max_num_batched_tokens=512, max_num_seqs=CAPTURED_REQUESTS, num_gpu_blocks_override=640, gpu_memory_utilization=0.1,
            enable_prefix_caching=False, disable_log_stats=True, moe_backend="triton", async_scheduling=False,
            # torch.compile cannot trace a recorder, so the mode is none (0).
            compilation_config={"mode": 0, "cudagraph_mode": GRAPHS[mode], "cudagraph_capture_sizes": [CAPTURED_REQUESTS]},
        )  # fmt: skip


def runner_of(llm):
    return llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner


def generate(llm, lengths, decode_steps, seed=0):
    """Runs prompts of these lengths and generates `decode_steps` tokens for each."""
    from vllm import SamplingParams

    numbers = torch.Generator().manual_seed(seed)
    prompts = [{"prompt_token_ids": torch.randint(2, TINY["vocab_size"], (length,), generator=numbers).tolist()} for length in lengths]
    wanted = SamplingParams(max_tokens=decode_steps, temperature=0, ignore_eos=True, detokenize=False)
    return [one.outputs[0].token_ids for one in llm.generate(prompts, wanted, use_tqdm=False)]
