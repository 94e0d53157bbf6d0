// SPDX-License-Identifier: Apache-2.0
//
// Members, logits and biases of the router ops.
//
//   exact        logits whose scores are exact (-1000: 0, and a few more that the op names), biases
//                that leave two experts either certainly equal or a multiple of 2^-9 apart
//   real         normal logits, rows of very different norm; biases of about a tenth, in every
//   other
//                step about -1, so that nearly all choices are negative
//   adversarial  by row one of the patterns below, of LogitRow or, as the case says, of EdgeRow;
//                biases as the case says, or by step
#pragma once

#include <plumb/ops/router.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cases/tables/row.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/tensor.h"
#include "reference/router/router.h"

namespace plumb::cases {

enum class BiasKind {
  none,
  same_in_groups,  // each group has the biases of the first
  large,           // hundreds, which swallow the last bits of a score
  negative,
  count
};

inline const WordParameter kBias{
    "bias",
    {"none", "same_in_groups", "large", "negative"},
    "of the experts under the adversarial fill; else another kind for each set of inputs"};
inline const WordParameter kRouterLogits{
    "logits",
    {"softplus_edges"},
    "the adversarial fill is made of values around the bends of softplus"};

enum class LogitRow {
  all_equal,
  two_values,
  equal_groups,     // each second group repeats the one in front of it
  ties_at_the_cut,  // half of k winners, the others equal
  coarse,           // multiples of 1/8, as bf16 logits are
  some_nan,         // of both signs
  some_infinite,    // of both signs
  huge,             // 1e30 and -1e30 among normal ones
  very_negative,    // -1000 throughout, but for k - 1 experts
  vanishing,        // -25 .. -10: the scores are noise
  few_groups,       // finite in all but the last n_group - topk_group + 1 groups
  all_nan,
  all_low,  // -inf throughout
  count
};

// Logits where forms of softplus differ.
enum class EdgeRow {
  overflowing,  // a few of 90, 1e4 and 3e38: e^x overflows
  above_20,     // 25 .. 60, where x and ln(1 + e^x) are one number
  vanishing,    // half of k of -8, -12 and -16, the others of -17, -20 and -80: 1 + e^x is 1 or not
  all_vanished,  // -18 .. -80
  count
};

struct RouterShape {
  // Throws BadRow.
  template <class P>
  RouterShape(const Row& row, const P& p)
      : tokens(p.tokens),
        experts(p.experts),
        row_stride(p.logits_row_stride),
        topk(p.topk),
        bf16(p.logits_format == PLUMB_BF16) {
    read(row);
  }

  std::int64_t tokens, experts, row_stride;
  std::int64_t n_group = 1, topk_group = 1, topk;
  bool bf16;
  std::vector<double> exact_logits = {};  // of the exact fill
  std::optional<BiasKind> bias = {};      // of the adversarial fill
  bool edges = false;                     // the adversarial fill is made of EdgeRow

 private:
  void read(const Row& row);
};

struct RouterSizes {
  Formula tokens, experts, topk;
};
// The logits, their sizes and the scale of the weights.
template <class P>
RouterSizes add_router(TablePart<P>& t) {
  const RouterSizes sizes{t.scalar("tokens", &P::tokens), t.scalar("experts", &P::experts),
                          t.scalar("topk", &P::topk)};
  const Formula stride =
      t.scalar("logits_row_stride", &P::logits_row_stride, sizes.experts + parameter("row_gap"));
  const Formula bf16 = parameter("bf16");
  t.scalar("logits_format", &P::logits_format, bf16 * (PLUMB_BF16 - PLUMB_F32) + PLUMB_F32);
  t.scalar("renormalize", &P::renormalize);
  t.real(
      "routed_scaling_factor", &P::routed_scaling_factor,
      {"scale_permille", [](std::int64_t n) { return static_cast<float>(n) / 1000.0F; }, 1 << 20},
      "of the weights");
  t.input("logits", &P::logits, {sizes.tokens, sizes.experts}, "of each expert")
      .elements(dtype_if(bf16, Dtype::bf16, Dtype::f32))
      .strides({stride, 1});
  return sizes;
}

// The choices of the ops whose score is sqrt(softplus(logit)).
inline const ContractChoice kSoftplus{
    "softplus", {"threshold_20", "none"}, "above 20: x itself, or ln(1 + e^x) until e^x overflows"};
inline const ContractChoice kSoftplusSmall{
    "softplus_small", {"log_1p_exp", "log1p"}, "below 0: 1 + e^x is rounded, or e^x is kept"};
inline const ContractChoice kNanScore{"nan_score", {"zero", "nan"}, "score of a NaN logit"};
inline const ContractChoice kZeroSum{
    "zero_sum",
    {"one", "nan", "epsilon"},
    "divisor of weights: the sum, or 1 where it is not above 0; the sum; the sum + 1e-20"};
template <class P>
void add_softplus_choices(TablePart<P>& t) {
  t.choice("softplus", &P::softplus, kSoftplus);
  t.choice("softplus_small", &P::softplus_small, kSoftplusSmall);
  t.choice("nan_score", &P::nan_score, kNanScore);
  t.choice("zero_sum", &P::zero_sum, kZeroSum);
}
template <class P>
reference::SoftplusRules softplus_rules(const P& p) {
  return {.linear_above_20 = p.softplus == PLUMB_SOFTPLUS_THRESHOLD_20,
          .log1p = p.softplus_small == PLUMB_SOFTPLUS_LOG1P,
          .nan_is_zero = p.nan_score == PLUMB_NAN_SCORE_ZERO,
          .divisor = p.zero_sum == PLUMB_ZERO_SUM_ONE   ? reference::Divisor::sum_if_positive
                     : p.zero_sum == PLUMB_ZERO_SUM_NAN ? reference::Divisor::sum
                                                        : reference::Divisor::sum_and_1e_20};
}

// The choices of the ops that choose experts.
inline const ContractChoice kRouterTies{
    "ties",
    {"lower_id", "any"},
    "which of experts with equal scores + biases is chosen, and of groups",
    {{"lower_id", "any", "any of them may be chosen"}}};
inline const ContractChoice kRouterOrder{"order",
                                         {"descending", "any"},
                                         "of a token's experts, by score + bias",
                                         {{"descending", "any", "any order is allowed"}}};
template <class P>
void add_expert_choices(TablePart<P>& t) {
  t.choice("ties", &P::ties, kRouterTies);
  t.choice("order", &P::order, kRouterOrder);
}
// Tells the judge what the declared values leave free.
template <class P>
void free_choices(const P& p, reference::ScoredChoices& choices) {
  choices.experts.free_ties = choices.group.free_ties = p.ties == PLUMB_ROUTER_TIES_ANY;
  choices.free_order = p.order == PLUMB_ROUTER_ORDER_ANY;
}

// Logits of the exact fill: scores 0 and 8, and 16 where 256 does not overflow.
std::vector<double> exact_softplus_logits(const reference::SoftplusRules& rules);

// Rows of `op` have these parameters: tokens, experts, topk, row_gap, renormalize, bf16, and
// scale_permille, the routed scaling factor in thousandths. Words are `bias`, and `logits`, which
// is "softplus_edges" or left out.
std::vector<Parameter> router_parameters(std::int64_t experts, std::int64_t topk,
                                         std::int64_t scale_permille);

// Live and dead rows; between rows lie NaN, infinity and the largest finite number.
void fill_router_logits(const RouterShape& shape, const Step& step, HostTensor& logits);
void fill_router_bias(const RouterShape& shape, const Step& step, HostTensor& bias);

reference::Logits router_logits(const RouterShape& shape, const HostTensor& logits);
// Weights of a token for which any experts are right because of a NaN are not promised.
RowMask rows_without_nan(const reference::Logits& logits);

// Simulated work of one token: `picks` reductions over a wave, `sweeps` evaluations of every score.
double router_token_cost(const RouterShape& shape, double reductions, double sweeps,
                         const device::Properties& device);

}  // namespace plumb::cases
