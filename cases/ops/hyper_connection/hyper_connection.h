// SPDX-License-Identifier: Apache-2.0
//
// What the cases of the hyper-connection ops share: the layout of the residual streams, how
// they and the mixing parameters are filled, and which rows are promised.
//
//   exact        streams of +-2^k with one k per token: mean square 4^k; weights of small integers
//   real         tokens of very different norm, one column in 64 an outlier
//   adversarial  zero, equal, alternating, one spike, very large, very small tokens, in turn
//
// Gaps between slots and tokens hold NaN.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/row.h"
#include "cases/tensors/tensor.h"
#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::cases {

enum class Norms {
  wide,  // from 2^-10 to 2^10, at random: another token's sum is far off
  ramp,  // token i scaled by 1 + i: every token differs from every other
};
// Throw BadRow on an unknown word; "" is the first.
Norms norms_of(const Row& row);

enum class LogitRange {
  usual,    // mixes, scales and bases of order 1
  wide,     // four times as large: Sinkhorn converges slowly
  equal,    // all comb logits equal: 1/4 everywhere
  one_hot,  // a permutation
  huge      // differences beyond exp's range, closed gates: eps decides
};
LogitRange logits_of(const Row& row);

struct StreamsLayout {
  std::int64_t tokens = 0, hidden = 0, slots = reference::kStreams, slot_gap = 0, token_gap = 0;
  explicit StreamsLayout(const Row& row);
  static StreamsLayout one_stream(const Row& row);  // that stands for four
  std::int64_t slot_stride() const { return hidden + slot_gap; }
  std::int64_t token_stride() const { return slots * slot_stride() + token_gap; }
  TensorSpec spec(std::string_view name) const;
  reference::Streams view(const HostTensor& tensor) const;
};
std::vector<Parameter> stream_parameters();

// 10^-n of the parameter, as the op's fp32 argument; 0 for n = 0.
float negative_power_of_ten(const Row& row, std::string_view parameter);
// Throws BadRow unless Row::trivial says whether there are no tokens.
void check_trivial_tokens(const Row& row, std::int64_t tokens);

struct StreamsFill {
  Norms norms = Norms::wide;
  bool has_eps = true;  // without one, no token may have a mean square of zero
};
void fill_streams(const StreamsLayout& layout, const Step& step, const StreamsFill& how,
                  HostTensor& streams);
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
