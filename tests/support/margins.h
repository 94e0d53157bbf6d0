// SPDX-License-Identifier: Apache-2.0
//
// Compares right results with their bounds, over many seeds and orders: none may exceed its bound,
// and errors must come close enough to it (DESIGN.md, decision 1, has the numbers).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/bound.h"

namespace plumb::tests {

// Collects the results of one tensor over seeds.
class Margins {
 public:
  void add(const reference::Estimate& expected, const std::vector<float>& got) {
    ASSERT_EQ(expected.value.size(), got.size());
    reference::Estimate worst_case = expected;
    worst_case.structured = true;
    const double unit = reference::unit_roundoff(expected.output);
    for (std::int64_t row = 0; row < expected.rows; ++row) {
      double largest = 0;
      for (std::int64_t i = row * expected.columns; i < (row + 1) * expected.columns; ++i) {
        const double error = std::abs(got[i] - expected.centre(i));
        const double bound = expected.bound(i);
        exceeded_ += !(error <= bound);
        beyond_worst_ += !(error <= worst_case.bound(i));
        largest = std::max(largest, error / bound);
        if (error > 0.1 * unit * std::abs(expected.value[i])) ratios_.push_back(bound / error);
      }
      rows_.push_back(largest);
    }
  }
  bool exceeded() const { return exceeded_ > 0; }
  void expect_honest(const std::string& what) const {
    EXPECT_EQ(exceeded_, 0) << what;
    EXPECT_EQ(beyond_worst_, 0) << what << ", worst case";
  }
  // Expects that results are within their bounds and come close to them. `most`: limit for the
  // median of bound / error.
  void expect_honest_and_tight(const std::string& what, double most = 16) {
    expect_honest(what);
    ASSERT_GE(ratios_.size(), 1000U) << what;
    EXPECT_LE(quantile(ratios_, 0.5), most) << what << ": median bound / error";
    EXPECT_GE(quantile(rows_, 0.95), 0.1) << what << ": rows' largest error / bound";
  }

 private:
  static double quantile(std::vector<double>& values, double q) {
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }
  std::vector<double> ratios_, rows_;
  int exceeded_ = 0, beyond_worst_ = 0;
};

}  // namespace plumb::tests
