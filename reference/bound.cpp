// SPDX-License-Identifier: Apache-2.0
#include "reference/bound.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plumb::reference {

namespace {

constexpr double kLeastNormalF32 = 0x1p-126;  // bf16 has the same exponent range

// Sum of S_k^2 over the partial sums of `chains` sequential chains of m terms each and of the tree
// that joins them, for terms of mean mu and mean square v in random order: E[S_k^2] = k v + (k mu)^2.
double squared_partial_sums(double terms, double chains, double mu, double v) {
  const double m = terms / chains;
  double total = chains * (v * m * m / 2 + mu * mu * m * m * m / 3);
  for (double parts = chains / 2, length = 2 * m; parts >= 1; parts /= 2, length *= 2) {
    total += parts * (length * v + length * length * mu * mu);
  }
  return total;
}

}  // namespace

double unit_roundoff(Format format) {
  switch (format) {
    case Format::f64: return 0x1p-53;
    case Format::f32: return kUnitF32;
    case Format::tf32: return kUnitTf32;
    case Format::tf32_truncated: return kUnitTf32Truncated;
    case Format::bf16: return kUnitBf16;
  }
  return 0;
}

SumError sum_error(std::int64_t terms, double sum, double magnitudes, double squares,
                   const Numerics& numerics) {
  if (terms <= 1) return {};
  const double n = static_cast<double>(terms);
  const double u = unit_roundoff(numerics.accumulator);
  const double chains = std::clamp<double>(numerics.chains, 1, n);
  const double depth = std::ceil(n / chains) + std::ceil(std::log2(chains));
  SumError error;
  error.worst = u * depth * magnitudes;
  error.sigma = u * kUniformSigma *
                std::sqrt(squared_partial_sums(n, chains, sum / n, squares / n));
  return error;
}

void Estimate::resize(std::int64_t new_rows, std::int64_t new_columns) {
  rows = new_rows;
  columns = new_columns;
  const auto size = static_cast<std::size_t>(rows * columns);
  value.assign(size, 0);
  sigma.assign(size, 0);
  worst.assign(size, 0);
  row_mean_sigma.assign(static_cast<std::size_t>(rows), 0);
  row_systematic.assign(static_cast<std::size_t>(rows), 0);
}

double Estimate::arithmetic(std::int64_t i) const {
  return structured ? worst[i] : std::min(6 * sigma[i], worst[i]);
}

double Estimate::bound(std::int64_t i) const {
  const double error = arithmetic(i);
  const double shifted = shift.empty() ? 0 : std::abs(shift[i]);
  const double u = unit_roundoff(output);
  // A device may flush subnormal results and operands to zero.
  return u * (std::abs(value[i]) + shifted + error) + shifted + error + kLeastNormalF32;
}

}  // namespace plumb::reference
