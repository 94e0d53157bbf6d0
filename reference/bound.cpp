// SPDX-License-Identifier: Apache-2.0
#include "reference/bound.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plumb::reference {

namespace {

// n terms with mean mu and variance w are added in random order. The sum of any k of them has the
// mean square
//   E[S_k^2] = (k mu)^2 + k (n - k) / (n - 1) w,
// because k terms are drawn without replacement. At k = n the sum is fixed.
//
// Returns the sum of E[S_k^2] over all additions that round: `chains` sequential chains of m terms
// each and the tree that joins the chains. The first term of a chain is stored without rounding, so
// the k = 1 term is subtracted from sum k = m (m + 1) / 2 and from sum k^2 = m (m + 1) (2 m + 1) /
// 6.
//
// `unlucky` allows for unlucky orders, because the returned sum depends on the order. In one long
// chain its random part is w n^2 times the integral x of a squared Brownian bridge, which has mean
// 1/6 and tail exp(-pi^2 x / 2). An error that is normal for a given x then has the tail exp(-pi t
// / (sqrt(6) sigma)). That tail reaches exp(-18), the probability of 6 sigma of a normal error, at
// t = 14 sigma; or at 10.4 sigma, because the root mean square of a rounding over a binade is 0.74
// of the largest one. So one chain needs the factor 3 = (10.4 / 6)^2. Many chains average their
// integrals and need no factor. 1 + 4 / (chains + 1) interpolates between the two.
double squared_partial_sums(double n, double chains, double mu, double w, double unlucky) {
  const double m = n / chains;
  const double lengths = m * (m + 1) / 2 - 1;
  const double squared_lengths = m * (m + 1) * (2 * m + 1) / 6 - 1;
  const double by_chance = w * (n * lengths - squared_lengths) / (n - 1);
  double total = chains * (mu * mu * squared_lengths + unlucky * by_chance);
  for (double k = m; k < n;) {
    k = std::min(2 * k, n);
    total += n / k * (k * k * mu * mu + k * (n - k) / (n - 1) * w);
  }
  return total;
}

SumError error_of_sum(std::int64_t terms, double sum, double magnitudes, double squares,
                      const Numerics& numerics, bool any_order) {
  if (terms <= 1) return {};
  const double n = static_cast<double>(terms);
  const double u = unit_roundoff(numerics.accumulator);
  const double chains = std::clamp<double>(numerics.chains, 1, n);
  const double depth = std::ceil(n / chains) - 1 + std::ceil(std::log2(chains));
  SumError error;
  error.worst = u * depth * magnitudes;
  // The error of an addition with result S is uniform with a largest magnitude of u |S|.
  const double mu = sum / n;
  const double w = std::max(0.0, squares / n - mu * mu);
  const double unlucky = any_order ? 1 + 4 / (chains + 1) : 1;
  error.sigma = u * kUniformSigma * std::sqrt(squared_partial_sums(n, chains, mu, w, unlucky));
  return error;
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

OperandError scaled_operand_error(Format format) {
  OperandError error{kUniformSigma * kUnitF32, 0, kUnitF32};
  if (format == Format::f32 || format == Format::f64) return error;
  const double unit = unit_roundoff(format);
  error.worst += unit;
  if (format == Format::tf32_truncated) error.bias = unit / 2;
  error.sigma = std::hypot(error.sigma, kUniformSigma * (unit - error.bias));
  return error;
}

SumError sum_error(std::int64_t terms, double sum, double magnitudes, double squares,
                   const Numerics& numerics) {
  return error_of_sum(terms, sum, magnitudes, squares, numerics, true);
}

SumError mean_sum_error(std::int64_t terms, double sum, double magnitudes, double squares,
                        const Numerics& numerics) {
  return error_of_sum(terms, sum, magnitudes, squares, numerics, false);
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
  row_concentration.assign(static_cast<std::size_t>(rows), 0);
  row_factor.assign(static_cast<std::size_t>(rows), 0);
}

double Estimate::arithmetic(std::int64_t i) const {
  return structured ? worst[i] : std::min(6 * sigma[i], worst[i]);
}

double Estimate::centre(std::int64_t i) const {
  return shift.empty() || !std::isfinite(value[i]) ? value[i] : value[i] + shift[i];
}

double Estimate::bound(std::int64_t i) const {
  const double error = arithmetic(i);
  // kLeastNormalF32: a device may flush subnormal results and operands to zero.
  return unit_roundoff(output) * (std::abs(centre(i)) + error) + error + kLeastNormalF32;
}

}  // namespace plumb::reference
