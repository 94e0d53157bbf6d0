// SPDX-License-Identifier: Apache-2.0
//
// What an estimate allows a whole row to be: how far norm and direction may be off, and mean and
// variance of the row's signed mean error. Nothing here looks at the result under judgement.
//
// Every element is  round(value + shift + e).  Its mean and variance follow from where the value lies
// between two representable numbers (reference/rounding.h), so what the output rounding does
// systematically is expected instead of counted as noise.
//
// Elements of a row are correlated: rho is what explains the row_mean_sigma of the estimate,
//   n^2 row_mean_sigma^2 = (1 - rho) sum sigma^2 + rho (sum sigma)^2.
// Rounding is a function f of the normal e. With slope a = cov(f, e) / sigma and the rest
// b^2 = var(f) - a^2, two elements have |cov| <= rho a a' + rho^2 b b' (Mehler's expansion: each
// further order carries one more rho, and the squares of all orders add up to the variance).
//
// A rounded element takes few values, so a sum of few of them is not normal. Bernstein's inequality
// holds all the same: P(|S| > t) <= 2 exp(-t^2 / (2 (V + M t / 3))) for steps of at most M, solved by
// `tail` for the exponent k^2 / 2 of a normal variable. Elements share their steps in second order.
#pragma once

#include <cstdint>

#include "reference/bound.h"

namespace plumb::cases {

// How far a sum of errors may spread: its variance, the largest of its steps, and all of them.
struct Spread {
  double variance = 0, step = 0, steps = 0;
};
// Largest deviation at the probability of k standard deviations. Also bounded by k standard deviations
// of the unrounded sum and every step once, which is less for a few elements.
double tail(double k, const Spread& spread);

struct RowModel {
  // Of the mean over the row of sign(value) * (result - value).
  double mean = 0;
  Spread spread;
  double allowance = 0;  // declared systematic effects, flushed subnormals, the judge's own rounding
  double magnitude = 0;  // mean |value|
  // False where the mean is not predicted: a value is not finite, or the roundings are structured.
  bool mean_predicted = true;
  double norm = 0;  // of the finite values
  double norm_limit = 0, direction_limit = 0;
};

RowModel model_row(const reference::Estimate& estimate, std::int64_t row);

}  // namespace plumb::cases
