// SPDX-License-Identifier: Apache-2.0
//
// Members, logits and biases of the router ops.
//
//   exact: logits with exact scores (0 for -1000, and a few that the op names), and biases that
//     leave two experts either exactly equal or a multiple of 2^-9 apart
//   real: normal logits, rows of very different norm; biases of about a tenth, and in every other
//     step about -1, so that nearly all sums of score and bias are negative
//   adversarial: each row has a pattern of LogitRow, or of EdgeRow if the case says so; biases are
//     those that the case names, or change with the step
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
  same_in_groups,  // all groups have the biases of the first
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
  equal_groups,     // every second group equals the group before it
  ties_at_the_cut,  // about k / 2 larger logits, all others equal
  coarse,           // multiples of 1/8, as bf16 logits are
  some_nan,         // NaN of both signs
  some_infinite,    // +-infinity
  huge,             // 1e30 and -1e30 among normal ones
  very_negative,    // -1000, except for k - 1 experts
  vanishing,        // -25 .. -10: scores are close to 0
  few_groups,       // -inf, except in the first topk_group - 1 groups
  all_nan,
  all_low,  // -inf throughout
  count
};

// Patterns of logits for which the forms of softplus differ.
enum class EdgeRow {
  overflowing,   // a few of 90, 1e4 and 3e38: e^x overflows
  above_20,      // 25 .. 60, where x and ln(1 + e^x) are one number
  vanishing,     // about k / 2 of -8 .. -16; others -17 .. -80, where fp32 1 + e^x is 1
  all_vanished,  // all from -18 to -80
  count
};

struct RouterShape {
  // Throws BadRow if topk exceeds the number of experts.
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
  std::vector<double> exact_logits = {};  // logits of the exact fill
  std::optional<BiasKind> bias = {};      // in adversarial fills; none: changes by step
  bool edges = false;                     // adversarial rows are patterns of EdgeRow

 private:
  void read(const Row& row);
};

struct RouterSizes {
  Formula tokens, experts, topk;
};
// Adds to an op's table the logits, their sizes and the scale of the weights.
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

// Choices of the ops whose score is sqrt(softplus(logit)).
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

// Choices of the ops that select experts by their scores.
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
// Tells the judge whether the declared choices leave ties and order free.
template <class P>
void free_choices(const P& p, reference::ScoredChoices& choices) {
  choices.experts.free_ties = choices.group.free_ties = p.ties == PLUMB_ROUTER_TIES_ANY;
  choices.free_order = p.order == PLUMB_ROUTER_ORDER_ANY;
}

// Logits of the exact fill. Their scores are 0 and 8, and 16 if softplus is linear at 256 (or e^256
// overflows).
std::vector<double> exact_softplus_logits(const reference::SoftplusRules& rules);

// Parameters of router rows: tokens, experts, topk, row_gap, renormalize, bf16, and scale_permille,
// the routed scaling factor in thousandths.
std::vector<Parameter> router_parameters(std::int64_t experts, std::int64_t topk,
                                         std::int64_t scale_permille);

// Fills live and dead rows. Gaps between rows hold NaN, infinity and 3e38.
void fill_router_logits(const RouterShape& shape, const Step& step, HostTensor& logits);
void fill_router_bias(const RouterShape& shape, const Step& step, HostTensor& bias);

reference::Logits router_logits(const RouterShape& shape, const HostTensor& logits);
// Rows whose logits have no NaN. With a NaN any experts may be right, so that the weights of such a
// row are not promised.
RowMask rows_without_nan(const reference::Logits& logits);

// Simulated work of one token: `reductions` over a wave, and `sweeps` evaluations of every score.
double router_token_cost(const RouterShape& shape, double reductions, double sweeps,
                         const device::Properties& device);

}  // namespace plumb::cases
