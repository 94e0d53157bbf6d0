// SPDX-License-Identifier: Apache-2.0
//
// Bounds that follow from a reference in a few lines, and those that were derived by hand for the
// same op: they are nearly the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/hyper_connection/hc_head.h"
#include "reference/tracked/tracked.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_by_hand_test {

const Numerics kFp32{};

// Stored numbers, and what they stand for.
template <class T>
struct Stored {
  std::vector<T> bits;
  std::vector<double> numbers;
};
Stored<std::uint16_t> bf16_numbers(std::int64_t count, tests::Random& random) {
  Stored<std::uint16_t> made;
  for (std::int64_t i = 0; i < count; ++i) {
    made.bits.push_back(encode_bf16(random.normal()));
    made.numbers.push_back(decode_bf16(made.bits.back()));
  }
  return made;
}
Stored<float> fp32_numbers(std::int64_t count, tests::Random& random) {
  Stored<float> made;
  for (std::int64_t i = 0; i < count; ++i) {
    made.bits.push_back(static_cast<float>(random.normal()));
    made.numbers.push_back(made.bits.back());
  }
  return made;
}

// The middle of the ratios of honest errors, tracked to derived by hand.
void expect_alike(const Estimate& tracked, const Estimate& by_hand) {
  ASSERT_EQ(tracked.rows, by_hand.rows);
  ASSERT_EQ(tracked.columns, by_hand.columns);
  std::vector<double> bounds, means;
  for (std::int64_t i = 0; i < by_hand.rows * by_hand.columns; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_NEAR(tracked.value[at], by_hand.value[at], 1e-9 * (1 + std::abs(by_hand.value[at])));
    bounds.push_back(tracked.arithmetic(i) / by_hand.arithmetic(i));
  }
  for (std::size_t row = 0; row < by_hand.row_mean_sigma.size(); ++row) {
    means.push_back(tracked.row_mean_sigma[row] / by_hand.row_mean_sigma[row]);
  }
  for (std::vector<double>* ratios : {&bounds, &means}) {
    const auto middle = ratios->begin() + static_cast<std::ptrdiff_t>(ratios->size() / 2);
    std::ranges::nth_element(*ratios, middle);
    EXPECT_GE(*middle, 0.7) << (ratios == &means ? "mean of a row" : "element");
    EXPECT_LT(*middle, 1.5) << (ratios == &means ? "mean of a row" : "element");
  }
}

TEST(TrackedByHand, HcHead) {
  tests::Random random(3);
  const auto x = bf16_numbers(4 * 256, random);
  const auto fn = fp32_numbers(4 * 1024, random), base = fp32_numbers(4, random);
  const auto scale = fp32_numbers(1, random);
  const Tracked token(x.numbers, {1, 1024}, kFp32), streams(x.numbers, {4, 256}, kFp32);
  const Tracked r = rsqrt(mean(token * token, 1) + 1e-6);
  const Tracked mixes = sum(Tracked(fn.numbers, {4, 1024}, kFp32) * token, 1) * r;
  const Tracked logits =
      mixes * Tracked(scale.numbers, {1}, kFp32) + Tracked(base.numbers, {4, 1}, kFp32);
  const Tracked out = sum((sigmoid(logits) + 1e-6) * streams, 0);
  expect_alike(estimate_of(out, Format::bf16),
               hc_head({.hidden_states = {x.bits.data(), 1, 256, 1024, 256},
                        .fn = fn.bits.data(),
                        .scale = scale.bits.data(),
                        .base = base.bits.data()},
                       kFp32));
}

}  // namespace tracked_by_hand_test
}  // namespace plumb::reference
