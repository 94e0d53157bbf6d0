// SPDX-License-Identifier: Apache-2.0
//
// Is the mean error of many rows zero? Finds what no element shows by itself: a factor of 1.003, a
// truncation instead of a rounding.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cases/judge/row_model.h"

namespace plumb::cases {

inline constexpr double kBiasSigmas = 5;

struct Bias {
  double sigmas = 0;    // deviation in standard errors: beyond kBiasSigmas it fails
  double relative = 0;  // mean error as a share of the mean magnitude; negative: towards zero
  bool passed() const { return sigmas <= kBiasSigmas; }
};

// Rows weigh as finding a factor common to all rows demands: magnitude over variance. Rows that
// were multiplied by the same number count as one: where squares are lost in eps, the rounding of
// 1 / sqrt(eps) decides all exact ties of a tensor in one direction.
class BiasTest {
 public:
  BiasTest(reference::Format output, std::int64_t columns);
  // `mean_error` of sign(value) * (result - value) over the row.
  void add(const RowModel& model, double mean_error);
  Bias result() const;

 private:
  double unit_, columns_;
  double deviation_ = 0, allowance_ = 0, magnitude_ = 0;
  // A row, or all with one factor: their deviations add up, and so do their steps.
  struct Together {
    double deviation = 0, step = 0;
  };
  Spread spread_;  // of rows without a known factor
  std::map<double, Together> by_factor_;
};

}  // namespace plumb::cases
