// SPDX-License-Identifier: Apache-2.0
//
// Tests the references of mhc_pre, mhc_post and hc_head against results computed by hand and
// identities.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/hyper_connection/sinkhorn.h"
#include "tests/support/mhc_data.h"

namespace plumb::tests {
namespace mhc_test {

using reference::Estimate;
using reference::Numerics;

constexpr double kHc = 1e-6F;

reference::MhcPreOutputs end_to_end(const reference::MhcPre& inputs) {
  return reference::mhc_pre_outputs(inputs, reference::mhc_pre_partials(inputs, {}), {});
}

// One token, hidden 1, all four streams 2: mean square 4, so r = 1/2 without eps.
HyperConnectionData four_twos() {
  HyperConnectionData data(0, 1, 1);
  data.residual.assign(4, HyperConnectionData::bf16(2));
  data.fn.assign(24 * 4, 0);
  data.scale.assign(3, 1);
  data.base.assign(24, 0);
  return data;
}

TEST(MhcPre, MixesAreDividedByTheRootMeanSquareOfAllFourStreams) {
  HyperConnectionData data = four_twos();
  data.fn[0] = 0.5F;        // pre 0: 2 * 0.5 * r = 1/2; r must not be taken over one stream
  data.fn[4 * 4 + 3] = -1;  // post 0: 2 * -1 * r = -1
  reference::MhcPre inputs = data.mhc_pre();
  inputs.rms_eps = 0;
  const auto partials = reference::mhc_pre_partials(inputs, {});
  EXPECT_EQ(partials.mixes.value[0], 1);
  EXPECT_EQ(partials.mixes.value[4], -2);
  EXPECT_EQ(partials.square_sums.value[0], 16);
  const auto out = end_to_end(inputs);
  const double pre0 = 1 / (1 + std::exp(-0.5)) + kHc;
  EXPECT_DOUBLE_EQ(out.post.value[0], 2 / (1 + std::exp(1.0)));
  EXPECT_DOUBLE_EQ(out.post.value[1], 1);
  EXPECT_DOUBLE_EQ(out.layer_input.value[0], 2 * pre0 + 3 * 2 * (0.5 + kHc));
}

TEST(MhcPre, ScaleAndBaseBelongToTheirGroups) {
  HyperConnectionData data = four_twos();
  data.fn.assign(24 * 4, 0.25F);  // every mix is 4 * 2 / 4 / 2 = 1
  data.scale = {2, 3, 5};
  data.base[1] = -1;
  reference::MhcPre inputs = data.mhc_pre();
  inputs.rms_eps = 0;
  inputs.post_mult = 1;
  const auto out = end_to_end(inputs);
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  EXPECT_DOUBLE_EQ(out.post.value[3], sigmoid(3));
  EXPECT_DOUBLE_EQ(out.layer_input.value[0], 2 * (3 * sigmoid(2) + sigmoid(1) + 4 * kHc));
}

TEST(MhcPre, EqualLogitsMixAllStreamsEqually) {
  const HyperConnectionData data = four_twos();
  const auto out = end_to_end(data.mhc_pre());
  double entry = 0.25 + kHc;  // 39 half steps, each divides by (4 entries + eps)
  for (int step = 0; step < 39; ++step) entry /= 4 * entry + kHc;
  for (const double value : out.comb.value) EXPECT_NEAR(value, entry, 1e-15);
  EXPECT_NEAR(entry, 0.25, kHc);
}

TEST(MhcPre, CombRowsAreTheFirstIndexAndAreNormalisedBeforeColumns) {
  HyperConnectionData data = four_twos();
  data.base[8 + 1] = static_cast<float>(std::log(5.0));  // C[0, 1]
  reference::MhcPre inputs = data.mhc_pre();
  inputs.sinkhorn_iterations = 1;
  inputs.sinkhorn_eps = 0;
  const auto out = end_to_end(inputs);
  // Row 0 becomes (1, 5, 1, 1) / 8, the other rows 1/4. Then column 1 sums to 11/8, the other
  // columns to 7/8.
  const double five = std::exp(static_cast<double>(data.base[9]));
  const double other = 1 / (five + 3);
  EXPECT_DOUBLE_EQ(out.comb.value[0 * 4 + 1], five * other / (five * other + 0.75));
  EXPECT_NEAR(out.comb.value[0 * 4 + 1], 5.0 / 11, 1e-7);
  EXPECT_NEAR(out.comb.value[1 * 4 + 0], 2.0 / 7, 1e-7);
  EXPECT_NEAR(out.comb.value[1 * 4 + 1], 2.0 / 11, 1e-7);
}

TEST(MhcPre, OneHotLogitsGiveThePermutation) {
  HyperConnectionData data = four_twos();
  for (int j = 0; j < 4; ++j) data.base[8 + 4 * j + (j + 1) % 4] = 60;
  const auto out = end_to_end(data.mhc_pre());
  for (int j = 0; j < 4; ++j) {
    for (int k = 0; k < 4; ++k) {
      EXPECT_NEAR(out.comb.value[4 * j + k], k == (j + 1) % 4 ? 1 : 0, 8 * kHc) << j << k;
    }
  }
}

TEST(MhcPre, CombColumnsSumToOneButForEps) {
  for (int seed = 0; seed < 20; ++seed) {
    const HyperConnectionData data(seed, 8, 32);
    const auto out = end_to_end(data.mhc_pre());
    for (int token = 0; token < 8; ++token) {
      for (int k = 0; k < 4; ++k) {
        double sum = 0;
        for (int j = 0; j < 4; ++j) sum += out.comb.value[token * 16 + 4 * j + k];
        // The last step turned a column sum s into s / (s + eps). The row step before had left s
        // above 1/2.
        EXPECT_LT(sum, 1);
        EXPECT_GT(sum, 1 - 2 * kHc);
      }
    }
  }
}

TEST(MhcPre, ScalingARowByAPowerOfTwoScalesOnlyTheLayerInput) {
  const HyperConnectionData data(5, 3, 48);
  HyperConnectionData scaled = data;
  for (std::uint16_t& bits : scaled.residual) {
    bits = HyperConnectionData::bf16(fp32::from_bf16(bits) * 64);
  }
  reference::MhcPre inputs = data.mhc_pre(), scaled_inputs = scaled.mhc_pre();
  inputs.rms_eps = scaled_inputs.rms_eps = 0;
  const auto out = end_to_end(inputs), scaled_out = end_to_end(scaled_inputs);
  EXPECT_EQ(out.post.value, scaled_out.post.value);
  EXPECT_EQ(out.comb.value, scaled_out.comb.value);
  for (std::size_t i = 0; i < out.layer_input.value.size(); ++i) {
    EXPECT_EQ(64 * out.layer_input.value[i], scaled_out.layer_input.value[i]);
  }
}

TEST(MhcPre, PermutingTokensPermutesResultsForAnyNumberOfThreads) {
  const std::int64_t tokens = 7, hidden = 24;
  const HyperConnectionData data(6, tokens, hidden);
  HyperConnectionData reversed = data;
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::copy_n(&data.residual[t * 4 * hidden], 4 * hidden,
                &reversed.residual[(tokens - 1 - t) * 4 * hidden]);
  }
  const auto out = end_to_end(data.mhc_pre());
  reference::set_thread_count(3);
  const auto mirrored = end_to_end(reversed.mhc_pre());
  reference::set_thread_count(0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t other = tokens - 1 - t;
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(out.comb.value[16 * t + i], mirrored.comb.value[16 * other + i]);
      EXPECT_EQ(out.comb.sigma[16 * t + i], mirrored.comb.sigma[16 * other + i]);
    }
    for (std::int64_t h = 0; h < hidden; ++h) {
      EXPECT_EQ(out.layer_input.value[t * hidden + h],
                mirrored.layer_input.value[other * hidden + h]);
    }
  }
}

TEST(MhcPre, SplitsAreConsecutivePartsThatAddUp) {
  const HyperConnectionData data(7, 2, 1);
  reference::MhcPre inputs = data.mhc_pre();
  const auto whole = reference::mhc_pre_partials(inputs, {});
  inputs.splits = 8;  // more splits than the four terms: every second split is empty
  const auto parts = reference::mhc_pre_partials(inputs, {});
  for (int token = 0; token < 2; ++token) {
    double sum = 0;
    for (int s = 0; s < 8; ++s) {
      const double part = parts.square_sums.value[s * 2 + token];
      const double x = s % 2 == 0 ? 0 : fp32::from_bf16(data.residual[token * 4 + s / 2]);
      EXPECT_EQ(part, x * x);
      sum += part;
    }
    EXPECT_DOUBLE_EQ(sum, whole.square_sums.value[token]);
  }
}

TEST(MhcPre, ResidualIsReadByItsStrides) {
  const std::int64_t tokens = 3, hidden = 10, slot = 13, token = 60;
  const HyperConnectionData data(8, tokens, hidden);
  std::vector<std::uint16_t> spread(tokens * token, HyperConnectionData::bf16(1e30));
  for (std::int64_t row = 0; row < tokens * 4; ++row) {
    std::copy_n(&data.residual[row * hidden], hidden, &spread[row / 4 * token + row % 4 * slot]);
  }
  reference::MhcPre inputs = data.mhc_pre();
  const auto compact = end_to_end(inputs);
  inputs.residual = {spread.data(), tokens, hidden, token, slot};
  const auto strided = end_to_end(inputs);
  EXPECT_EQ(compact.layer_input.value, strided.layer_input.value);
  EXPECT_EQ(compact.comb.value, strided.comb.value);
}

TEST(MhcPre, FusedNormMultipliesByItsWeightAndPredictsTheStashedRounding) {
  HyperConnectionData data = four_twos();
  data.base.assign(24, 60);  // gates are 1 (+ eps)
  data.norm_weight = {HyperConnectionData::bf16(1.5)};
  reference::MhcPre inputs = data.mhc_pre();
  inputs.norm = {data.norm_weight.data(), 0};
  const Estimate out = end_to_end(inputs).layer_input;
  EXPECT_DOUBLE_EQ(out.value[0], 1.5);  // one column: y / |y| * weight
  // y = 8 (1 + 1e-6) is rounded to 8 for the product, but the mean square uses the unrounded y.
  EXPECT_NEAR(out.shift[0], -1.5e-6, 1e-11);
}

TEST(MhcPost, SumsOverTheFirstIndexOfComb) {
  HyperConnectionData data(9, 1, 3);
  data.post = {0, 0, 0, 2};
  data.comb.assign(16, 0);
  data.comb[0 * 4 + 1] = 1;  // comb[0, 1]: stream 0 is added to stream 1
  const Estimate out = reference::mhc_post(data.mhc_post(), {});
  for (int h = 0; h < 3; ++h) {
    EXPECT_EQ(out.value[0 * 3 + h], 0);
    EXPECT_EQ(out.value[1 * 3 + h], fp32::from_bf16(data.residual[h]));
    EXPECT_EQ(out.value[2 * 3 + h], 0);
    EXPECT_EQ(out.value[3 * 3 + h], 2 * fp32::from_bf16(data.x[h]));
  }
}

TEST(HcHead, AddsEpsToEveryGate) {
  HyperConnectionData data = four_twos();
  data.base.assign(24, -200);
  const Estimate out = reference::hc_head(data.hc_head(), {});
  EXPECT_NEAR(out.value[0], 4 * 2 * kHc, 1e-20);
}

TEST(HcHead, RoundedVariantPredictsWhatRoundingMovesTheMix) {
  // x = (3, 1, 1, 1), so r = 1/sqrt(3). In bf16, 3 r rounds to 1.734375 and the other elements to
  // 0.578125.
  HyperConnectionData data = four_twos();
  data.residual[0] = HyperConnectionData::bf16(3);
  for (int i = 1; i < 4; ++i) data.residual[i] = HyperConnectionData::bf16(1);
  data.fn[0] = 1;  // gate 0 depends on 3 r alone
  reference::HcHead inputs = data.hc_head();
  inputs.rms_eps = 0;
  inputs.round_normalised = true;
  const Estimate out = reference::hc_head(inputs, {});
  const auto gate = [](double mix) { return 1 / (1 + std::exp(-mix)) + kHc; };
  EXPECT_DOUBLE_EQ(out.value[0], 3 * gate(std::sqrt(3.0)) + 3 * gate(0));
  EXPECT_NEAR(out.value[0] + out.shift[0], 3 * gate(1.734375) + 3 * gate(0), 1e-12);
}

TEST(Sinkhorn, CovarianceAgreesWithRandomPerturbations) {
  Random random(10);
  reference::Matrix4 logits{};
  for (double& z : logits) z = 2 * random.normal();
  constexpr double kSpread = 1e-4;
  reference::Covariance16 spread{};
  for (int i = 0; i < 16; ++i) spread[i][i] = kSpread * kSpread;
  Numerics exact;
  exact.accumulator = reference::Format::f64;
  exact.function_ulp = 0;
  const auto expected = reference::sinkhorn(logits, spread, 0, 3, kHc, exact);
  constexpr int kSamples = 4000;
  std::array<double, 16> squares{};
  double together = 0;
  for (int n = 0; n < kSamples; ++n) {
    reference::Matrix4 moved = logits;
    for (double& z : moved) z += kSpread * random.normal();
    const auto got = reference::sinkhorn(moved, {}, 0, 3, kHc, exact);
    std::array<double, 16> change{};
    for (int i = 0; i < 16; ++i) change[i] = std::log(got.value[i] / expected.value[i]);
    for (int i = 0; i < 16; ++i) squares[i] += change[i] * change[i] / kSamples;
    together += change[0] * change[5] / kSamples;
  }
  // A variance from 4000 samples has a standard error of 2.2 %. The limit is five of these.
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(squares[i] / expected.covariance[i][i], 1, 0.12) << i;
  const double scale = std::sqrt(expected.covariance[0][0] * expected.covariance[5][5]);
  EXPECT_NEAR(together / scale, expected.covariance[0][5] / scale, 0.12);
}

TEST(Sinkhorn, WorstCaseHoldsForEveryCornerOfTheLogitsError) {
  Random random(11);
  Numerics exact;
  exact.accumulator = reference::Format::f64;
  exact.function_ulp = 0;
  for (int n = 0; n < 40; ++n) {
    reference::Matrix4 logits{};
    for (double& z : logits) z = 6 * random.normal();
    constexpr double kReach = 0.01;
    const int iterations = 1 + n % 20;
    const auto expected = reference::sinkhorn(logits, {}, kReach, iterations, kHc, exact);
    for (int corner = 0; corner < 200; ++corner) {
      reference::Matrix4 moved = logits;
      for (double& z : moved) z += random.uniform() < 0.5 ? kReach : -kReach;
      const auto got = reference::sinkhorn(moved, {}, 0, iterations, kHc, exact);
      for (int i = 0; i < 16; ++i) {
        EXPECT_LE(std::abs(std::log(got.value[i] / expected.value[i])), expected.worst);
      }
    }
  }
}

TEST(Mhc, EqualTermsNeedTheWorstCaseAndKeepToIt) {
  HyperConnectionData data(12, 1, 4096);
  data.residual.assign(4 * 4096, HyperConnectionData::bf16(1.1015625));
  data.fn.assign(data.fn.size(), 0.1F);
  const reference::MhcPre inputs = data.mhc_pre();
  Estimate expected = reference::mhc_pre_partials(inputs, {}).mixes;
  const double got = fp32::mhc_pre_partials(inputs, reference::Format::f32, {}).mixes[0];
  const double error = std::abs(got - expected.value[0]);
  EXPECT_GT(error, expected.bound(0)) << "a case that does not need it proves nothing";
  expected.structured = true;
  EXPECT_LE(error, expected.bound(0));
}

// Compares the mean error of many rows with the predicted bias. Independent roundings average out.
void expect_known_bias(int rows, std::int64_t hidden) {
  HyperConnectionData data(13, rows, hidden);
  Random random(14);
  for (std::uint16_t& bits : data.residual) bits = HyperConnectionData::bf16(random.normal());
  const reference::MhcPre inputs = data.mhc_pre();
  const Estimate expected = reference::mhc_pre_partials(inputs, {}).square_sums;
  const auto got = fp32::mhc_pre_partials(inputs, reference::Format::f32, {}).square_sums;
  double mean = 0, variance = 0, systematic = 0;
  for (int row = 0; row < rows; ++row) {
    const double unit = expected.value[row] * rows;
    mean += (got[row] - expected.value[row]) / unit;
    variance += std::pow(expected.sigma[row] / unit, 2);
    systematic += expected.row_systematic[row] / unit;
  }
  EXPECT_GT(std::abs(mean), 5 * std::sqrt(variance)) << "no bias to be known";
  EXPECT_LE(std::abs(mean), 3 * std::sqrt(variance) + systematic);
}

TEST(Mhc, SquareSumsOfBf16NumbersRoundWithABiasThatTheBoundKnows) { expect_known_bias(200, 1792); }

// A sum of few squares is exact until it enters the last binade.
TEST(Mhc, SumsOfFewSquaresRoundWithABiasThatTheBoundKnows) { expect_known_bias(100000, 1); }

}  // namespace mhc_test
}  // namespace plumb::tests
