// SPDX-License-Identifier: Apache-2.0
//
// What an estimate allows a whole row to be: how far norm and direction may be off, and mean and
// variance of the row's signed mean error. Nothing here looks at the result under judgement.
//
// Every element is  round(value + shift + e).  Its mean and variance follow from where the value
// lies between two representable numbers (reference/rounding.h), so what the output rounding does
// systematically is expected instead of counted as noise.
#pragma once

#include <cstdint>

#include "cases/judge/error_spread.h"
#include "reference/bound.h"

namespace plumb::cases {

struct RowModel {
  // Of the mean over the row of sign(value) * (result - value).
  double mean = 0;
  Spread spread;
  double allowance =
      0;  // declared systematic effects, flushed subnormals, the judge's own rounding
  double magnitude = 0;  // mean |value|
  // False where the mean is not predicted: a value is not finite, nothing is known of an error, or
  // the roundings are structured.
  bool mean_predicted = true;
  double factor = 0;  // Estimate::row_factor
  double norm = 0;    // of the finite values
  double norm_limit = 0, direction_limit = 0;
};

RowModel model_row(const reference::Estimate& estimate, std::int64_t row);

}  // namespace plumb::cases
