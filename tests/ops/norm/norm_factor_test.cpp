// SPDX-License-Identifier: Apache-2.0
//
// Tests rows whose mean square is lost in eps. All of them are multiplied by the same rounded 1 /
// sqrt(eps), whose error is one error for all rows and does not average out.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reference/norm/rms_norm.h"
#include "tests/support/fp32_hyper_connection.h"
#include "tests/support/judge_data.h"
#include "tests/support/random.h"

namespace plumb::tests {
namespace norm_factor_test {

constexpr std::int64_t kTokens = 1024, kHidden = 128;
constexpr double kEps = 1e-6;

std::vector<std::uint16_t> draw(double scale) {
  Random random(1);
  std::vector<std::uint16_t> bits;
  for (std::int64_t i = 0; i < kTokens * kHidden; ++i) {
    bits.push_back(fp32::to_bf16(static_cast<float>(scale * random.normal())));
  }
  return bits;
}

Estimate norm_of(const std::vector<std::uint16_t>& x) {
  reference::Numerics numerics;
  numerics.function_ulp = 2;
  return reference::rms_norm(
      {.x = x.data(), .tokens = kTokens, .hidden = kHidden, .x_row_stride = kHidden, .eps = kEps},
      numerics);
}

// x * factor in fp32, stored as bf16.
HostTensor multiplied(const std::vector<std::uint16_t>& x, float factor) {
  HostTensor got({.name = "out", .dtype = Dtype::bf16, .shape = {kTokens, kHidden}});
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    got.data<std::uint16_t>()[i] = fp32::to_bf16(fp32::from_bf16(x[i]) * factor);
  }
  return got;
}

// For one x in 64, 1000 x is exactly between two bf16 numbers. The error of the factor decides how
// all of these round.
TEST(RowFactor, OfRowsLostInEpsErrsOnceForAllOfThem) {
  const std::vector<std::uint16_t> x = draw(2e-8);
  const Estimate expected = norm_of(x);
  EXPECT_EQ(std::set<double>(expected.row_factor.begin(), expected.row_factor.end()),
            std::set<double>{1000});
  Estimate independent = expected;
  independent.row_factor.clear();
  int alarms_if_independent = 0;
  for (const float factor :
       {std::nextafter(1000.0F, 0.0F), 1000.0F, std::nextafter(1000.0F, 2e3F)}) {
    const HostTensor got = multiplied(x, factor);
    EXPECT_EQ(failed_checks(judge(expected, got)), "") << factor;
    alarms_if_independent += failed_checks(judge(independent, got)) == "biased" ? 1 : 0;
  }
  EXPECT_EQ(alarms_if_independent, 3);
}

// A wrong factor is still found.
TEST(RowFactor, ThatIsWrongIsFound) {
  const std::vector<std::uint16_t> x = draw(2e-8);
  EXPECT_NE(failed_checks(judge(norm_of(x), multiplied(x, 1003.0F))), "");
}

TEST(RowFactor, OfOrdinaryRowsIsEachRowsOwn) {
  const Estimate expected = norm_of(draw(1));
  const std::set<double> factors(expected.row_factor.begin(), expected.row_factor.end());
  EXPECT_GT(factors.size(), std::size_t{kTokens * 9 / 10});
  EXPECT_EQ(factors.count(0), 0U);
}

}  // namespace norm_factor_test
}  // namespace plumb::tests
