// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/error_spread.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plumb::cases {

double tail(double k, const Spread& spread) {
  const double exponent = k * k / 2;
  const double half = exponent * spread.step / 3;
  const double bernstein = half + std::sqrt(half * half + 2 * exponent * spread.variance);
  return std::min(bernstein, k * std::sqrt(spread.variance) + spread.steps);
}

void WeightedSum::add(double weight, const reference::RoundedError& error) {
  const double slope = weight * error.slope;
  const double square = weight * weight * error.variance;
  const double rest_square = std::max(0.0, square - slope * slope);
  variance_ += square;
  slope_ += slope;
  slope_square_ += slope * slope;
  rest_ += std::sqrt(rest_square);
  rest_square_ += rest_square;
  steps_ += weight * error.step;
  largest_step_ = std::max(largest_step_, weight * error.step);
}

Spread WeightedSum::spread(double rho, double divisor) const {
  const double variance = variance_ + rho * (slope_ * slope_ - slope_square_) +
                          rho * rho * (rest_ * rest_ - rest_square_);
  const double step = largest_step_ + rho * rho * (steps_ - largest_step_);
  return {variance / (divisor * divisor), step / divisor, steps_ / divisor};
}

void NormalLength::add(double mean, double variance) {
  mean_square_ += mean * mean;
  variance_ += variance;
  cross_ += mean * mean * variance;
  variance_square_ += variance * variance;
  widest_ = std::max(widest_, variance);
}

// For x with mean m and covariance C: P(|x|^2 > trace + |m|^2 + 2 sqrt(t (|C|^2 + 2 m C m)) + 2 t
// |C|_2) <= exp(-t) (Laurent and Massart; Birge for m). t = k^2 / 2 is the exponent of a normal
// variable at k standard deviations.
double NormalLength::square_limit(double k, double common, double concentration) const {
  const double exponent = k * k / 2;
  const double frobenius = variance_ * std::min(1.0, std::hypot(common, std::sqrt(concentration)));
  // For n sources in random directions, the largest eigenvalue is at most (1 + sqrt(n /
  // elements))^2 times the eigenvalue of a single source.
  const double shared =
      variance_ * (common + concentration) + 2 * std::sqrt(variance_ * concentration * widest_);
  const double largest = std::min(variance_, shared);
  const double frobenius_square = variance_square_ + frobenius * frobenius;
  const double along_mean = cross_ + largest * mean_square_;
  return variance_ + mean_square_ + 2 * std::sqrt(exponent * (frobenius_square + 2 * along_mean)) +
         2 * exponent * (widest_ + largest);
}

void ErrorLength::add(double sigma, double shift, const reference::RoundedError& error) {
  after_.add(shift + error.mean, error.variance);
  const double square_step = error.square_step + 2 * error.step * std::abs(shift);
  square_steps_ += square_step;
  largest_square_step_ = std::max(largest_square_step_, square_step);
  const bool certain = error.step == 0;
  before_.add(certain ? shift + error.mean : shift, certain ? 0 : sigma * sigma);
  rounding_square_ += error.step * error.step / 4;
}

// The smaller of two limits, because both hold. The first treats the rounded error as normal and
// adds the effect of its steps by Bernstein's inequality. The second takes the error before the
// rounding and adds half a step for every element.
//
// In attention the errors are sums of roundings, each along one of the vectors p_i v_i whose sum is
// the value. If all p_i are rounded alike, rho is at least 2/pi of the squared Frobenius norm of
// the errors' covariance over its squared trace. If the largest p_i is exact, the value says
// nothing about the other errors; `concentration` does.
double ErrorLength::limit(double k, double rho, double concentration) const {
  const double common = std::min(1.0, std::sqrt(std::numbers::pi / 2 * rho));
  const double steps = std::min(square_steps_, 2.0 / 3 * k * k / 2 * largest_square_step_);
  return std::min(
      std::sqrt(after_.square_limit(k, common, concentration) + steps),
      std::sqrt(before_.square_limit(k, common, concentration)) + std::sqrt(rounding_square_));
}

}  // namespace plumb::cases
