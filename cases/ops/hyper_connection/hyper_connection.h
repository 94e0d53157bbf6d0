// SPDX-License-Identifier: Apache-2.0
//
// What the cases of the hyper-connection ops share: members of their tables, how the residual
// streams and the mixing parameters are filled, and which rows are promised.
//
//   exact        streams of +-2^k with one k per token: mean square 4^k; weights of small integers
//   real         tokens of very different norm, one column in 64 an outlier
//   adversarial  zero, equal, alternating, one spike, very large, very small tokens, in turn
//
// Gaps between slots and tokens hold NaN.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/row.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/tensor.h"
#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::cases {

using reference::kStreams;

enum class Norms {
  wide,  // from 2^-10 to 2^10, at random: another token's sum is far off
  ramp,  // token i scaled by 1 + i: every token differs from every other
};
inline const WordParameter kNormsWord{
    "norms", {"wide", "ramp"}, "of the tokens: at random, or token i scaled by 1 + i"};
Norms norms_of(const Row& row);

enum class LogitRange {
  usual,    // mixes, scales and bases of order 1
  wide,     // four times as large: Sinkhorn converges slowly
  equal,    // all comb logits equal: 1/4 everywhere
  one_hot,  // a permutation
  huge      // differences beyond exp's range, closed gates: eps decides
};
inline const WordParameter kLogitsWord{"logits",
                                       {"usual", "wide", "equal", "one_hot", "huge"},
                                       "of the mixes: of order 1, four times as large, all of one "
                                       "size, a permutation, beyond the range "
                                       "of exp"};
LogitRange logits_of(const Row& row);

std::vector<Parameter> stream_parameters();
// Elements between the slots of a token, and between tokens with slots so far apart.
inline Formula slot_stride_of(const Formula& hidden) { return hidden + parameter("slot_gap"); }
inline Formula token_stride_of(const Formula& slot_stride) {
  return slot_stride * kStreams + parameter("token_gap");
}
template <class P>
void add_residual(TablePart<P>& t, const Formula& tokens, const Formula& hidden) {
  const Formula slot =
      t.scalar("residual_slot_stride", &P::residual_slot_stride, slot_stride_of(hidden));
  const Formula token =
      t.scalar("residual_token_stride", &P::residual_token_stride, token_stride_of(slot));
  t.input("residual", &P::residual, {tokens, kStreams, hidden}, "the streams")
      .strides({token, slot, 1});
}
template <class P>
reference::Streams residual_of(const P& p, const HostTensor& residual) {
  return {residual.data<std::uint16_t>(), p.tokens, p.hidden, p.residual_token_stride,
          p.residual_slot_stride};
}

// 10^-n of the parameter, as the op's fp32 argument; 0 for n = 0.
FloatOfInteger negative_power_of_ten(std::string parameter);
// Throws BadRow unless Row::trivial says whether there are no tokens.
void check_trivial_tokens(const Row& row);

struct StreamsFill {
  Norms norms = Norms::wide;
  bool has_eps = true;  // without one, no token may have a mean square of zero
};
// streams [tokens, 4, hidden], or [tokens, hidden] where one stands for four.
void fill_streams(const Step& step, const StreamsFill& how, HostTensor& streams);
// fn [columns, 4 hidden], scale and base [columns]: of 4 columns all gates, of 24 also post and
// comb.
void fill_mixing(const Step& step, LogitRange logits, HostTensor& fn, HostTensor& scale,
                 HostTensor& base);
// post [tokens, 4] and comb [tokens, 4, 4] of one token, as mhc_post takes them. Real: any.
// Otherwise comb is a cyclic permutation with one small entry off it, and post is 0 or 2.
void fill_coefficients(const Step& step, std::int64_t token, float* post, float* comb);
// Weights around 1.
void fill_norm_weight(const Step& step, HostTensor& weight);

// Dead tokens are computed like any other if their inputs are finite and moderate.
bool promises_dead(const Step& step, bool has_eps);
// Rows of a tensor [repeats, tokens, rows_per_token], empty if all are promised.
RowMask promised_tokens(const Step& step, bool has_eps, std::int64_t tokens,
                        std::int64_t rows_per_token, std::int64_t repeats = 1);

// Threads that the kernels give to a token (device/kernels/hyper_connection/hyper_connection.h,
// waves of 32).
double token_threads(std::int64_t hidden);

// What the fill does to an estimate. Under `adversarial` roundings may repeat. Under `exact` a
// linear sum has one honest value, and gated sums of +-2^k repeat a few values over the whole row.
void adapt_linear_sum(const Step& step, reference::Estimate& estimate);
void adapt_coefficients(const Step& step, reference::Estimate& estimate);
void adapt_gated_sum(const Step& step, reference::Estimate& estimate);

}  // namespace plumb::cases
