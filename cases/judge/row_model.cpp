// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/row_model.h"

#include <algorithm>
#include <cmath>

#include "reference/rounding.h"

namespace plumb::cases {

namespace {

using reference::Estimate;
using reference::RoundedError;

// Limits of norm and direction, in standard deviations. Larger than kBiasSigmas, because a tensor
// has many rows.
constexpr double kRowSigmas = 6;

// Sums that one pass over a row collects.
struct Pass {
  double count = 0;
  double sigma = 0, sigma_square = 0;  // sums before the output rounding, for rho
  double value = 0, value_square = 0;  // sums of |value| and value^2
  double mean = 0, along = 0;          // sums of sign(value) * error and of value * error
  double bound_square = 0;
  bool unlimited = false;       // true if the error of an element is unknown
  WeightedSum equal, by_value;  // weights 1 and |value|
  ErrorLength length;
};

void add_element(const Estimate& estimate, std::int64_t i, Pass& pass) {
  const double value = estimate.value[i];
  const double magnitude = std::abs(value);
  // The reference is rounded too, in double precision, so an exact tie may fall on either side:
  // sigma is at least 2^-52 of the value.
  const double sigma =
      std::max(std::min(estimate.sigma[i], estimate.worst[i]), magnitude * 0x1p-52);
  pass.value += magnitude;
  pass.value_square += value * value;
  if (!(sigma < reference::kInfinity)) {
    pass.unlimited = true;
    return;
  }
  const double shift = estimate.shift.empty() ? 0 : estimate.shift[i];
  const RoundedError rounded = rounded_error(estimate.output, value + shift, sigma);
  const double error = shift + rounded.mean;
  const double bound = estimate.bound(i) + std::abs(shift);
  pass.sigma += sigma;
  pass.sigma_square += sigma * sigma;
  if (value != 0) pass.mean += value < 0 ? -error : error;
  pass.along += value * error;
  pass.bound_square += bound * bound;
  pass.equal.add(1, rounded);
  pass.by_value.add(magnitude, rounded);
  pass.length.add(sigma, shift, rounded);
}

// Correlation between the errors of two elements of a row, derived from the row's mean error.
double correlation(const Pass& pass, double row_mean_sigma) {
  const double pairs = pass.sigma * pass.sigma - pass.sigma_square;
  if (!(pairs > 0)) return 0;
  const double of_sum = pass.count * row_mean_sigma;
  return std::clamp((of_sum * of_sum - pass.sigma_square) / pairs, 0.0, 1.0);
}

void set_limits(const Pass& pass, double rho, double concentration, bool structured,
                RowModel& row) {
  const double most = std::sqrt(pass.bound_square);
  row.norm_limit = row.direction_limit = pass.unlimited ? reference::kInfinity : most;
  if (pass.unlimited || structured || row.norm == 0) return;
  // `systematic` covers a bias proportional to the value and a constant bias. `own_rounding` is the
  // judge's own double rounding: a quotient of two sums of `count` products, times the value.
  const double own_rounding = (2 * pass.count + 8) * 0x1p-53 * row.norm;
  const double systematic = row.allowance * row.norm / row.magnitude + own_rounding;
  const double across = pass.length.limit(kRowSigmas, rho, concentration) + systematic;
  row.direction_limit = std::min(most, across);
  const double along = std::abs(pass.along) / row.norm + systematic +
                       tail(kRowSigmas, pass.by_value.spread(rho, row.norm));
  // For the expected row y and an error of a along y and b across y: |y + error| - |y| lies between
  // a and a + b^2 / (2 (|y| + a)). This needs a small a.
  if (!(along < row.norm / 2)) return;
  row.norm_limit = std::min(most, along + across * across / (2 * (row.norm - along)));
}

}  // namespace

RowModel model_row(const Estimate& estimate, std::int64_t r) {
  Pass pass;
  for (std::int64_t i = r * estimate.columns; i < (r + 1) * estimate.columns; ++i) {
    if (!std::isfinite(estimate.value[i])) continue;
    ++pass.count;
    add_element(estimate, i, pass);
  }
  RowModel row;
  row.mean_predicted = !estimate.structured && !pass.unlimited &&
                       pass.count == static_cast<double>(estimate.columns);
  if (pass.count == 0) return row;
  constexpr double kFlushed = 0x1p-126;
  const double rho = correlation(pass, estimate.row_mean_sigma[r]);
  row.magnitude = pass.value / pass.count;
  row.norm = std::sqrt(pass.value_square);
  row.mean = pass.mean / pass.count;
  row.spread = pass.equal.spread(rho, pass.count);
  row.allowance = estimate.row_systematic[r] + kFlushed + pass.count * 0x1p-53 * row.magnitude;
  if (!estimate.row_factor.empty()) row.factor = estimate.row_factor[r];
  set_limits(pass, rho, estimate.row_concentration[r], estimate.structured, row);
  return row;
}

}  // namespace plumb::cases
