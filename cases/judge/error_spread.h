// SPDX-License-Identifier: Apache-2.0
//
// How far sums of rounded, correlated errors spread.
//
// Elements of a row are correlated: rho is what explains the row_mean_sigma of the estimate,
//   n^2 row_mean_sigma^2 = (1 - rho) sum sigma^2 + rho (sum sigma)^2.
// Rounding is a function f of the normal e. With slope a = cov(f, e) / sigma and the rest
// b^2 = var(f) - a^2, two elements have |cov| <= rho a a' + rho^2 b b' (Mehler's expansion: each
// further order carries one more rho, and the squares of all orders add up to the variance).
//
// A rounded element takes few values, so a sum of few of them is not normal. Bernstein's inequality
// holds all the same: P(|S| > t) <= 2 exp(-t^2 / (2 (V + M t / 3))) for steps of at most M, solved
// by `tail` for the exponent k^2 / 2 of a normal variable. Elements share their steps in second
// order.
#pragma once

#include "reference/rounding.h"

namespace plumb::cases {

// Variance of a sum, the largest of its steps, and all of them.
struct Spread {
  double variance = 0, step = 0, steps = 0;
};
// Largest deviation at the probability of k standard deviations. Not more than k standard
// deviations and every step once, which is less for few elements.
double tail(double k, const Spread& spread);

// A weighted sum of the elements of a row.
class WeightedSum {
 public:
  void add(double weight, const reference::RoundedError& error);
  Spread spread(double rho, double divisor) const;

 private:
  double variance_ = 0;  // were all elements independent
  double slope_ = 0, slope_square_ = 0;
  double rest_ = 0, rest_square_ = 0;
  double steps_ = 0, largest_step_ = 0;
};

// Length of a normal vector. Its elements are independent, but for a share `common` of its variance
// that lies in one direction, and for sources that give it `concentration` at most, each in a
// direction of its own.
class NormalLength {
 public:
  void add(double mean, double variance);
  double square_limit(double k, double common, double concentration) const;

 private:
  double mean_square_ = 0, variance_ = 0;
  double cross_ = 0;  // sum of mean^2 variance
  double variance_square_ = 0, widest_ = 0;
};

// Length of the error of a row.
class ErrorLength {
 public:
  // `sigma` and `shift` are those of the error before the rounding.
  void add(double sigma, double shift, const reference::RoundedError& error);
  // `concentration`: Estimate::row_concentration.
  double limit(double k, double rho, double concentration) const;

 private:
  NormalLength before_, after_;
  double rounding_square_ = 0;  // of the most that the rounding itself can do
  double square_steps_ = 0, largest_square_step_ = 0;
};

}  // namespace plumb::cases
