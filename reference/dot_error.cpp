// SPDX-License-Identifier: Apache-2.0
#include "reference/dot_error.h"

#include <algorithm>
#include <cmath>

namespace plumb::reference {

SumErrorFactors sum_error_factors(std::int64_t terms, const Numerics& numerics, bool any_order) {
  const auto error = any_order ? sum_error : mean_sum_error;
  const SumError scattered = error(terms, 0, 1, 1, numerics);
  const SumError alike = error(terms, 1, 1, 0, numerics);
  return {square(scattered.sigma), square(alike.sigma), scattered.worst, 0};
}

double rounded_additions(const double* q, const double* k, std::int64_t dims) {
  const Eigen::Map<const Eigen::ArrayXd> queries(q, dims), keys(k, dims);
  const double size =
      std::max(std::abs((queries * keys).sum()), std::sqrt((queries * keys).square().sum()));
  if (!(size > 0) || !std::isfinite(size)) return 1;
  const int last_place = std::ilogb(size) + 1 - 23;
  const double binades = 8;  // a random walk crosses a binade about once per doubling of its length
  double rounded = binades;
  for (std::int64_t d = 0; d < dims; ++d) {
    if (lowest_bit(q[d]) + lowest_bit(k[d]) < last_place) ++rounded;
  }
  return std::min(1.0, rounded / static_cast<double>(dims));
}

MatrixTerms matrix_dot_terms(const double* q, const double* k, std::int64_t dims,
                             const Numerics& numerics) {
  const Eigen::Map<const Eigen::ArrayXd> queries(q, dims), keys(k, dims);
  const Eigen::ArrayXd terms = queries * keys;
  const double size = std::max(std::abs(terms.sum()), std::sqrt(terms.square().sum()));
  if (!(size > 0) || !std::isfinite(size)) return {};
  const MatrixUnit unit = matrix_unit(numerics);
  const int exponent = std::ilogb(size);
  double cut = 0, signs = 0, steps = 0;
  std::int64_t last_step = -1;
  for (std::int64_t d = 0; d < dims; ++d) {
    const int lowest = lowest_bit(q[d]) + lowest_bit(k[d]);
    if (lowest < exponent - unit.kept) {
      cut += 1;
      signs += std::copysign(1.0, terms[d]);
    }
    if (lowest < exponent + 1 - unit.bits && d / unit.step != last_step) {
      steps += 1;
      last_step = d / unit.step;
    }
  }
  const auto n = static_cast<double>(dims);
  const double m = std::ceil(n / unit.step);
  // + 1: a sum that crosses a power of two is rounded once more.
  const double share = std::min(1.0, (cut + 1) / n);
  return {.rounding = unit.kept < unit.bits ? 1 / std::sqrt(m) : std::min(1.0, (steps + 1) / m),
          .cut = share,
          .net = share * std::max(1.0, std::abs(signs)) / std::max(1.0, cut)};
}

SumErrorFactors dot_error_factors(double rounded_share, std::int64_t dims, const Numerics& numerics,
                                  bool any_order) {
  Numerics chain = numerics;
  chain.chains = 1;
  const std::int64_t chains = std::clamp<std::int64_t>(numerics.chains, 1, dims);
  const SumErrorFactors one = sum_error_factors(dims / chains, chain, any_order);
  SumErrorFactors all = sum_error_factors(dims, numerics, any_order);
  all.of_squares -= (1 - rounded_share) * one.of_squares;
  all.of_total -= (1 - rounded_share) * one.of_total / static_cast<double>(chains);
  return all;
}

}  // namespace plumb::reference
