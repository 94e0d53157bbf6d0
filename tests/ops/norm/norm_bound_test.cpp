// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds of the RMSNorm family: correct fp32 arithmetic in several orders and over many
// seeds never exceeds them, and comes near enough that a small error would exceed them.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/norm/fused_add_rms_norm.h"
#include "reference/norm/rms_norm.h"
#include "tests/support/fp32_hyper_connection.h"
#include "tests/support/margins.h"
#include "tests/support/random.h"

namespace plumb::tests {
namespace norm_bound_test {

using reference::NormedSum;
using reference::NormRounding;

constexpr int kSeeds = 12;
constexpr std::int64_t kTokens = 10, kHidden = 384;
constexpr double kEps = 1e-6;

const std::vector<fp32::Order> kOrders = {
    {1, false, false}, {1, false, true}, {4, true, false}, {64, false, false}, {256, false, false}};

std::vector<std::uint16_t> draw(Random& random, std::int64_t rows, double mean) {
  std::vector<std::uint16_t> bits;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double scale = mean != 0 ? 0.3 : std::pow(10.0, 6 * random.uniform() - 3);
    for (std::int64_t i = 0; i < kHidden; ++i) {
      const double outlier = random.below(64) == 0 ? 16 : 1;
      bits.push_back(fp32::to_bf16(static_cast<float>(mean + scale * outlier * random.normal())));
    }
  }
  return bits;
}

// Appends x * r * weight of one row in fp32, with r from the mean square of `squared`.
void append_norm(const std::vector<float>& x, const std::vector<float>& squared,
                 const std::uint16_t* weight, NormRounding rounding, const fp32::Order& order,
                 std::vector<float>& out) {
  std::vector<float> squares;
  for (const float v : squared) squares.push_back(v * v);
  const float mean = fp32::add_up(squares, order) / static_cast<float>(x.size());
  const auto r = static_cast<float>(1 / std::sqrt(static_cast<double>(mean + 1e-6F)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    float y = x[i] * r;
    if (rounding == NormRounding::twice) y = fp32::from_bf16(fp32::to_bf16(y));
    out.push_back(fp32::from_bf16(fp32::to_bf16(y * fp32::from_bf16(weight[i]))));
  }
}

reference::Numerics numerics_of(const fp32::Order& order) {
  reference::Numerics numerics;
  numerics.chains = order.chains;
  numerics.function_ulp = 0.5;
  return numerics;
}

// Tests the bounds of fused_add_rms_norm for one rounding and one normalised sum, with every order
// of additions.
void expect_honest_and_tight(NormRounding rounding, NormedSum of) {
  for (const fp32::Order& order : kOrders) {
    Margins residual_margins, x_margins;
    for (int seed = 0; seed < kSeeds; ++seed) {
      Random random(seed);
      const auto x = draw(random, kTokens, 0), residual = draw(random, kTokens, 0);
      const auto weight = draw(random, 1, 1);
      std::vector<std::uint16_t> stored;
      std::vector<float> z, normalised;
      for (std::int64_t row = 0; row < kTokens; ++row) {
        std::vector<float> terms, squared;
        for (std::int64_t i = row * kHidden; i < (row + 1) * kHidden; ++i) {
          const float sum = fp32::from_bf16(x[i]) + fp32::from_bf16(residual[i]);
          stored.push_back(fp32::to_bf16(sum));
          z.push_back(fp32::from_bf16(stored.back()));
          terms.push_back(of == NormedSum::fp32 ? sum : z.back());
          squared.push_back(of == NormedSum::stored ? z.back() : sum);
        }
        append_norm(terms, squared, weight.data(), rounding, order, normalised);
      }
      reference::FusedAddRmsNormInputs inputs{
          x.data(), residual.data(), stored.data(), weight.data(), kTokens,
          kHidden,  kHidden,         kEps,          rounding,      of};
      const auto expected = reference::fused_add_rms_norm(inputs, numerics_of(order));
      residual_margins.add(expected.residual, z);
      x_margins.add(expected.x, normalised);
    }
    residual_margins.expect_honest_and_tight("residual");
    x_margins.expect_honest_and_tight("x, " + std::to_string(order.chains) + " chains");
  }
}

TEST(NormBound, HonestNormOfTheStoredSumStaysWithinABoundThatIsTight) {
  expect_honest_and_tight(NormRounding::once, NormedSum::stored);
}
TEST(NormBound, HonestNormRoundedTwiceStaysWithinABoundThatIsTight) {
  expect_honest_and_tight(NormRounding::twice, NormedSum::stored);
}
TEST(NormBound, HonestNormOfTheFp32SumStaysWithinABoundThatIsTight) {
  expect_honest_and_tight(NormRounding::once, NormedSum::fp32);
  expect_honest_and_tight(NormRounding::twice, NormedSum::fp32);
}
TEST(NormBound, HonestSquaresOfTheFp32SumStayWithinABoundThatIsTight) {
  expect_honest_and_tight(NormRounding::once, NormedSum::fp32_squares);
  expect_honest_and_tight(NormRounding::twice, NormedSum::fp32_squares);
}

// The bound of two roundings is centred on the twice rounded value, so results with one rounding
// exceed it in single elements.
TEST(NormBound, OneRoundingInThePlaceOfTwoLeavesTheBound) {
  Random random(1);
  const auto x = draw(random, kTokens, 0), weight = draw(random, 1, 1);
  std::vector<float> once;
  for (std::int64_t row = 0; row < kTokens; ++row) {
    std::vector<float> terms;
    for (std::int64_t i = 0; i < kHidden; ++i) {
      terms.push_back(fp32::from_bf16(x[row * kHidden + i]));
    }
    append_norm(terms, terms, weight.data(), NormRounding::once, kOrders[3], once);
  }
  reference::RmsNormInputs inputs;
  inputs.x = x.data();
  inputs.weight = weight.data();
  inputs.tokens = kTokens;
  inputs.hidden = inputs.x_row_stride = kHidden;
  inputs.eps = kEps;
  inputs.rounding = NormRounding::twice;
  const auto twice = reference::rms_norm(inputs, numerics_of(kOrders[3]));
  std::int64_t beyond = 0;
  for (std::int64_t i = 0; i < kTokens * kHidden; ++i) {
    beyond += std::abs(once[i] - twice.centre(i)) > twice.bound(i);
  }
  EXPECT_GT(beyond, kTokens * kHidden / 20);
}

// One element dominates its row, so the rounding of its sum also changes the mean square.
TEST(NormBound, ASpikeWhoseSumIsRoundedStaysWithinTheWorstCase) {
  const fp32::Order order{1, false, false};
  const auto weight = std::vector<std::uint16_t>(kHidden, fp32::to_bf16(1));
  for (int seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<std::uint16_t> x(kHidden), residual(kHidden);
    std::vector<float> terms(kHidden), normalised;
    x[seed % kHidden] = fp32::to_bf16(static_cast<float>(1 + random.uniform()));
    residual[seed % kHidden] = fp32::to_bf16(static_cast<float>(0x1p-20 * (1 + random.uniform())));
    terms[seed % kHidden] =
        fp32::from_bf16(x[seed % kHidden]) + fp32::from_bf16(residual[seed % kHidden]);
    append_norm(terms, terms, weight.data(), NormRounding::once, order, normalised);
    auto expected =
        reference::fused_add_rms_norm({x.data(), residual.data(), x.data(), weight.data(), 1,
                                       kHidden, kHidden, kEps, NormRounding::once, NormedSum::fp32},
                                      numerics_of(order));
    expected.x.structured = true;
    const std::int64_t i = seed % kHidden;
    EXPECT_LE(std::abs(normalised[i] - expected.x.value[i]), expected.x.bound(i)) << seed;
  }
}

}  // namespace norm_bound_test
}  // namespace plumb::tests
