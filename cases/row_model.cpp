// SPDX-License-Identifier: Apache-2.0
#include "cases/row_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/rounding.h"

namespace plumb::cases {

namespace {

using reference::Estimate;
using reference::RoundedError;

constexpr double kRowSigmas = 6;  // of norm and direction: there are many rows

// Sum of weighted, possibly correlated elements: what its variance and its steps are made of.
struct Sums {
  double linear = 0, square = 0;       // of weight * standard deviation
  double steps = 0, largest_step = 0;  // of weight * step

  void add(double weight, double deviation, double step) {
    linear += weight * deviation;
    square += weight * weight * deviation * deviation;
    steps += weight * step;
    largest_step = std::max(largest_step, weight * step);
  }
  double variance(double rho) const { return (1 - rho) * square + rho * linear * linear; }
  double step(double rho) const { return (1 - rho) * largest_step + rho * steps; }
};

// Everything that one pass over a row collects.
struct Pass {
  double count = 0;
  double sigma = 0, sigma_square = 0;  // before the output rounding, for rho
  double value = 0, value_square = 0;  // sums of |value| and value^2
  double mean = 0, along = 0;          // sums of sign(value) * error and of value * error
  double second_moment = 0;            // sum of E[(result - value)^2]
  double fourth = 0;                   // sum of squared variances
  double largest_variance = 0, largest_shifted_step = 0;
  double bound_square = 0;
  Sums equal, by_value;  // weights 1 and |value|
};

void add_element(const Estimate& estimate, std::int64_t i, Pass& pass) {
  const double value = estimate.value[i];
  const double magnitude = std::abs(value);
  const double sigma = estimate.structured ? 0 : std::min(estimate.sigma[i], estimate.worst[i]);
  const double shift = estimate.shift.empty() ? 0 : estimate.shift[i];
  const RoundedError rounded = rounded_error(estimate.output, value + shift, sigma);
  const double error = shift + rounded.mean;
  const double bound = estimate.bound(i);
  pass.sigma += sigma;
  pass.sigma_square += sigma * sigma;
  pass.value += magnitude;
  pass.value_square += value * value;
  if (value != 0) pass.mean += value < 0 ? -error : error;
  pass.along += value * error;
  pass.second_moment += error * error + rounded.variance;
  pass.fourth += rounded.variance * rounded.variance;
  pass.largest_variance = std::max(pass.largest_variance, rounded.variance);
  if (shift != 0) pass.largest_shifted_step = std::max(pass.largest_shifted_step, rounded.step);
  pass.bound_square += bound * bound;
  const double deviation = std::sqrt(rounded.variance);
  pass.equal.add(1, deviation, rounded.step);
  pass.by_value.add(magnitude, deviation, rounded.step);
}

// Correlation between the errors of two elements of a row that explains the row's mean error.
double correlation(const Pass& pass, double row_mean_sigma) {
  const double pairs = pass.sigma * pass.sigma - pass.sigma_square;
  if (!(pairs > 0)) return 0;
  const double of_sum = pass.count * row_mean_sigma;
  return std::clamp((of_sum * of_sum - pass.sigma_square) / pairs, 0.0, 1.0);
}

// The error's length: P(|e|^2 > trace + 2 sqrt(t) |C| + 2 t |C|_2) <= exp(-t) for a normal e with
// covariance C (Laurent and Massart), t that of 6 standard deviations. C is diagonal but for what
// the elements of a row share. With errors that are sums of roundings, each shared along a vector
// that the value itself is made of (attention: p_i v_i), rho is at least 2/pi of the squared
// Frobenius norm of that part of C over its trace.
double error_length(const Pass& pass, double rho) {
  constexpr double kExponent = kRowSigmas * kRowSigmas / 2;
  const double trace = pass.second_moment;
  const double shared = std::min(1.0, std::sqrt(std::numbers::pi / 2 * rho)) * pass.equal.square;
  const double frobenius = std::sqrt(pass.fourth + shared * shared);
  const double widest = pass.largest_variance + shared;
  const double square = trace + 2 * std::sqrt(kExponent) * frobenius + 2 * kExponent * widest;
  // A value shifted to a tie can fall on its far side, which its second moment hardly knows.
  const double jumps = std::sqrt(2 * kRowSigmas) * pass.largest_shifted_step;
  return std::sqrt(square) + jumps;
}

void set_limits(const Pass& pass, double rho, double systematic, bool structured, RowModel& row) {
  const double most = std::sqrt(pass.bound_square);
  row.norm_limit = row.direction_limit = most;
  if (structured || row.norm == 0) return;
  const double across = error_length(pass, rho) + systematic;
  row.direction_limit = std::min(most, across);
  const double variance = pass.by_value.variance(rho) / pass.value_square;
  const double along = std::abs(pass.along) / row.norm + systematic +
                       tail(kRowSigmas, variance, pass.by_value.step(rho) / row.norm);
  // |y + a along + b across| - |y| lies between a and a + b^2 / (2 (|y| + a)).
  if (!(along < row.norm / 2)) return;
  row.norm_limit = std::min(most, along + across * across / (2 * (row.norm - along)));
}

}  // namespace

double tail(double k, double variance, double step) {
  const double exponent = k * k / 2;
  const double half = exponent * step / 3;
  return half + std::sqrt(half * half + 2 * exponent * variance);
}

RowModel model_row(const Estimate& estimate, std::int64_t r) {
  Pass pass;
  RowModel row;
  for (std::int64_t i = r * estimate.columns; i < (r + 1) * estimate.columns; ++i) {
    if (std::isfinite(estimate.value[i])) {
      ++pass.count;
      add_element(estimate, i, pass);
    } else {
      row.finite = false;
    }
  }
  if (pass.count == 0) return row;
  constexpr double kFlushed = 0x1p-126;
  const double rho = correlation(pass, estimate.row_mean_sigma[r]);
  row.mean = pass.mean / pass.count;
  row.variance = pass.equal.variance(rho) / (pass.count * pass.count);
  row.step = pass.equal.step(rho) / pass.count;
  row.allowance = estimate.row_systematic[r] + kFlushed;
  row.magnitude = pass.value / pass.count;
  row.norm = std::sqrt(pass.value_square);
  // A bias in proportion to the value and one that is the same everywhere both fit under this.
  const double systematic =
      pass.value == 0 ? 0 : row.allowance * pass.count * row.norm / pass.value;
  set_limits(pass, rho, systematic, estimate.structured, row);
  return row;
}

}  // namespace plumb::cases
