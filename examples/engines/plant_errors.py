# SPDX-License-Identifier: Apache-2.0
"""Plants 48 errors in models of transformers, one at a time. plumb judge has to name the call of each.

    pip install transformers==5.23.0 torch==2.11.0
    python plant_errors.py --only q_b_norm

An error is an edit of one line of transformers' source, and acts in one module of one layer. The script
records the model with the error as record_transformers.py does. The first wrong call of the report has to be
the call whose function was edited. Both models without an error have to pass.

    found       the report names this call first
    other call  the report names another call first
    missed      the report names no call, but the edit changed results
    no effect   all results of the edited function have the bits of the original
"""

import argparse
import contextlib
import copy
import dataclasses
import functools
import inspect
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable
from unittest import mock

import torch
from plumb_kernels import traces
from record_transformers import MODELS, record
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as v4
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as v32

MOST_NOT_FOUND = 3  # of all; if some are selected, all of them must be found

COMPRESS = "compress_norm_rope_insert"
# The plumb op under which calls of a module are recorded.
OPS = {
    v4.DeepseekV4RMSNorm: "rms_norm", v4.DeepseekV4UnweightedRMSNorm: "q_head_rms_norm_rope",
    v4.DeepseekV4HyperConnection: "mhc_pre", v4.DeepseekV4HyperHead: "hc_head", v4.DeepseekV4Indexer: "top_k_per_row_prefill",
    v4.DeepseekV4HCACompressor: COMPRESS, v4.DeepseekV4CSACompressor: COMPRESS,
    v32.DeepseekV32RMSNorm: "rms_norm", v32.DeepseekV32TopkRouter: "grouped_topk", v32.DeepseekV32Indexer: "top_k_per_row_prefill",
}  # fmt: skip
NAN_ONLY = (v4.DeepseekV4MLP,)  # plumb has no op for it, so only a NaN can be found
ROPE = ".apply_rotary_pos_emb"
# Parts of a module that are recorded as calls of their own: op, and what is added to the module's name.
PARTS = {
    "queries": ("q_head_rms_norm_rope", ROPE), "keys": ("inverse_rope", ROPE), "output": ("inverse_rope", ROPE),
    "attention": ("sparse_mla_prefill", ".attention"), "states": (COMPRESS, ".compress"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Error:
    """`new` replaces the text `old` in the source of the module's forward(), of apply_rotary_pos_emb or of
    eager_attention_forward.

    If `new` is a function, it replaces torch.Tensor.topk while forward() runs.
    """

    what: str
    model: str
    place: str  # name of the module in the model
    old: str
    new: str | Callable
    # A part of the module: the rotation of "queries", "keys" or "output", "attention", or the "states" of an indexer.
    part: str = ""

    @property
    def layer(self):
        found = re.search(r"layers\.(\d+)\.", self.place)
        return int(found[1]) if found else -1

    def module(self, model):
        return model.get_submodule(self.place)

    def expected(self, model):
        """Op, name and layer of the call that has the error."""
        if self.part:
            op, suffix = PARTS[self.part]
            return op, self.place + suffix, self.layer
        kind = type(self.module(model))
        if kind in NAN_ONLY:
            return "", kind.__name__, self.layer
        if OPS[kind] == COMPRESS:
            return COMPRESS, self.place + ".compress", self.layer
        name = self.place.replace(".q_b_norm", ROPE)  # recorded together with the RoPE that follows the norm
        return OPS[kind], name, self.layer


def v4_error(what, place, old, new, part=""):
    return Error(what, "v4", place, old, new, part)


def v32_error(what, place, old, new):
    return Error(what, "v32", place, old, new)


def layer(number, module):
    return f"model.layers.{number}.{module}"


def indexer(number):
    return layer(number, "self_attn.compressor.indexer")


FACTOR = "torch.rsqrt(variance + self.variance_epsilon)"
MEAN_SQUARE = "hidden_states.pow(2).mean(-1, keepdim=True)"
SUM_OF_SQUARES = "hidden_states{}.pow(2).sum(-1, keepdim=True)"
WEIGHTED = "(self.weight * hidden_states).to(input_dtype)"
LAST_ROW = ".index_fill(1, torch.tensor({}.shape[1] - 1), {})"
HEAD_FACTOR = "torch.rsqrt(x.float().square().mean(-1, keepdim=True) + self.eps)"
ROTATED = "(rope.float() * cos) + (rotate_half(rope).float() * sin)"
JOINED = "torch.cat([nope, rotated], dim=-1)"
HALVES_SWAPPED = "torch.cat([-rope[..., rope_dim // 2 :], rope[..., : rope_dim // 2]], -1)"

NORMS = [
    v4_error("eps outside the root", layer(0, "input_layernorm"), FACTOR, "(1 / (variance.sqrt() + self.variance_epsilon))"),
    v4_error("mean of squares in bf16", layer(2, "input_layernorm"), MEAN_SQUARE,
             "hidden_states.to(input_dtype).pow(2).mean(-1, keepdim=True).float()"),
    v4_error("rounds to bf16 before the weight", layer(3, "self_attn.q_a_norm"), WEIGHTED,
             "(self.weight * hidden_states.to(input_dtype)).to(input_dtype)"),
    v4_error("weight is 1 + weight", layer(0, "post_attention_layernorm"), WEIGHTED,
             "((1 + self.weight) * hidden_states).to(input_dtype)"),
    v4_error("weight of the next layer", layer(1, "self_attn.kv_norm"), WEIGHTED,
             "(self.next_layer.weight * hidden_states).to(input_dtype)"),
    v4_error("mean divides by n - 1", indexer(3) + ".kv_norm", MEAN_SQUARE,
             SUM_OF_SQUARES.format("") + " / (hidden_states.shape[-1] - 1)"),
    v4_error("variance around the mean", layer(2, "self_attn.kv_norm"), MEAN_SQUARE, "hidden_states.var(-1, keepdim=True, correction=0)"),
    v4_error("last row not written", layer(0, "self_attn.q_a_norm"), WEIGHTED, WEIGHTED + LAST_ROW.format("hidden_states", "0")),
    v32_error("rounds once, after the weight", layer(1, "input_layernorm"), "self.weight * hidden_states.to(input_dtype)",
              "(self.weight.float() * hidden_states).to(input_dtype)"),
    v32_error("eps is 1e-5, not 1e-6", layer(2, "self_attn.kv_a_layernorm"), "self.variance_epsilon", "1e-5"),
    v32_error("factor in bf16", layer(3, "post_attention_layernorm"), FACTOR, f"{FACTOR}.to(input_dtype)"),
    v32_error("through fp16", layer(0, "self_attn.q_a_layernorm"), "hidden_states.to(input_dtype)",
              "hidden_states.to(torch.float16).to(input_dtype)"),
    v32_error("last column left out of the sum", layer(2, "post_attention_layernorm"), MEAN_SQUARE,
              SUM_OF_SQUARES.format("[..., :-1]") + " / hidden_states.shape[-1]"),
]  # fmt: skip

ROPES = [
    v4_error("one norm of all heads", layer(1, "self_attn.q_b_norm"), ".mean(-1, keepdim=True)", ".mean((1, -1), keepdim=True)"),
    v4_error("factor not in bf16", layer(3, "self_attn.q_b_norm"), f"x * {HEAD_FACTOR}.to(x.dtype)", f"(x.float() * {HEAD_FACTOR}).to(x.dtype)"),
    v4_error("pairs are halves, not neighbours", layer(0, "self_attn"), "rotate_half(rope)", HALVES_SWAPPED, "queries"),
    v4_error("position off by one", layer(2, "self_attn"), "nope, rope =",
             "cos, sin = cos.roll(1, 2), sin.roll(1, 2)\n    nope, rope =", "queries"),
    v4_error("rotated dims in front", layer(1, "self_attn"), JOINED, "torch.cat([rotated, nope], dim=-1)", "queries"),
    v4_error("sign of sin", layer(0, "self_attn"), "sin = sin.repeat", "sin = -sin.repeat", "output"),
    v4_error("products in bf16", layer(3, "self_attn"), ROTATED, "(rope * cos) + (rotate_half(rope) * sin)", "keys"),
    v4_error("last head not rotated", layer(2, "self_attn"), JOINED, f"torch.cat([{JOINED}[:, :-1], x[:, -1:]], 1)", "output"),
    v4_error("sin of halves, not of pairs", layer(2, "self_attn"), "sin.repeat_interleave(2, dim=-1)", "torch.cat([sin, sin], -1)", "keys"),
    v4_error("last pair not rotated", layer(3, "self_attn"), JOINED,
             "torch.cat([nope, rotated[..., :-2], rope[..., -2:]], dim=-1)", "output"),
]  # fmt: skip

HYPER_CONNECTIONS = [
    v4_error("comb transposed", layer(0, "attn_hc"), "return post, comb, collapsed", "return post, comb.transpose(-1, -2), collapsed"),
    v4_error("scale of pre for post", layer(2, "attn_hc"), "post_w * post_scale", "post_w * pre_scale"),
    v4_error("norm of each stream", layer(1, "ffn_hc"), "self.input_norm(flattened)",
             "self.input_norm(hidden_streams.float()).flatten(2)"),
    v4_error("streams added up in bf16", layer(1, "attn_hc"), "(pre.unsqueeze(-1) * hidden_streams)",
             "(pre.to(hidden_streams.dtype).unsqueeze(-1) * hidden_streams)"),
    v4_error("4 Sinkhorn iterations, not 20", layer(3, "ffn_hc"), "range(self.hc_sinkhorn_iters - 1)",
             "range(self.hc_mult - 1)"),
    v4_error("base forgotten", "model.hc_head", " + self.hc_base.float()", ""),
    v4_error("streams added up in bf16", "model.hc_head", "(pre.unsqueeze(-1) * x)", "(pre.to(x.dtype).unsqueeze(-1) * x)"),
]  # fmt: skip


def without_last_column(topk, scores, k, dim=-1):
    return topk(scores[..., :-1], k, dim=dim)


def last_is_first(topk, scores, k, dim=-1):
    result = topk(scores, k, dim=dim)
    result.indices[..., -1] = result.indices[..., 0]
    return result


CHOICES = [
    v4_error("mask off by one", indexer(3), "entry_indices.view(1, 1, -1) >=", "entry_indices.view(1, 1, -1) >"),
    v4_error("scores in FP8", indexer(1), "index_scores.masked_fill",
             "index_scores.to(torch.float8_e4m3fn).float().masked_fill"),
    v32_error("last column never chosen", layer(1, "self_attn.indexer"), "topk", without_last_column),
    v32_error("first index stands twice", layer(3, "self_attn.indexer"), "topk", last_is_first),
    v32_error("bias in the weights", layer(1, "mlp.gate"), "topk_weights = scores.gather",
              "topk_weights = (scores + self.e_score_correction_bias).gather"),
    v32_error("not renormalised", layer(2, "mlp.gate"), "if self.norm_topk_prob:", "if False:"),
    v32_error("score of a group is its largest", layer(3, "mlp.gate"), ".topk(2, dim=-1)", ".topk(1, dim=-1)"),
    v32_error("weights rounded to bf16", layer(2, "mlp.gate"), "return router_logits, topk_weights,",
              "return router_logits, topk_weights.bfloat16().float(),"),
    v32_error("choice without the bias", layer(1, "mlp.gate"), "= scores + self.e_score_correction_bias", "= scores"),
    v4_error("NaN in the last row", layer(2, "mlp.shared_experts"), "self.act_fn(gate) * up)",
             "self.act_fn(gate) * up)" + LAST_ROW.format("x", "float('nan')")),
]  # fmt: skip

COMPRESSORS = [
    v4_error("softmax over channels", layer(1, "self_attn.compressor"), "new_gate.softmax(dim=2", "new_gate.softmax(dim=3"),
    v4_error("APE of the next phase", layer(3, "self_attn.compressor"), "+ self.position_bias", "+ self.position_bias.roll(-1, 0)"),
    v4_error("kv of the other half", indexer(1), "chunk_kv[..., self.head_dim :]", "chunk_kv[..., : self.head_dim]", "states"),
    v4_error("overlap of the last step lost", layer(1, "self_attn.compressor"), "if prior_kv is not None:", "if False:"),
    v4_error("angle of the closing token", layer(2, "self_attn.compressor"), "(positions * self.compress_rate +",
             "(positions * self.compress_rate + self.compress_rate - 1 +"),
]  # fmt: skip

ATTENTIONS = [
    v4_error("no sink", layer(0, "self_attn"), "torch.cat([attn_weights, sinks], dim=-1)", "torch.cat([attn_weights, sinks - 1e4], dim=-1)", "attention"),
    v4_error("scale of 1/16", layer(2, "self_attn"), "* scaling", "/ 16", "attention"),
    v4_error("no mask", layer(3, "self_attn"), "attn_weights = attn_weights + attention_mask", "pass", "attention"),
]  # fmt: skip

ERRORS = NORMS + ROPES + HYPER_CONNECTIONS + CHOICES + COMPRESSORS + ATTENTIONS


def edited(function, old, new):
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(f"the source of {function.__qualname__} has this text {source.count(old)} times, not once: {old}")
    made = {}
    exec(source.replace(old, new), function.__globals__, made)
    return made[function.__name__]


def same_bits(a, b):
    if isinstance(a, tuple):
        return all(map(same_bits, a, b))
    a, b = (one.contiguous().reshape(-1).view(torch.uint8) for one in (a, b))
    return torch.equal(a, b)


def copied(value):
    return value if isinstance(value, torch.nn.Module) else copy.deepcopy(value)


@dataclasses.dataclass
class Switch:
    """Calls the edited function instead of the original where the error applies."""

    owner: type | object  # class or module whose function is replaced
    attribute: str
    edited: Callable
    acts: Callable[..., bool]
    compares: bool
    changed: int = 0  # with `compares`: number of calls whose results differ from the original's

    def on(self):
        original = getattr(self.owner, self.attribute)

        def switched(*arguments, **named):
            if not self.acts(*arguments, **named):
                return original(*arguments, **named)
            if self.compares:  # the original may change a cache, so it gets copies
                expected = original(*map(copied, arguments), **{name: copied(value) for name, value in named.items()})
            result = self.edited(*arguments, **named)
            if self.compares:
                self.changed += not same_bits(result, expected)
            return result

        return mock.patch.object(self.owner, self.attribute, switched)


class Running:
    """Tracks whether forward() of a module is running."""

    def __init__(self, module):
        self.now, self.rotations = False, 0
        module.register_forward_pre_hook(self.begin)
        module.register_forward_hook(self.end)

    def begin(self, *_):
        self.now, self.rotations = True, 0

    def end(self, *_):
        self.now = False

    def rotates(self, x, *_):
        """What the attention rotates next: "queries", "keys", "output", or "" for other tensors."""
        if not self.now or x.shape[-1] != 512:  # the indexer's
            return ""
        self.rotations += 1
        if self.rotations == 1:
            return "queries"
        return "keys" if x.shape[1] == 1 else "output"


def switch(error, model, compares):
    module = error.module(model)
    if error.part == "attention":
        function = edited(v4.eager_attention_forward, error.old, error.new)
        return Switch(v4, "eager_attention_forward", function, lambda attention, *_, **__: attention is module, compares)
    if error.part and error.part != "states":
        running, function = Running(module), edited(v4.apply_rotary_pos_emb, error.old, error.new)
        return Switch(v4, "apply_rotary_pos_emb", function, lambda *arguments: running.rotates(*arguments) == error.part, compares)
    if callable(error.new):
        running, topk = Running(module), torch.Tensor.topk
        function = functools.partial(error.new, topk)
        return Switch(torch.Tensor, "topk", function, lambda *_, **__: running.now, compares)
    if "next_layer" in error.new:  # not as an attribute, which would make it a submodule
        next_place = error.place.replace(f".{error.layer}.", f".{error.layer + 1}.")
        vars(module)["next_layer"] = model.get_submodule(next_place)
    kind = type(module)
    return Switch(kind, "forward", edited(kind.forward, error.old, error.new), lambda self, *_, **__: self is module, compares)


def record_with(error, folder, compares=False):
    """Records a model with the error. Returns the call that must be named, and the switch."""
    made = []
    with contextlib.ExitStack() as undo:

        def plant(model):
            made.extend((error.expected(model), switch(error, model, compares)))
            undo.enter_context(made[1].on())

        record(folder, error.model, before=plant)
    return made


def first_wrong(report):
    """Op, name and layer of the first call that is wrong or wrote a NaN; None: there is none."""
    found = report.summary["wrong"] + [report.summary["first_non_finite"]]
    calls = sorted((call for call in found if call), key=lambda call: (call["step"], call["index"]))
    return (calls[0]["op"], calls[0]["name"], calls[0]["layer"]) if calls else None


def result_of(error, folder):
    """The outcome, the expected call, and further text for the line."""
    recording = os.path.join(folder, "recording")
    expected, _ = record_with(error, recording)
    named = first_wrong(traces.judge(recording))
    if named == expected:
        return "found", expected, ""
    # The original may record additional calls here, so this recording is not judged.
    _, compared = record_with(error, os.path.join(folder, "compared"), compares=True)
    if not compared.changed:
        return "no effect", expected, ""
    more = f"; calls that the edit changed: {compared.changed}"
    return ("missed", expected, more) if named is None else ("other call", expected, f"; named: {described(named)}{more}")


def described(call):
    op, name, number = call
    return f"{op or 'NaN'} in {name}" + (f" of layer {number}" if number >= 0 and "layers." not in name else "")


def control(model):
    with tempfile.TemporaryDirectory() as folder:
        record(folder, model)
        report = traces.judge(folder)
    print(f"{'control':10} {model:3} {report.text.splitlines()[-1]}", flush=True)
    return report.passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", default="", help="errors whose model, place or name has this regular expression")
    parser.add_argument("--first", metavar="N", type=int, help="the first N of these errors")
    arguments = parser.parse_args()
    errors = [error for error in ERRORS if re.search(arguments.only, f"{error.model} {error.place} {error.what} {error.part}")]
    errors = errors[: arguments.first]
    passed = [control(model) for model in MODELS if any(error.model == model for error in errors)]
    counts = dict.fromkeys(("found", "other call", "missed", "no effect"), 0)
    for error in errors:
        with tempfile.TemporaryDirectory() as folder:
            result, expected, more = result_of(error, folder)
        counts[result] += 1
        print(f"{result:10} {error.model:3} {error.what}: {described(expected)}{more}", flush=True)
    print(f"{len(errors)} errors: " + ", ".join(f"{count} {result}" for result, count in counts.items()))
    needed = len(errors) - (MOST_NOT_FOUND if len(errors) == len(ERRORS) else 0)
    return 0 if errors and all(passed) and counts["found"] >= needed else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
