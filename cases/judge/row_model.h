// SPDX-License-Identifier: Apache-2.0
//
// What an estimate allows for a whole row: limits for norm and direction, and mean and variance of
// the row's signed mean error. Computed from the estimate alone, never from the judged result.
//
// Every element is  round(value + shift + e).  Its mean and variance follow from where the value
// lies between two representable numbers (reference/rounding.h). The systematic part of the output
// rounding is therefore expected, and not counted as noise.
#pragma once

#include <cstdint>

#include "cases/judge/error_spread.h"
#include "reference/bound.h"

namespace plumb::cases {

struct RowModel {
  // Mean and spread of sign(value) * (result - value), averaged over the row.
  double mean = 0;
  Spread spread;
  // Declared systematic effects, flushed subnormals, and the judge's own rounding.
  double allowance = 0;
  double magnitude = 0;  // mean |value|
  // False if the mean cannot be predicted: a value is not finite, an error is unknown, or the
  // roundings are structured.
  bool mean_predicted = true;
  double factor = 0;  // Estimate::row_factor
  double norm = 0;    // L2 norm of the finite values
  double norm_limit = 0, direction_limit = 0;
};

RowModel model_row(const reference::Estimate& estimate, std::int64_t row);

}  // namespace plumb::cases
