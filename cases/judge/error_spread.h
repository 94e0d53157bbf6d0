// SPDX-License-Identifier: Apache-2.0
//
// Limits on sums of rounded, correlated errors.
//
// Elements of a row are correlated. rho is the correlation that explains the estimate's
// row_mean_sigma:
//   n^2 row_mean_sigma^2 = (1 - rho) sum sigma^2 + rho (sum sigma)^2.
// Rounding is a function f of the normal error e. With slope a = cov(f, e) / sigma and remainder
// b^2 = var(f) - a^2, two elements have |cov| <= rho a a' + rho^2 b b' (Mehler's expansion: each
// further order carries one more rho, and the squares of all orders add up to the variance).
//
// A rounded element takes few values, so a sum of few elements is not normal. Bernstein's
// inequality still holds: P(|S| > t) <= 2 exp(-t^2 / (2 (V + M t / 3))) for steps of at most M.
// `tail` solves it for t at the exponent k^2 / 2 of a normal variable. In WeightedSum, correlated
// elements share their steps in second order (rho^2).
#pragma once

#include "reference/rounding.h"

namespace plumb::cases {

// Variance of a sum of steps, the largest step, and the sum of all steps.
struct Spread {
  double variance = 0, step = 0, steps = 0;
};
// Largest deviation that is as improbable as k standard deviations of a normal variable. At most k
// standard deviations plus every step once, which is the smaller limit for few elements.
double tail(double k, const Spread& spread);

// A weighted sum of the elements of a row.
class WeightedSum {
 public:
  void add(double weight, const reference::RoundedError& error);
  Spread spread(double rho, double divisor) const;

 private:
  double variance_ = 0;  // variance if all elements were independent
  double slope_ = 0, slope_square_ = 0;
  double rest_ = 0, rest_square_ = 0;
  double steps_ = 0, largest_step_ = 0;
};

// Length of a normal vector. Its elements are independent, except for two correlated parts of its
// variance: a share `common` that lies in one direction, and independent sources, each in a
// direction of its own, of which one gives at most a share `concentration`.
class NormalLength {
 public:
  void add(double mean, double variance);
  double square_limit(double k, double common, double concentration) const;

 private:
  double mean_square_ = 0, variance_ = 0;
  double cross_ = 0;  // sum of mean^2 * variance
  double variance_square_ = 0, widest_ = 0;
};

// Length of a row's error vector.
class ErrorLength {
 public:
  // `sigma` and `shift` describe the error before the rounding.
  void add(double sigma, double shift, const reference::RoundedError& error);
  // `concentration`: Estimate::row_concentration.
  double limit(double k, double rho, double concentration) const;

 private:
  NormalLength before_, after_;
  // Squared length of the largest error that the rounding alone can cause.
  double rounding_square_ = 0;
  double square_steps_ = 0, largest_square_step_ = 0;
};

}  // namespace plumb::cases
