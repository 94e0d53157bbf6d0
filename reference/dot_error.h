// SPDX-License-Identifier: Apache-2.0
//
// Rounding error of the scores q.k. Products of bf16 queries and fp8 or bf16 keys are short numbers
// that are exact in fp32, so most additions of a sequential sum are exact as well. An error model
// in which each addition rounds would be several times too wide.
#pragma once

#include <Eigen/Core>
#include <bit>
#include <cstdint>

#include "reference/bound.h"
#include "reference/matrix_error.h"

namespace plumb::reference {

// any_order = false: without the allowance for an unlucky order, as mean_sum_error.
SumErrorFactors sum_error_factors(std::int64_t terms, const Numerics& numerics,
                                  bool any_order = true);

// Exponent of the lowest set bit of x. For 0 it is 4096, larger than any exponent.
inline int lowest_bit(double x) {
  constexpr int kZero = 4096;
  if (x == 0) return kZero;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t mantissa = (bits & 0xfffffffffffff) | std::uint64_t{1} << 52;
  return static_cast<int>(bits >> 52 & 2047) - 1075 + std::countr_zero(mantissa);
}

// Share of the additions of a sequential q.k that round: those of products whose lowest bit is
// below the last place of the partial sum, and those that move a sum to the next binade.
double rounded_additions(const double* q, const double* k, std::int64_t dims);

// Shares of instructions and products of q.k that lose bits in the declared matrix unit.
MatrixTerms matrix_dot_terms(const double* q, const double* k, std::int64_t dims,
                             const Numerics& numerics);

// Error factors of a sum of `dims` terms if only `rounded_share` of the sequential additions round.
// The tree that joins chains adds long sums, so all of its additions round.
SumErrorFactors dot_error_factors(double rounded_share, std::int64_t dims, const Numerics& numerics,
                                  bool any_order = true);

}  // namespace plumb::reference
