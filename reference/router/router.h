// SPDX-License-Identifier: Apache-2.0
//
// What the router ops share: scores of logits and the weights made of them, as tracked arrays.
// Scores enter comparisons, so their error decides which selection is right.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/bound.h"
#include "reference/router/scored_choices.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// fp32 or bf16 [tokens, experts].
struct Logits {
  const void* data = nullptr;
  bool bf16 = false;
  std::int64_t tokens = 0, experts = 0, row_stride = 0;

  std::uint32_t bits(std::int64_t token, std::int64_t expert) const;
  double at(std::int64_t token, std::int64_t expert) const;
  bool has_nan(std::int64_t token) const;
  bool has(std::int32_t expert) const { return expert >= 0 && expert < experts; }
  // -infinity for what is no expert: its score is 0.
  double at_expert(std::int64_t token, std::int32_t expert) const;
  bool has_all(const std::int32_t* ids, std::int64_t count) const;
};

enum class Divisor {
  one,            // not renormalised
  sum_and_1e_20,  // sum + 1e-20
  sum,
  sum_if_positive  // sum, or 1 where it is 0 or NaN
};

// What kernels of sqrt(softplus) do differently.
struct SoftplusRules {
  bool linear_above_20 = true;  // else e^x, and with it the score, is infinite above 88.7
  bool log1p = false;  // else the logarithm of the rounded 1 + e^x: its error is absolute, and it
                       // is exactly 0 where the sum is 1, below -16.64
  bool nan_is_zero = true;                     // the score of a NaN logit
  Divisor divisor = Divisor::sum_if_positive;  // of renormalised weights
};
// sqrt(ln(1 + e^x)). Below -104 e^x is 0 in fp32, and so is the score.
Tracked sqrt_softplus_scores(const Tracked& logits, const SoftplusRules& rules);

// The rows of some tokens.
struct RouterRows {
  std::int64_t begin = 0, end = 0, columns = 1;
  const Numerics* numerics = nullptr;

  // of(token, column), [end - begin, columns]. Sums of them are in any order.
  Tracked array(const std::function<double(std::int64_t token, std::int64_t column)>& of) const;
};
// body(rows) for each block of tokens, on all cores.
void for_token_blocks(std::int64_t tokens, std::int64_t columns, const Numerics& numerics,
                      const std::function<void(const RouterRows& rows)>& body);

// Weights [tokens, topk]: scores / divisor * scale, or `otherwise` where is_chosen is false.
struct ChosenExperts {
  std::int64_t tokens = 0, topk = 1;
  Divisor divisor = Divisor::one;
  double scale = 1;
  std::function<Tracked(const RouterRows& rows)> scores;
  std::function<bool(std::int64_t token, std::int64_t place)> is_chosen;
  std::function<double(std::int64_t token, std::int64_t place)> otherwise;
};
Estimate weights_of(const ChosenExperts& experts, const Numerics& numerics);

// Bits of an expert's logit and bias: where they are equal, so is everything made of them.
std::uint64_t identity_of_bits(const Logits& logits, const float* bias, std::int64_t token,
                               std::int64_t expert);

}  // namespace plumb::reference
