// SPDX-License-Identifier: Apache-2.0
//
// Shared by the cases of the hyper-connection ops: members of their tables, fills of the residual
// streams and the mixing parameters, and which rows are promised.
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
  wide,  // random, from 2^-10 to 2^10: the sum of another token is far off
  ramp,  // token i scaled by 1 + i: no two tokens have the same norm
};
inline const WordParameter kNormsWord{
    "norms", {"wide", "ramp"}, "of the tokens: at random, or token i scaled by 1 + i"};
Norms norms_of(const Row& row);

enum class LogitRange {
  usual,     // mixes, scales and bases of order 1
  wide,      // four times as large: Sinkhorn converges slowly
  equal,     // all comb logits equal: 1/4 everywhere
  one_hot,   // the mixing matrix is a permutation
  huge,      // differences beyond exp's range, pre gates near 0: eps decides the result
  saturated  // gates 0 and 1, from logits beyond exp's range of either sign
};
inline const WordParameter kLogitsWord{"logits",
                                       {"usual", "wide", "equal", "one_hot", "huge", "saturated"},
                                       "of the mixes: of order 1, four times as large, all of one "
                                       "size, a permutation, beyond the range of exp with gates "
                                       "near 0, beyond it with gates of 0 and 1"};
LogitRange logits_of(const Row& row);

std::vector<Parameter> stream_parameters();
// Strides in elements: from one slot of a token to the next, and from one token to the next.
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

// fp32 argument of the op: 10^-n, where n is the value of the parameter; 0 for n = 0.
FloatOfInteger negative_power_of_ten(std::string parameter);
// Throws BadRow if a row without tokens is not marked trivial = "empty", or if another row is.
void check_trivial_tokens(const Row& row);

struct StreamsFill {
  Norms norms = Norms::wide;
  bool has_eps = true;  // without eps, no token may have a mean square of zero
};
// streams: bf16 [tokens, 4, hidden], or [tokens, hidden] if one stream stands for all four.
void fill_streams(const Step& step, const StreamsFill& how, HostTensor& streams);
// fn: fp32 [columns, K]; base: [columns]; scale: [1] or [3]. 4 columns are gates alone (hc_head).
// 24 columns are 4 of pre, 4 of post and 16 of comb.
void fill_mixing(const Step& step, LogitRange logits, HostTensor& fn, HostTensor& scale,
                 HostTensor& base);
// post [4] and comb [4, 4] of one token, as mhc_post takes them. Real fill: random numbers. Other
// fills: comb is a cyclic permutation in which one entry is set to 1e-6, and post is 0 or 2.
void fill_coefficients(const Step& step, std::int64_t token, float* post, float* comb);
// Weights around 1.
void fill_norm_weight(const Step& step, HostTensor& weight);

// True if the outputs of dead (padded) tokens are promised, that is, compared: their inputs are
// finite and moderate.
bool promises_dead(const Step& step, bool has_eps);
// Which rows of a tensor [repeats, tokens, rows_per_token] are promised (compared). Empty: all are.
RowMask promised_tokens(const Step& step, bool has_eps, std::int64_t tokens,
                        std::int64_t rows_per_token, std::int64_t repeats = 1);

// Threads that the kernels give to a token (device/kernels/hyper_connection/hyper_connection.h,
// waves of 32).
double token_threads(std::int64_t hidden);

// Adapt an estimate to the step's fill. Adversarial: roundings may repeat, so that errors are not
// independent. Exact: a linear sum has no rounding error, and gated sums of +-2^k have a few values
// that repeat over the whole row.
void adapt_linear_sum(const Step& step, reference::Estimate& estimate);
void adapt_coefficients(const Step& step, reference::Estimate& estimate);
void adapt_gated_sum(const Step& step, reference::Estimate& estimate);

}  // namespace plumb::cases
