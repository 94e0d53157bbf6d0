# SPDX-License-Identifier: Apache-2.0
"""Taps with which plumb_kernels.traces records the small engine.

known_taps give each op the inputs that it should read: lengths, pages and slots come from the host and not from buffers
that graphs keep. So plumb's references find wrong metadata too. unknown_taps name no op of plumb and give the actual
arguments of the kernels.
"""

import numpy as np
import small_engine_kernels as kernels
import torch
from plumb_kernels import traces
from small_engine import Engine

SUMS = {"chains": 32, "function_ulp": 4}
DOT = {"chains": 16}


def known_taps(engine, cache_blocks=None):
    padded = lambda: engine.padded

    def lengths():
        return np.where(np.arange(padded()) < engine.live, engine.lengths[: padded()], 0).astype(np.int32)[:, None]

    def table():
        return engine.table[: padded()].copy()

    def tokens():
        return engine.tokens_of_host[: padded()].copy()

    def scale():
        return engine.scale

    def place(layer, name):
        return {"name": f"layers.{layer.number}.{name}", "layer": layer.number}

    def cache(tensor):
        return traces.Described(tensor, blocks=cache_blocks, at_most=engine.config.sizes[-1])

    def fused_norm(_, layer, x, residual, weight, name):
        return {
            "op": "fused_add_rms_norm", **place(layer, name), "numerics": SUMS, "rows": ["x", "residual"],
            "before": {"x": x, "residual": residual, "weight": weight}, "scalars": {"eps": engine.config.eps, "rounding": "once", "sum": "fp32"},
        }  # fmt: skip

    def norm(_, x, weight, out):
        return {
            "op": "rms_norm", "name": "final_norm", "numerics": SUMS, "rows": ["x", "out"],
            "before": {"x": x, "weight": weight}, "scalars": {"eps": engine.config.eps, "rounding": "once"},
        }  # fmt: skip

    def insert(_, layer, k, slots, tensor, graphed=False):
        return {
            "op": "indexer_k_quant_and_cache", **place(layer, "insert"), "before": {"k": k, "slot_mapping": engine.intended_slots, "cache": cache(tensor)},
            "scalars": {"page": kernels.PAGE, "scale_form": "fp32", "layout": "planar", "skip": "negative"},
        }  # fmt: skip

    def scores(_, layer, codes, scales, tensor, pages, length, logits, columns):
        return {
            "op": "fp8_paged_mqa_logits", **place(layer, "scores"), "numerics": DOT, "scalars": {"page": kernels.PAGE, "layout": "planar", "scaled": "operand"},
            "before": {"q": codes[:, None, None, :], "weights": scales, "context_lens": lengths, "block_table": table, "cache": tensor},
        }  # fmt: skip

    def top_k(_, layer, logits, *more):
        return {"op": "top_k_per_row_decode", **place(layer, "top_k"), "before": {"logits": logits, "seq_lens": lengths}}

    def quant(_, layer, x, q, scales, name):
        return {
            "op": "per_token_group_quant_fp8", **place(layer, name), "before": {"x": x}, "rows": ["x", "q", "scales"],
            "scalars": {"group": 128, "scales": "fp32", "layout": "row_major", "quotient": "division"},
        }  # fmt: skip

    def routed(layer, small):
        scalars = {"routed_scaling_factor": scale, "renormalize": 1, "softplus": "threshold_20", "softplus_small": small}
        return {**place(layer, "router"), "numerics": SUMS, "scalars": scalars}

    def router(_, layer, logits, *more):
        return {"op": "sqrt_softplus_topk", **routed(layer, "log_1p_exp"), "rows": ["logits", "weights", "ids"], "before": {"logits": logits, "bias": layer.bias}}

    def hash_router(_, layer, logits, given, weights, ids, scale):
        before = {"logits": logits, "input_ids": tokens, "tid2eid": layer.tid2eid, "weights": weights, "ids": ids}
        made = routed(layer, "log1p")
        made["scalars"]["vocabulary"] = len(layer.tid2eid)
        return {"op": "hash_routing", **made, "before": before}

    taps = [
        traces.Tap(Engine, "fused_add_rms_norm", fused_norm, lambda _, self, layer, x, residual, *more: {"x": x, "residual": residual}),
        traces.Tap(Engine, "rms_norm", norm, lambda _, self, x, weight, out: {"out": out}),
        traces.Tap(Engine, "insert", insert, lambda _, self, layer, k, slots, tensor, graphed=False: {"cache": cache(tensor)}),
        traces.Tap(Engine, "scores", scores, lambda _, self, layer, codes, scales, tensor, pages, length, logits, columns: {"logits": logits}),
        traces.Tap(Engine, "top_k", top_k, lambda _, self, layer, logits, length, indices, columns: {"indices": indices}),
        traces.Tap(Engine, "all_positions", top_k, lambda _, self, layer, logits, length, indices: {"indices": indices}),
        traces.Tap(Engine, "group_quant", quant, lambda _, self, layer, x, q, scales, name: {"q": q, "scales": scales}),
        traces.Tap(Engine, "router", router, lambda _, self, layer, logits, weights, ids, scale: {"weights": weights, "ids": ids}),
        traces.Tap(Engine, "hash_router", hash_router, lambda _, self, layer, logits, given, weights, ids, scale: {"weights": weights, "ids": ids}),
    ]
    return outside_of_warm_up(engine, taps)


# Numbers of the arguments that a call only writes, and of those that it changes in place.
OPS = {
    "fused_add_rms_norm": ((), (1, 2)), "rms_norm": ((2,), ()), "insert": ((), (3,)), "scores": ((6,), ()), "top_k": ((3,), ()),
    "all_positions": ((3,), ()), "attend": ((5,), ()), "group_quant": ((2, 3), ()), "mlp": ((), ()), "router": ((2, 3), ()),
    "hash_router": ((3, 4), ()), "combine": ((), ()), "sample": ((1,), ()),
}  # fmt: skip


def unknown_taps(engine):
    """Records tensors among the arguments and results under their numbers."""

    def tensors(arguments, wanted):
        return {str(number): one for number, one in enumerate(arguments) if isinstance(one, torch.Tensor) and wanted(number)}

    def tap(name, written, in_place):
        def describe(_, *arguments, **named):
            layer = getattr(arguments[0], "number", -1)
            scalars = {str(number): one for number, one in enumerate(arguments) if isinstance(one, (int, float)) and not isinstance(one, bool)}
            words = [one for one in arguments if isinstance(one, str)]
            before = tensors(arguments, lambda number: number not in written)
            return {"name": ".".join([name, *words]), "layer": layer, "before": before, "scalars": scalars}

        def after(result, _, *arguments, **named):
            changed = tensors(arguments, lambda number: number in written + in_place)
            return {**changed, **({"result": result} if isinstance(result, torch.Tensor) else {})}

        return traces.Tap(Engine, name, describe, after)

    return outside_of_warm_up(engine, [tap(name, *places) for name, places in OPS.items()])


def outside_of_warm_up(engine, taps):
    """Leaves out warm-up runs before a capture, whose batch has no request."""

    def outside(describe):
        return lambda *arguments, **named: None if engine.dummy_run else describe(*arguments, **named)

    return [traces.Tap(tap.owner, tap.attribute, outside(tap.describe), tap.after) for tap in taps]
