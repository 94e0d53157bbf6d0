// SPDX-License-Identifier: Apache-2.0
//
// Tests whether the mean error of many rows is zero. Finds defects that no single element shows: a
// factor of 1.003, truncation instead of rounding.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cases/judge/row_model.h"

namespace plumb::cases {

inline constexpr double kBiasSigmas = 5;

struct Bias {
  double sigmas = 0;    // deviation in standard errors; the test fails above kBiasSigmas
  double relative = 0;  // mean error as a share of the mean magnitude; negative: towards zero
  bool passed() const { return sigmas <= kBiasSigmas; }
};

// Each row's weight is its magnitude over its variance, which is optimal for finding a factor
// common to all rows. Rows that are scaled by the same number count as one row, because they share
// that number's rounding error: if the squares are lost in eps, the rounding of 1 / sqrt(eps)
// decides all exact ties of the tensor in the same direction.
class BiasTest {
 public:
  BiasTest(reference::Format output, std::int64_t columns);
  // `mean_error`: mean over the row of sign(value) * (result - value).
  void add(const RowModel& model, double mean_error);
  Bias result() const;

 private:
  double unit_, columns_;
  double deviation_ = 0, allowance_ = 0, magnitude_ = 0;
  // All rows that are scaled by the same number (Estimate::row_factor). Their errors are fully
  // correlated: deviations and steps add up.
  struct Together {
    double deviation = 0, step = 0;
  };
  Spread spread_;  // rows without a known factor
  std::map<double, Together> by_factor_;
};

}  // namespace plumb::cases
