// SPDX-License-Identifier: Apache-2.0
//
// Rounding error of the scores q.k. Products of bf16 queries and fp8 or bf16 keys are exact in fp32
// and short, so most additions of a sequential sum are exact as well; a model that rounds every
// step would allow several times what happens.
#pragma once

#include <Eigen/Core>
#include <bit>
#include <cstdint>

#include "reference/bound.h"
#include "reference/matrix_error.h"

namespace plumb::reference {

SumErrorFactors sum_error_factors(std::int64_t terms, const Numerics& numerics);

// Exponent of the lowest bit set in a number; 4096, far above everything, for 0.
inline int lowest_bit(double x) {
  constexpr int kZero = 4096;
  if (x == 0) return kZero;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t mantissa = (bits & 0xfffffffffffff) | std::uint64_t{1} << 52;
  return static_cast<int>(bits >> 52 & 2047) - 1075 + std::countr_zero(mantissa);
}

// Share of the additions in q.k that round, if done one after the other: those of products whose
// lowest bit is below the last place of partial sums, and those that move a sum to the next binade.
double rounded_additions(const double* q, const double* k, std::int64_t dims);

// What a matrix unit loses of q.k.
MatrixTerms matrix_dot_terms(const double* q, const double* k, std::int64_t dims,
                             const Numerics& numerics);

// The factors for sums of `dims` terms of whose sequential additions only a share rounds. The tree
// that joins chains adds long sums: all of its additions round.
SumErrorFactors dot_error_factors(double rounded_share, std::int64_t dims,
                                  const Numerics& numerics);

}  // namespace plumb::reference
