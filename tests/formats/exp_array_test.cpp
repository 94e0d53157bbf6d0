// SPDX-License-Identifier: Apache-2.0
//
// Tests the reference's exp against long double.
#include "reference/exp_array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/mla_test_problem.h"

namespace plumb::tests {
namespace exp_array_test {

TEST(ExpArray, IsWithinTheLastPlaceOrTwo) {
  std::vector<double> x;
  for (std::uint64_t i = 0; i < 100'000; ++i) x.push_back(1400 * uniform(1, i) - 700);
  for (std::uint64_t i = 0; i < 100'000; ++i) x.push_back(2 * uniform(2, i) - 1);
  std::vector<double> y = x;
  reference::exp_in_place(y.data(), std::ssize(y));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    ASSERT_LE(std::abs(static_cast<double>(y[i] / exact - 1)), 4e-16) << x[i];
  }
}

TEST(ExpArray, EndsOfTheRange) {
  std::vector<double> x{0, -0.0, -1e9, -std::numeric_limits<double>::infinity(), NAN};
  reference::exp_in_place(x.data(), std::ssize(x));
  EXPECT_EQ(x[0], 1);
  EXPECT_EQ(x[1], 1);
  EXPECT_NEAR(x[2], 0, 1e-300);
  EXPECT_NEAR(x[3], 0, 1e-300);
  EXPECT_TRUE(std::isnan(x[4]));
}

}  // namespace exp_array_test
}  // namespace plumb::tests
