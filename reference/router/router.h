// SPDX-License-Identifier: Apache-2.0
//
// What the router ops share: scores of logits and the weights made of them, with the error that
// honest fp32 arithmetic may have. Scores enter comparisons, so their error decides which selection
// is right, and is kept per expert.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/router/scored_choices.h"

namespace plumb::reference {

// fp32 or bf16 [tokens, experts].
struct Logits {
  const void* data = nullptr;
  bool bf16 = false;
  std::int64_t tokens = 0, experts = 0, row_stride = 0;

  std::uint32_t bits(std::int64_t token, std::int64_t expert) const;
  double at(std::int64_t token, std::int64_t expert) const;
  bool has_nan(std::int64_t token) const;
};

// A computed number: exact value, standard deviation and largest size of its error.
struct Score {
  double value = 0, sigma = 0, worst = 0;
};

// 1 / (1 + e^-x). Both usual forms are honest, this one and tanh(x / 2) / 2 + 1/2, whose error is
// absolute: what is left of a small score is then noise.
Score sigmoid_score(double x, const Numerics& numerics);

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
Score sqrt_softplus_score(double x, const SoftplusRules& rules, const Numerics& numerics);

// The sum of a score and an exact number, rounded to fp32.
Score add(const Score& score, double bias);
// (score + bias) - bias in fp32.
Score recovered(const Score& score, double bias);
// Rounded to bf16. Where the error cannot reach a tie nothing of it is left.
Score rounded_to_bf16(const Score& score);

void store(const Score& score, std::uint64_t identity, Candidates& candidates, std::int64_t at);
// Bits of an expert's logit and bias: where they are equal, so is everything made of them.
std::uint64_t identity_of_bits(const Logits& logits, const float* bias, std::int64_t token,
                               std::int64_t expert);
bool are_experts(const std::int32_t* ids, std::int32_t count, std::int64_t experts);

// Row `row` of `weights`, already sized: scores[i] * scale / divisor.
void estimate_weights(const std::vector<Score>& scores, Divisor divisor, double scale,
                      const Numerics& numerics, std::int64_t row, Estimate& weights);

}  // namespace plumb::reference
