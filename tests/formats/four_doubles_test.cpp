// SPDX-License-Identifier: Apache-2.0
//
// Four doubles at a time must give the same bits as one at a time, for every width of the
// registers.
#include "reference/four_doubles.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tests/support/random.h"

namespace plumb::reference {
namespace four_doubles_test {

PLUMB_FOR_ANY_TARGET void fold(const std::vector<double>& x, double* sums) {
  Four sum{};
  for (std::size_t i = 0; i + 4 <= x.size(); i += 4) {
    Four some, size;
    load(&x[i], some);
    magnitude_of(some, size);
    sum += some * some - size;
  }
  store(sum, sums);
}

PLUMB_WIDE_TARGET void wide_fold(const std::vector<double>& x, double* sums) { fold(x, sums); }
void narrow_fold(const std::vector<double>& x, double* sums) { fold(x, sums); }

TEST(FourDoubles, HaveTheBitsOfOneAtATime) {
  tests::Random random(3);
  std::vector<double> x(4096);
  for (double& element : x) element = random.normal();
  double expected[4] = {}, narrow[4], wide[4];
  for (std::size_t i = 0; i < x.size(); ++i) {
    expected[i % 4] += x[i] * x[i] - std::abs(x[i]);
  }
  narrow_fold(x, narrow);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(narrow[i], expected[i]);
  if (!has_wide_registers()) GTEST_SKIP() << "no registers of 256 bits here";
  wide_fold(x, wide);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(wide[i], expected[i]);
}

TEST(FourDoubles, DecodeEveryBf16) {
  std::vector<std::uint16_t> bits(65536 - 1);  // the last group has fewer than four
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<double> values(bits.size());
  decode_bf16_array(bits.data(), std::ssize(bits), values.data());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const double expected = decode_bf16(bits[i]);
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(values[i])
                                     : std::bit_cast<std::uint64_t>(expected) ==
                                           std::bit_cast<std::uint64_t>(values[i]))
        << i;
  }
}

}  // namespace four_doubles_test
}  // namespace plumb::reference
