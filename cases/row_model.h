// SPDX-License-Identifier: Apache-2.0
//
// What an estimate allows a whole row to be: how far norm and direction may be off, and mean and
// variance of the row's signed mean error. Nothing here looks at the result under judgement.
//
// Every element is  round(value + shift + e).  Its mean and variance follow from where the value
// lies between two representable numbers (reference/rounding.h), so what the output rounding does
// systematically is expected instead of counted as noise. The estimate tells the correlation rho of
// errors within a row: row_mean_sigma^2 = ((1 - rho) sum sigma^2 + rho (sum sigma)^2) / n^2.
// Rounding applies one function to each element, and no function of two normal variables is
// correlated more strongly than they are themselves (Gebelein's inequality), so the rounded
// elements obey the same formula with their own standard deviations.
//
// A rounded element takes few values, so a sum of few of them is not normal. Bernstein's inequality
// holds all the same: P(|S| > t) <= 2 exp(-t^2 / (2 (V + M t / 3))) for steps of at most M. `tail`
// solves it for the probability that k standard deviations mean to a normal variable's own Chernoff
// bound, and becomes k sqrt(V) where the steps are small.
#pragma once

#include <cstdint>

#include "reference/bound.h"

namespace plumb::cases {

struct RowModel {
  // Mean over the row of sign(value) * (result - value).
  double mean = 0, variance = 0, step = 0;
  double allowance = 0;  // for declared systematic effects and flushed subnormals
  double magnitude = 0;  // mean |value|
  bool finite = true;    // every expected value is
  double norm = 0;       // of the finite values
  double norm_limit = 0, direction_limit = 0;
};

RowModel model_row(const reference::Estimate& estimate, std::int64_t row);

// Largest deviation within `k` standard deviations for variance V and steps M.
double tail(double k, double variance, double step);

}  // namespace plumb::cases
