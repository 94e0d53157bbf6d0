// SPDX-License-Identifier: Apache-2.0
//
// Logits and biases for the router ops.
//
//   exact        logits whose scores are exact (-1000: 0, and a few more that the op names), biases
//                that leave two experts either certainly equal or a multiple of 2^-9 apart
//   real         normal logits, rows of very different norm; biases of about a tenth, in every
//   other
//                step about -1, so that nearly all choices are negative
//   adversarial  by row one of the patterns below; biases as the case says, or by step
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/row.h"
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

struct RouterShape {
  std::int64_t tokens = 0, experts = 0, row_gap = 0;
  std::int64_t n_group = 1, topk_group = 1, topk = 1;
  bool bf16 = false;
  std::vector<double> exact_logits;   // of the exact fill
  std::optional<BiasKind> bias = {};  // of the adversarial fill

  std::int64_t row_stride() const { return experts + row_gap; }
  TensorSpec logits() const;
};

// Rows of `op` have these parameters: tokens, experts, topk, row_gap, renormalize, bf16, and
// scale_permille, the routed scaling factor in thousandths; and the word `bias`.
std::vector<Parameter> router_parameters(std::int64_t experts, std::int64_t topk,
                                         std::int64_t scale_permille);
RouterShape router_shape(const Row& row);

// Live and dead rows; between rows lie NaN, infinity and the largest finite number.
void fill_router_logits(const RouterShape& shape, const Step& step, HostTensor& logits);
void fill_router_bias(const RouterShape& shape, const Step& step, HostTensor& bias);

reference::Logits router_logits(const RouterShape& shape, const HostTensor& logits);

// Simulated work of one token: `picks` reductions over a wave, `sweeps` evaluations of every score.
double router_token_cost(const RouterShape& shape, double reductions, double sweeps,
                         const device::Properties& device);

}  // namespace plumb::cases
