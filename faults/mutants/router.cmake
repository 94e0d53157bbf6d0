# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(grouped_topk_tanh_not_rounded
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[rounded(p, 2.0F * sigmoid - 1.0F)]]
  TO [[(2.0F * sigmoid - 1.0F)]]
  CASE grouped_topk/v3_2_bf16_tanh/eager
  SAYS "weights"
  WHY "the score is rounded once, where its tanh is declared to be rounded as well")

plumb_mutant(router_weights_are_biased
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[lane < p.topk ? score_of(p, logit_of(p, token, id)) : 0.0F;]]
  TO [[lane < p.topk ? choice_of(p, token, id) : 0.0F;]]
  CASE grouped_topk/v3_2/eager
  SAYS "weights: 32 elements beyond their bound in 4 of 4 rows (rows 0-3)"
  WHY "the bias, which is only for the choice, is added to the weights too")

plumb_mutant(router_excluded_groups_are_zero
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[open ? open_choice(p, token, expert) : -INFINITY;]]
  TO [[open ? open_choice(p, token, expert) : 0.0F;]]
  CASE grouped_topk/negative_bias/eager
  SAYS "whose group is not among the best 4"
  WHY "experts of excluded groups have score 0, which beats negative ones (AITER's torch reference)")

plumb_mutant(router_groups_by_their_best
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[rounded(p, best + second);]]
  TO [[best;]]
  CASE grouped_topk/v3_2/eager
  SAYS "whose group is not among the best 4"
  WHY "groups are compared by their best expert instead of by their two best")

plumb_mutant(router_ties_to_the_larger_id
  OP grouped_topk FILE router/router.h
  FROM [[ties == PLUMB_ROUTER_TIES_LOWER_ID ? 0xffffffffu - id : id;]]
  TO [[id;]]
  CASE grouped_topk/v3_2/eager
  SAYS "equal scores, the smaller id comes first"
  WHY "of experts with equal scores, that with the larger id is chosen")

plumb_mutant(router_without_renormalisation
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[p.renormalize ? score / sum : score;]]
  TO [[sum < 0.0F ? score / sum : score;]]
  CASE grouped_topk/one_token/eager
  SAYS "1 of 1 rows (row 0)"
  WHY "weights are not divided by their sum")

plumb_mutant(router_scales_the_fallback
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[1.0F / static_cast<float>(p.topk));]]
  TO [[p.routed_scaling_factor / static_cast<float>(p.topk));]]
  CASE grouped_topk/v3_2_fp32_in_logits_format/eager
  SAYS "weights: "
  WHY "the equal weights of a row without valid groups are multiplied by the scale too")

plumb_mutant(router_scores_of_logits_that_are_not_finite
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[p.nonfinite == PLUMB_NONFINITE_GUARD_ALL && !is_finite(logit);]]
  TO [[p.nonfinite == PLUMB_NONFINITE_GUARD_ALL && !is_finite(logit) && logit == logit;]]
  CASE grouped_topk/v3_2_fp32_in_logits_format/eager
  SAYS "ids: "
  WHY "a NaN logit is chosen, where logits that are not finite are guarded")

plumb_mutant(router_bf16_sum_in_fp32
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[return rounded(p, score_of(p, logit) + rounded(p, bias));]]
  TO [[return score_of(p, logit) + rounded(p, bias);]]
  CASE grouped_topk/v3_2_bf16_in_logits_format/eager
  SAYS "ids: "
  WHY "the sum of score and bias is not rounded to bf16, so that its ties are broken")

plumb_mutant(router_softplus_overflows
  OP sqrt_softplus_topk FILE router/router.h
  FROM [[p.softplus == PLUMB_SOFTPLUS_THRESHOLD_20 && x > 20.0F]]
  TO [[false]]
  CASE sqrt_softplus_topk/v4_flash/eager
  SAYS "weights: "
  WHY "e^x of a large logit overflows: the linear branch is missing")

plumb_mutant(router_square_root_missing
  OP sqrt_softplus_topk FILE router/router.h
  FROM [[return softplus * rsqrt_approx(softplus);]]
  TO [[return softplus;]]
  CASE sqrt_softplus_topk/v4_flash/eager
  SAYS "weights: 24 elements beyond their bound in 4 of 4 rows (rows 0-3)"
  WHY "the score is softplus without its square root")

plumb_mutant(router_padding_mask_ignored
  OP sqrt_softplus_topk FILE router/sqrt_softplus_topk.cu DECODE
  FROM [[if (p.is_padding && p.is_padding[token]) {]]
  TO [[if (false) {]]
  CASE sqrt_softplus_topk/v4_pro_padded/eager
  SAYS "ids: 2 of 11 rows (rows 3, 8) wrong"
  WHY "padded tokens are routed to experts")

plumb_mutant(router_padding_weights_kept
  OP sqrt_softplus_topk FILE router/sqrt_softplus_topk.cu
  FROM [[return store_expert(p, token, -1, 0.0F);]]
  TO [[p.ids[token * p.ids_row_stride + lane] = -1;
    return;]]
  CASE sqrt_softplus_topk/v4_pro_padded/full_graph
  SAYS "weights: "
  WHY "padded tokens get the id -1, but keep the weight of an earlier step")

plumb_mutant(router_empty_sum_divides
  OP sqrt_softplus_topk FILE router/router.h
  FROM [[p.zero_sum == PLUMB_ZERO_SUM_NAN || sum > 0.0F ? sum : 1.0F;]]
  TO [[sum;]]
  CASE sqrt_softplus_topk/one_expert/eager
  SAYS "non-finite or missing non-finite element"
  WHY "a row whose scores are all 0 is divided by 0")

plumb_mutant(router_picked_stays
  OP sqrt_softplus_topk FILE router/router.h
  FROM [[if (ranks[i] == best) ranks[i] = 0;]]
  TO [[if (ranks[i] == best) ranks[i] = rank_of(p.ties, 0.0F, id_of(p.ties, best));]]
  CASE sqrt_softplus_topk/every_expert/eager
  SAYS "a second time"
  WHY "chosen experts are marked with 0, which beats negative scores: they are chosen twice")

plumb_mutant(router_indices_by_token
  OP sqrt_softplus_topk FILE router/sqrt_softplus_topk.cu
  FROM [[static_cast<std::int32_t>(lane * p.tokens + token);]]
  TO [[static_cast<std::int32_t>(token * p.topk + lane);]]
  CASE sqrt_softplus_topk/token_expert_indices/eager
  SAYS "token_expert_indices: 5 of 5 rows (rows 0-4) wrong"
  WHY "token_expert_indices holds token * topk + k instead of k * tokens + token")

plumb_mutant(router_hash_of_the_position
  OP hash_routing FILE router/hash_routing.cu
  FROM [[static_cast<std::int64_t>(p.input_ids[token]) * p.topk;]]
  TO [[token * p.topk;]]
  CASE hash_routing/v4_flash/eager
  SAYS "ids: "
  WHY "the table is read at the token's place in the batch instead of at its id")

plumb_mutant(router_hash_writes_strangers
  OP hash_routing FILE router/hash_routing.cu
  FROM [[  if (!is_expert) return;]]
  TO [[  if (lane >= p.topk) return;]]
  CASE hash_routing/strangers/eager
  SAYS "ids: "
  WHY "places whose table id is no expert are written, where they have to stay")

plumb_mutant(router_hash_scale_missing
  OP hash_routing FILE router/hash_routing.cu
  FROM [[weight * p.routed_scaling_factor);]]
  TO [[weight);]]
  CASE hash_routing/v4_flash/eager
  SAYS "weights: 54 elements beyond their bound in 9 of 9 rows (rows 0-8)"
  WHY "weights are not scaled")

plumb_mutant(router_hash_stranger_in_the_sum
  OP hash_routing FILE router/hash_routing.cu
  FROM [[const bool is_expert = id >= 0 && id < p.experts;]]
  TO [[const bool is_expert = lane < p.topk && id >= 0 && id <= p.experts;]]
  CASE hash_routing/strangers/eager
  SAYS "ids: "
  WHY "the id equal to the number of experts counts as an expert")

plumb_mutant(router_infinite_logits_are_chosen
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[closed ? -INFINITY : choice_of]]
  TO [[false ? -INFINITY : choice_of]]
  CASE grouped_topk/guard_choice_only/eager
  SAYS "ids: "
  WHY "infinite logits can be chosen, where they are guarded")

plumb_mutant(router_all_shapes_have_small_experts
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[ && has_small_experts(p)]]
  TO [[]]
  CASE grouped_topk/domain_width_33/eager
  SAYS "weights: "
  WHY "shapes beyond the domain of vLLM's small-expert kernel are computed in fp32 too")

plumb_mutant(router_bias_stays_in_fp32
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [[round_bias ? load_bf16(store_bf16(p.bias[expert])) :]]
  TO [[false ? load_bf16(store_bf16(p.bias[expert])) :]]
  CASE grouped_topk/bias_in_bf16/eager
  SAYS "ids: "
  WHY "the bias is not rounded to the format of the logits, where that is declared")

plumb_mutant(router_small_scores_vanish
  OP sqrt_softplus_topk FILE router/router.h
  FROM [[p.softplus_small == PLUMB_SOFTPLUS_LOG1P && x < 0.0F]]
  TO [[false]]
  CASE sqrt_softplus_topk/softplus_log1p/eager
  SAYS "ids: "
  WHY "1 + e^x loses a small e^x, where log1p is declared")

plumb_mutant(router_nan_scores_are_reset
  OP hash_routing FILE router/router.h
  FROM [[p.nan_score == PLUMB_NAN_SCORE_ZERO ? 0.0F : x;]]
  TO [[0.0F;]]
  CASE hash_routing/nan_score_nan/eager
  SAYS "weights: "
  WHY "the score of a NaN logit is 0, where NaN is declared")
