# SPDX-License-Identifier: Apache-2.0
"""Router ops of engines in numpy. Functions are evaluated in double and rounded to fp32."""

import numpy as np
from formats import from_bf16, round_bf16

from plumb_kernels import kernel

F32 = np.float32


def fp32(function, x):
    return function(np.asarray(x, np.float64)).astype(F32)


def exp(x):
    return np.exp(np.asarray(x, np.float64)).astype(F32)  # 3.4e38 and above become infinity


def logits_of(array):
    return from_bf16(array) if array.dtype == np.uint16 else np.asarray(array, F32)


def descending(values):
    """Indices by descending value. Equal values are in order of index, NaN comes first."""
    return np.lexsort((np.arange(len(values)), -np.nan_to_num(values, nan=np.inf, posinf=np.inf, neginf=-np.inf)))


def tanh_sigmoid(x):
    return F32(0.5) * fp32(np.tanh, F32(0.5) * x) + F32(0.5)


def exp_sigmoid(x):
    return F32(1) / (F32(1) + exp(-x))


def two_best(choice, n_group):
    ordered = np.sort(choice.reshape(n_group, -1), axis=1)
    return ordered[:, -1] + ordered[:, -2]


def weights_of(scores, renormalize, scale):
    return scores / (scores.sum(dtype=F32) + F32(1e-20)) * scale if renormalize else scores * scale


def small_experts(x, bias, n_group, topk_group, topk, score=tanh_sigmoid):
    """fp32 throughout. Non-finite values are ordered by their bits."""
    scores = score(x)
    choice = scores + bias
    best = descending(two_best(choice, n_group))[:topk_group]
    closed = ~np.isin(np.arange(len(x)) // (len(x) // n_group), best)
    ids = descending(np.where(closed, F32(-np.inf), choice))[:topk]
    return ids, scores


def generic(x, bias, n_group, topk_group, topk, rounded, score=tanh_sigmoid, guarded=True):
    """Scores, biases and sums are in the format of the logits. If `guarded`, experts without a finite logit are not
    chosen, and expert 0 fills the remaining places."""
    scores = rounded(score(x))
    choice = rounded(scores + rounded(bias))
    best = descending(rounded(two_best(choice, n_group)))[:topk_group]
    open_groups = np.isin(np.arange(len(x)) // (len(x) // n_group), best)
    candidates = np.flatnonzero(open_groups & (np.isfinite(x) | (not guarded)))
    ids = np.zeros(topk, np.int64)
    chosen = candidates[descending(choice[candidates])[:topk]]
    ids[: len(chosen)] = chosen
    return ids, scores


def bf16_sigmoid(x):
    """Sigmoid of bf16 tensors by tanh. The tanh and the score are each rounded to bf16."""
    return round_bf16(F32(0.5) * round_bf16(np.tanh(F32(0.5) * x)) + F32(0.5))


def has_small_experts(experts, n_group, topk_group, topk):
    if n_group == 1:
        return topk_group == 1 and experts <= 512 and (topk <= 8 or topk == 22)
    return experts <= 256 and experts // n_group <= 32 and experts // n_group * topk_group <= 128 and topk <= 8 and topk_group <= 4


@kernel("grouped_topk", contract={"arithmetic": "logits_format", "nonfinite": "guard_choice_only", "kernel_domain": "small_experts_in_fp32", "bias_format": "fp32"}, platforms="sim-*")
def grouped_topk_vllm(logits, bias, weights, ids, n_group, topk_group, topk, renormalize, routed_scaling_factor):
    """vLLM 0.22.1 and 0.33. The shape decides which of two kernels runs."""
    rounded = round_bf16 if logits.dtype == np.uint16 else (lambda x: x)
    for token, x in enumerate(logits_of(logits)):
        if has_small_experts(len(x), n_group, topk_group, topk):
            chosen, scores = small_experts(x, bias, n_group, topk_group, topk)
        else:
            chosen, scores = generic(x, bias, n_group, topk_group, topk, rounded)
        ids[token] = chosen
        weights[token] = weights_of(scores[chosen], renormalize, F32(routed_scaling_factor))


@kernel("grouped_topk", contract={"arithmetic": "fp32", "nonfinite": "ordered_bits", "kernel_domain": "everywhere", "bias_format": "logits_format"}, platforms="sim-*")
def grouped_topk_aiter(logits, bias, weights, ids, n_group, topk_group, topk, renormalize, routed_scaling_factor):
    """AITER as vLLM calls it: the bias is cast to the format of the logits, sums are in fp32."""
    bias = round_bf16(bias) if logits.dtype == np.uint16 else bias
    for token, x in enumerate(logits_of(logits)):
        chosen, scores = small_experts(x, bias, n_group, topk_group, topk, exp_sigmoid)
        ids[token] = chosen
        weights[token] = weights_of(scores[chosen], renormalize, F32(routed_scaling_factor))


@kernel(
    "grouped_topk",
    contract={"arithmetic": "logits_format_tanh", "nonfinite": "ordered_bits", "kernel_domain": "everywhere", "bias_format": "logits_format"},
    platforms="sim-*",
)
def grouped_topk_of_flag_gems(logits, bias, weights, ids, n_group, topk_group, topk, renormalize, routed_scaling_factor):
    """FlagGems 5.0.2: 0.5 * tanh(0.5 * x) + 0.5 in tensors of the logits' format."""
    in_bf16 = logits.dtype == np.uint16
    for token, x in enumerate(logits_of(logits)):
        how = (round_bf16, bf16_sigmoid) if in_bf16 else (lambda y: y, tanh_sigmoid)
        chosen, scores = generic(x, bias, n_group, topk_group, topk, *how, guarded=False)
        ids[token] = chosen
        weights[token] = weights_of(scores[chosen], renormalize, F32(routed_scaling_factor))


def unsorted(values, count):
    """Indices of the `count` largest values as torch.topk(sorted=False) may return them: any order, any choice of equal values, NaN first."""
    return np.argpartition(-np.nan_to_num(values, nan=np.inf, posinf=np.inf, neginf=-np.inf), count - 1)[:count]


@kernel("grouped_topk", contract={"arithmetic": "fp32", "nonfinite": "ordered_bits", "kernel_domain": "everywhere", "bias_format": "fp32", "ties": "any", "order": "any"}, platforms="sim-*")
def grouped_topk_of_torch(logits, bias, weights, ids, n_group, topk_group, topk, renormalize, routed_scaling_factor):
    """transformers 5.23 for V3.2, and vLLM's fallback in torch."""
    for token, x in enumerate(logits_of(logits)):
        scores = exp_sigmoid(x)
        choice = scores + bias
        best = unsorted(two_best(choice, n_group), topk_group)
        is_open = np.isin(np.arange(len(x)) // (len(x) // n_group), best)
        chosen = unsorted(np.where(is_open, choice, F32(-np.inf)), topk)
        ids[token] = chosen
        weights[token] = weights_of(scores[chosen], renormalize, F32(routed_scaling_factor))


def log_1p_exp(x):
    return np.where(x > 20, x, fp32(np.log, F32(1) + exp(x)))


def log_1p_exp_of_size(x):
    return np.maximum(x, F32(0)) + fp32(np.log, F32(1) + exp(-np.abs(x)))


def log1p_threshold(x):
    return np.where(x > 20, x, fp32(np.log1p, exp(x)))


def log1p(x):
    return fp32(np.log1p, exp(x))


def root(softplus, x):
    return fp32(np.sqrt, softplus(x))


def sum_or_1(total):
    return total if total > 0 else F32(1)


def plain_sum(total):
    return total


def sum_and_epsilon(total):
    return total + F32(1e-20)


def normalised(scores, divisor, renormalize, scale):
    if not renormalize:
        return scores * F32(scale)
    return scores / divisor(scores.sum(dtype=F32)) * F32(scale)


def route(softplus, choose, divisor, call):
    """`choose(x, scores, bias, topk)` returns the ids and the values from which their weights are computed."""
    is_padding, tokens, topk = call["is_padding"], call["tokens"], call["topk"]
    if call["token_expert_indices"] is not None:
        call["token_expert_indices"][:] = np.arange(topk) * tokens + np.arange(tokens)[:, None]
    for token, x in enumerate(logits_of(call["logits"])):
        if is_padding is not None and is_padding[token]:
            call["ids"][token], call["weights"][token] = -1, 0
            continue
        chosen, parts = choose(x, root(softplus, x), call["bias"], topk)
        call["ids"][token] = chosen
        call["weights"][token] = normalised(parts, divisor, call["renormalize"], call["routed_scaling_factor"])


def nan_loses(x, scores, bias, topk):
    choice = scores + bias
    chosen = descending(np.where(np.isnan(choice), F32(-1e30), choice))[:topk]
    return chosen, scores[chosen]


def blanked(x, scores, bias, topk):
    """Takes one maximum after the other. A NaN at index 0 wins every comparison. The weight is the choice minus the bias."""
    choice = scores + bias
    chosen, parts = [], []
    for _ in range(topk):
        largest = 0 if np.isnan(choice[0]) else int(np.nanargmax(choice))
        chosen.append(largest)
        parts.append(choice[largest] - bias[largest])
        choice[largest] = -10000
    return chosen, np.array(parts, F32)


def zeroed(x, scores, bias, topk):
    return blanked(x, np.where(np.isnan(x), F32(0), scores), bias, topk)


SCORE_OF_VLLM = {"softplus": "threshold_20", "softplus_small": "log_1p_exp", "zero_sum": "one"}


@kernel("sqrt_softplus_topk", contract={**SCORE_OF_VLLM, "nan_score": "nan", "weight": "score"}, platforms="sim-*")
def dsv4_topk(**call):
    """vLLM 0.33's Triton kernel."""
    route(log_1p_exp, nan_loses, sum_or_1, call)


@kernel("sqrt_softplus_topk", contract={**SCORE_OF_VLLM, "nan_score": "zero", "weight": "score"}, platforms="sim-*")
def dsv4_topk_guarded(**call):
    """As dsv4_topk after vLLM 0.33: a NaN weight becomes 0."""

    def choose(x, scores, bias, topk):
        chosen, parts = nan_loses(x, scores, bias, topk)
        return chosen, np.where(np.isnan(parts), F32(0), parts)

    route(log_1p_exp, choose, sum_or_1, call)


@kernel("sqrt_softplus_topk", contract={**SCORE_OF_VLLM, "nan_score": "nan", "weight": "recovered"}, platforms="sim-*")
def topk_softplus_sqrt(**call):
    """vLLM 0.22.1's generic kernel."""
    route(log_1p_exp, blanked, sum_or_1, call)


@kernel("sqrt_softplus_topk", contract={**SCORE_OF_VLLM, "nan_score": "zero", "weight": "recovered"}, platforms="sim-*")
def topk_softplus_sqrt_guarded(**call):
    """The generic kernel after 0.33: the score of a NaN is 0."""
    route(log_1p_exp, zeroed, sum_or_1, call)


@kernel("sqrt_softplus_topk", contract={"softplus": "threshold_20", "softplus_small": "log1p", "zero_sum": "nan", "nan_score": "nan", "weight": "score"}, platforms="sim-*")
def topk_of_torch(**call):
    """F.softplus(x).sqrt(), as in the references of AITER, vLLM and DeepSeek."""
    route(log1p_threshold, nan_loses, plain_sum, call)


@kernel("sqrt_softplus_topk", contract={"softplus": "threshold_20", "softplus_small": "log1p", "zero_sum": "epsilon", "nan_score": "nan", "weight": "score", "ties": "any", "order": "any"}, platforms="sim-*")
def topk_of_transformers(**call):
    """transformers 5.23 for V4."""

    def choose(x, scores, bias, topk):
        chosen = unsorted(scores + bias, topk)
        return chosen, scores[chosen]

    route(log1p_threshold, choose, sum_and_epsilon, call)


@kernel("sqrt_softplus_topk", contract={"softplus": "none", "softplus_small": "log1p", "zero_sum": "nan", "nan_score": "nan", "weight": "score"}, platforms="sim-*")
def topk_log1p(**call):
    route(log1p, nan_loses, plain_sum, call)


def route_by_hash(softplus, nan_score, divisor, skips_strangers, call):
    logits, table, topk = logits_of(call["logits"]), call["tid2eid"], call["topk"]
    for token, x in enumerate(logits):
        row = np.asarray(table[call["input_ids"][token]])
        places = np.flatnonzero((row >= 0) & (row < len(x))) if skips_strangers else np.arange(topk)
        scores = root(softplus, x[row[places]])
        scores = np.where(np.isnan(scores), F32(nan_score), scores)
        call["ids"][token, places] = row[places]
        call["weights"][token, places] = normalised(scores, divisor, call["renormalize"], call["routed_scaling_factor"])


@kernel("hash_routing", contract={**SCORE_OF_VLLM, "nan_score": "nan", "strangers": "ignored"}, platforms="sim-*")
def topk_hash_softplus_sqrt(**call):
    """vLLM 0.22.1's generic kernel."""
    route_by_hash(log_1p_exp, np.nan, sum_or_1, True, call)


@kernel("hash_routing", contract={**SCORE_OF_VLLM, "nan_score": "zero", "strangers": "ignored"}, platforms="sim-*")
def topk_hash_softplus_sqrt_guarded(**call):
    route_by_hash(log_1p_exp, 0, sum_or_1, True, call)


@kernel("hash_routing", contract={"softplus": "none", "softplus_small": "log1p", "zero_sum": "nan", "nan_score": "nan", "strangers": "never"}, platforms="sim-*")
def hash_topk(**call):
    """The fast kernel of vLLM 0.33."""
    route_by_hash(log1p, np.nan, plain_sum, False, call)


@kernel("hash_routing", contract={"softplus": "threshold_20", "softplus_small": "log1p", "zero_sum": "epsilon", "nan_score": "nan", "strangers": "never"}, platforms="sim-*")
def hash_routing_of_transformers(**call):
    """transformers 5.23 for V4."""
    route_by_hash(log1p_threshold, np.nan, sum_and_epsilon, False, call)


@kernel("hash_routing", contract={**SCORE_OF_VLLM, "nan_score": "zero", "strangers": "never"}, platforms="sim-*")
def hash_topk_guarded(**call):
    """The fast kernel after 0.33: max(x, 0) + log(1 + exp(-|x|))."""
    route_by_hash(log_1p_exp_of_size, 0, sum_or_1, False, call)
