// SPDX-License-Identifier: Apache-2.0
//
// Members, logits and biases of the router ops.
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
      {"scale_permille", [](std::int64_t n) { return static_cast<float>(n) / 1000.0F; }, 1 << 20});
  t.input("logits", &P::logits, {sizes.tokens, sizes.experts}, "of each expert")
      .elements(dtype_if(bf16, Dtype::bf16, Dtype::f32))
      .strides({stride, 1});
  return sizes;
}

// Rows of `op` have these parameters: tokens, experts, topk, row_gap, renormalize, bf16, and
// scale_permille, the routed scaling factor in thousandths; and the word `bias`.
std::vector<Parameter> router_parameters(std::int64_t experts, std::int64_t topk,
                                         std::int64_t scale_permille);

// Live and dead rows; between rows lie NaN, infinity and the largest finite number.
void fill_router_logits(const RouterShape& shape, const Step& step, HostTensor& logits);
void fill_router_bias(const RouterShape& shape, const Step& step, HostTensor& bias);

reference::Logits router_logits(const RouterShape& shape, const HostTensor& logits);

// Simulated work of one token: `picks` reductions over a wave, `sweeps` evaluations of every score.
double router_token_cost(const RouterShape& shape, double reductions, double sweeps,
                         const device::Properties& device);

}  // namespace plumb::cases
