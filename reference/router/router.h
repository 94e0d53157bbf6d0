// SPDX-License-Identifier: Apache-2.0
//
// Code shared by the router ops: scores of logits and the weights computed from them, as tracked
// arrays. Scores are compared with each other, so their errors decide which selections are right.
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
  // The logit of `expert`, or -infinity (score 0) if the id is outside [0, experts).
  double at_expert(std::int64_t token, std::int32_t expert) const;
  bool has_all(const std::int32_t* ids, std::int64_t count) const;
};

enum class Divisor {
  one,            // weights are not renormalised
  sum_and_1e_20,  // sum + 1e-20
  sum,
  sum_if_positive  // sum, or 1 if the sum is 0 or NaN
};

// Choices in which kernels of sqrt(softplus) differ.
struct SoftplusRules {
  // softplus(x) = x above 20. If false, e^x and the score are infinite above 88.7.
  bool linear_above_20 = true;
  // Uses log1p(e^x). Else uses the logarithm of the rounded 1 + e^x: its error is absolute, and it
  // is exactly 0 below -16.64, where the rounded sum is 1.
  bool log1p = false;
  bool nan_is_zero = true;                     // a NaN logit has the score 0, else NaN
  Divisor divisor = Divisor::sum_if_positive;  // divisor of renormalised weights
};
// sqrt(ln(1 + e^x)). Below x = -104, e^x is 0 in fp32 and so is the score.
Tracked sqrt_softplus_scores(const Tracked& logits, const SoftplusRules& rules);

// The rows of tokens [begin, end).
struct RouterRows {
  std::int64_t begin = 0, end = 0, columns = 1;
  const Numerics* numerics = nullptr;

  // Array of of(token, column), [end - begin, columns]. Sums over it may be added in any order.
  Tracked array(const std::function<double(std::int64_t token, std::int64_t column)>& of) const;
};
// Calls body(rows) for each block of tokens, on all cores.
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

// Bits of an expert's logit and bias. Experts with equal bits have equal scores in every
// implementation.
std::uint64_t identity_of_bits(const Logits& logits, const float* bias, std::int64_t token,
                               std::int64_t expert);

}  // namespace plumb::reference
