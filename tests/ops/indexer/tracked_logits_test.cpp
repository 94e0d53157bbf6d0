// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds of the indexer's logits, which follow from tracked arrays: right results of 1000
// seeds in several orders never exceed them, and they are as tight as bounds derived by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/indexer/fp8_mqa_logits.h"
#include "reference/matrix_unit.h"
#include "tests/support/fp32_logits.h"

namespace plumb::reference {
namespace tracked_logits_test {

using fp32::Manner;
using fp32::RandomRows;

constexpr int kSeeds = 1000;
constexpr std::int64_t kHeads = 8, kDim = 32;
constexpr double kNoFault = 0, kFault = 0x1p-16;  // relative error; 256 roundings of fp32

// `by_hand`: median bound of the logits that was derived by hand for the same inputs, in roundings
// of the logit to fp32. `of_scaled_keys`: if keys are multiplied by their scales before the dot
// product.
struct Order {
  Manner manner;
  double by_hand, of_scaled_keys;
};
const std::vector<Order> kOrders = {
    {{"one chain each", 1, 1, false, false, false}, 8.80, 25.12},
    {{"backwards, scale inside", 1, 8, true, true, false}, 7.90, 24.83},
    {{"trees", 32, 32, false, false, false}, 7.90, 24.83}};
const Manner kInUnit{"sm90 fp8", 1, 8, false, false, false, &kSm90Fp8};
constexpr double kInUnitByHand = 18640;

struct LogitBounds {
  std::vector<double> sizes;  // in roundings of the logit
  std::int64_t count = 0, beyond = 0;

  // Adds right results that are computed in this order. `fault`: relative error of the results.
  void add(const RandomRows& data, const Manner& order, bool scaled, double fault) {
    Fp8MqaLogits inputs = data.inputs();
    inputs.scaled_keys = scaled;
    Numerics numerics{.chains = order.head_chains};
    if (order.unit != nullptr) numerics.unit = SumUnit::sm90_fp8;
    const Estimate expected = fp8_mqa_logits(inputs, numerics);
    for (std::int64_t i = 0; i < RandomRows::kRows * RandomRows::kKeys; ++i) {
      const std::int64_t row = i / RandomRows::kKeys, key = i % RandomRows::kKeys;
      const double got =
          (1 + fault) * (scaled ? fp32::logit_of_scaled_key(data, row, key, false, order)
                                : fp32::honest_logit(data, row, key, order));
      ++count;
      beyond += !(std::abs(got - expected.centre(i)) <= expected.bound(i));
      const double rounding = kUnitF32 * std::abs(expected.centre(i));
      if (rounding > 0) sizes.push_back(expected.arithmetic(i) / rounding);
    }
  }
  double median() {
    const auto middle = sizes.begin() + std::ssize(sizes) / 2;
    std::ranges::nth_element(sizes, middle);
    return *middle;
  }
};

LogitBounds bounds_of(const Manner& order, bool scaled, int seeds, double fault) {
  LogitBounds bounds;
  for (int seed = 0; seed < seeds; ++seed) {
    bounds.add(RandomRows(1000 + seed, kHeads, kDim), order, scaled, fault);
  }
  return bounds;
}

void expect_tight(const Manner& order, bool scaled, double by_hand) {
  LogitBounds bounds = bounds_of(order, scaled, kSeeds, kNoFault);
  EXPECT_EQ(bounds.beyond, 0) << order.name;
  EXPECT_LE(bounds.median(), 1.25 * by_hand) << order.name;
}

TEST(TrackedLogits, BoundsHoldAndAreAsTightAsThoseByHand) {
  for (const Order& order : kOrders) expect_tight(order.manner, false, order.by_hand);
}
TEST(TrackedLogits, BoundsOfScaledKeysHoldAndAreAsTightAsThoseByHand) {
  for (const Order& order : kOrders) expect_tight(order.manner, true, order.of_scaled_keys);
}
TEST(TrackedLogits, BoundsInAMatrixUnitHoldAndAreAsTightAsThoseByHand) {
  expect_tight(kInUnit, false, kInUnitByHand);
}

// Control: a small error must exceed the bound.
TEST(TrackedLogits, ASmallErrorExceedsItsBound) {
  constexpr int kFew = 20;
  for (const bool scaled : {false, true}) {
    const LogitBounds bounds = bounds_of(kOrders[1].manner, scaled, kFew, kFault);
    EXPECT_GT(bounds.beyond, bounds.count * 9 / 10);
  }
}

}  // namespace tracked_logits_test
}  // namespace plumb::reference
