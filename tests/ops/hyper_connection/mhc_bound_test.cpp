// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds of the hyper-connection ops: correct fp32 arithmetic in several orders and over
// many seeds never exceeds them, and comes near enough that a small error would exceed them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "tests/support/margins.h"
#include "tests/support/mhc_data.h"

namespace plumb::tests {
namespace mhc_bound_test {

using reference::Estimate;
using reference::Format;
using reference::Numerics;

constexpr int kSeeds = 24;
constexpr std::int64_t kTokens = 12, kHidden = 160;

struct NamedOrder {
  std::string name;
  fp32::Order order;
};
const std::vector<NamedOrder>& orders() {
  static const std::vector<NamedOrder> all = {{"sequential", {1, false, false}},
                                              {"reversed", {1, false, true}},
                                              {"two interleaved chains", {2, false, false}},
                                              {"64 chains", {64, false, false}},
                                              {"4 contiguous parts", {4, true, false}}};
  return all;
}

Numerics numerics_of(const fp32::Order& order, Format product = Format::f32) {
  Numerics numerics;
  numerics.product = product;
  numerics.chains = order.chains;
  numerics.function_ulp = 0.5;
  if (order.unit != nullptr) {
    numerics.unit = reference::SumUnit::sm90_bf16;
    numerics.step = order.unit->step;
  }
  return numerics;
}

struct MhcPreMargins {
  Margins mixes, square_sums, post, comb, layer_input, post_of_all, comb_of_all, layer_input_of_all;

  void add(const reference::MhcPre& inputs, const fp32::Order& order, Format product) {
    const Numerics numerics = numerics_of(order, product);
    const fp32::Partials stored = fp32::mhc_pre_partials(inputs, product, order);
    const fp32::Outputs got = fp32::mhc_pre_outputs(inputs, stored, order);
    const auto partials = reference::mhc_pre_partials(inputs, numerics);
    mixes.add(partials.mixes, stored.mixes);
    square_sums.add(partials.square_sums, stored.square_sums);
    const auto from_stored = reference::mhc_pre_outputs(
        inputs, reference::stored_partials(inputs, stored.mixes.data(), stored.square_sums.data()),
        numerics);
    post.add(from_stored.post, got.post);
    comb.add(from_stored.comb, got.comb);
    layer_input.add(from_stored.layer_input, got.layer_input);
    const auto end_to_end = reference::mhc_pre_outputs(inputs, partials, numerics);
    post_of_all.add(end_to_end.post, got.post);
    comb_of_all.add(end_to_end.comb, got.comb);
    layer_input_of_all.add(end_to_end.layer_input, got.layer_input);
  }
  void expect_honest(const std::string& what) const {
    for (const Margins* one : {&mixes, &square_sums, &post, &comb, &layer_input, &post_of_all,
                               &comb_of_all, &layer_input_of_all}) {
      one->expect_honest(what);
    }
  }
  void expect_honest_and_tight(const std::string& what, double most_of_mixes = 16) {
    mixes.expect_honest_and_tight(what + ", partial_mixes", most_of_mixes);
    square_sums.expect_honest_and_tight(what + ", partial_square_sums");
    post.expect_honest_and_tight(what + ", post of stored partials");
    comb.expect_honest_and_tight(what + ", comb of stored partials");
    layer_input.expect_honest_and_tight(what + ", layer_input of stored partials");
    post_of_all.expect_honest_and_tight(what + ", post end to end");
    comb_of_all.expect_honest_and_tight(what + ", comb end to end");
    layer_input_of_all.expect_honest_and_tight(what + ", layer_input end to end");
  }
};

TEST(MhcBound, HonestMhcPreStaysWithinABoundThatIsTight) {
  for (const NamedOrder& order : orders()) {
    MhcPreMargins margins;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const HyperConnectionData data(seed, kTokens, kHidden);
      reference::MhcPre inputs = data.mhc_pre();
      inputs.splits = std::vector{4, 8, 5}[seed % 3];
      inputs.sinkhorn_iterations = seed % 2 == 0 ? 20 : 10;
      margins.add(inputs, order.order, Format::f32);
    }
    margins.expect_honest_and_tight(order.name);
  }
}

TEST(MhcBound, ProductsRoundedToBf16StayWithinABoundThatIsTight) {
  for (const NamedOrder& order : orders()) {
    MhcPreMargins margins;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const HyperConnectionData data(400 + seed, kTokens, kHidden);
      reference::MhcPre inputs = data.mhc_pre();
      inputs.splits = std::vector{4, 1, 5}[seed % 3];
      inputs.bf16_mixes = true;
      margins.add(inputs, order.order, Format::f32);
    }
    margins.expect_honest(order.name);
    margins.post_of_all.expect_honest_and_tight(order.name + ", post end to end");
    margins.comb_of_all.expect_honest_and_tight(order.name + ", comb end to end");
  }
}

TEST(MhcBound, HonestFusedNormStaysWithinABoundThatIsTight) {
  for (const NamedOrder& order : orders()) {
    MhcPreMargins margins;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const HyperConnectionData data(100 + seed, kTokens, kHidden);
      reference::MhcPre inputs = data.mhc_pre();
      inputs.splits = 4;
      inputs.norm = {data.norm_weight.data(), 1e-6};
      margins.add(inputs, order.order, Format::f32);
    }
    margins.layer_input.expect_honest_and_tight(order.name + ", norm of stored partials");
    margins.layer_input_of_all.expect_honest_and_tight(order.name + ", norm end to end");
  }
}

TEST(MhcBound, Tf32WeightsRoundedOrTruncatedArePredicted) {
  for (const Format product : {Format::tf32, Format::tf32_truncated}) {
    MhcPreMargins margins;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const HyperConnectionData data(200 + seed, kTokens, kHidden);
      reference::MhcPre inputs = data.mhc_pre();
      inputs.splits = 4;
      inputs.norm = {data.norm_weight.data(), 1e-6};
      margins.add(inputs, {4, false, false}, product);
    }
    // The predicted shift of the rounded weights is not part of the error, so the sums' own error
    // is small compared with the bound: the median of bound / error is 18 and 19 for the two
    // formats.
    margins.expect_honest_and_tight(product == Format::tf32 ? "tf32" : "tf32 truncated", 20);
  }
}

float tf32_of(float x) {
  constexpr std::uint32_t kUnit = 1U << 13;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + kUnit / 2 - 1 + (bits / kUnit & 1)) & ~(kUnit - 1));
}

// Gates of post if the streams are multiplied by 1/rms before the product with fn.
std::vector<float> post_of_scaled_streams(const reference::MhcPre& inputs, Format product,
                                          const fp32::Order& order) {
  std::vector<float> post;
  for (std::int64_t token = 0; token < inputs.residual.tokens; ++token) {
    const std::vector<double> x = reference::load_token(inputs.residual, token);
    std::vector<float> squares;
    for (const double one : x) squares.push_back(static_cast<float>(one * one));
    const float mean = fp32::add_up(squares, order) / static_cast<float>(x.size());
    const auto r = static_cast<float>(1 / std::sqrt(mean + static_cast<float>(inputs.rms_eps)));
    for (int c = reference::kStreams; c < 2 * reference::kStreams; ++c) {
      std::vector<float> terms;
      for (std::size_t k = 0; k < x.size(); ++k) {
        const float scaled = static_cast<float>(x[k]) * r, weight = inputs.fn[c * x.size() + k];
        const bool tf32 = product == Format::tf32;
        terms.push_back(tf32 ? tf32_of(scaled) * tf32_of(weight) : scaled * weight);
      }
      const float logit = fp32::add_up(terms, order) * inputs.scale[1] + inputs.base[c];
      const auto gate = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit))));
      post.push_back(gate * static_cast<float>(inputs.post_mult));
    }
  }
  return post;
}

TEST(MhcBound, ScaledStreamsStayWithinABoundThatIsTight) {
  for (const Format product : {Format::f32, Format::tf32}) {
    const fp32::Order order{4, false, false};
    Margins margins, of_stored;
    for (int seed = 0; seed < 3 * kSeeds; ++seed) {
      const HyperConnectionData data(270 + seed, kTokens, kHidden);
      reference::MhcPre inputs = data.mhc_pre();
      inputs.splits = 1;
      const std::vector<float> got = post_of_scaled_streams(inputs, product, order);
      const Numerics numerics = numerics_of(order, product);
      const auto expected = [&] {
        return mhc_pre_outputs(inputs, mhc_pre_partials(inputs, numerics), numerics).post;
      };
      of_stored.add(expected(), got);
      inputs.scaled_streams = true;
      margins.add(expected(), got);
    }
    margins.expect_honest_and_tight(product == Format::tf32 ? "tf32" : "fp32");
    if (product == Format::tf32) {
      EXPECT_TRUE(of_stored.exceeded()) << "the roundings of scaled streams are in no bound";
    }
  }
}

// wgmma of sm90 on tf32 adds 8 products per instruction.
TEST(MhcBound, SumsInTheUnitOfSm90StayWithinABoundThatIsTight) {
  reference::MatrixUnit unit = reference::kSm90Bf16;
  unit.step = 8;
  MhcPreMargins margins;
  double mean = 0, allowance = 0, variance = 0, nearest_variance = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const HyperConnectionData data(250 + seed, kTokens, kHidden);
    reference::MhcPre inputs = data.mhc_pre();
    inputs.splits = 1;
    const fp32::Order order{.unit = &unit};
    margins.add(inputs, order, Format::tf32);
    const auto stored = fp32::mhc_pre_partials(inputs, Format::tf32, order).mixes;
    const Numerics declared = numerics_of(order, Format::tf32);
    const Estimate expected = reference::mhc_pre_partials(inputs, declared).mixes;
    const Estimate nearest =
        reference::mhc_pre_partials(inputs, numerics_of({}, Format::tf32)).mixes;
    for (std::int64_t i = 0; i < std::ssize(stored); ++i) {
      const double error = stored[i] - expected.centre(i);
      mean += std::copysign(1.0, expected.value[i]) * error;
      variance += expected.sigma[i] * expected.sigma[i];
      nearest_variance += nearest.sigma[i] * nearest.sigma[i];
    }
    for (const double one : expected.row_systematic) {
      allowance += one * static_cast<double>(expected.columns);
    }
  }
  margins.mixes.expect_honest_and_tight("mixes", 30);
  margins.post_of_all.expect_honest_and_tight("post", 30);
  margins.comb_of_all.expect_honest_and_tight("comb", 30);
  margins.layer_input_of_all.expect_honest_and_tight("layer_input", 30);
  EXPECT_LE(std::abs(mean), allowance + 5 * std::sqrt(variance));
  EXPECT_LT(mean, -5 * std::sqrt(nearest_variance)) << "truncation passes for rounding to nearest";
}

// A kernel may add its squares in the matrix unit too. All terms have one sign, so each truncation
// makes the sum smaller.
TEST(MhcBound, SquaresInTheUnitOfSm90StayWithinABoundThatIsTight) {
  Margins margins;
  double mean = 0, allowance = 0, nearest_sigma = 0;
  for (int seed = 0; seed < 4 * kSeeds; ++seed) {
    const HyperConnectionData data(1000 + seed, kTokens, kHidden);
    reference::MhcPre inputs = data.mhc_pre();
    inputs.splits = 1;
    std::vector<float> stored;
    for (std::int64_t token = 0; token < kTokens; ++token) {
      const std::vector<double> x = reference::load_token(inputs.residual, token);
      const std::vector<float> operands(x.begin(), x.end());
      stored.push_back(reference::matrix_sum(reference::kSm90Bf16, operands.data(), operands.data(),
                                             std::ssize(operands)));
    }
    const fp32::Order in_unit{.unit = &reference::kSm90Bf16};
    const Estimate expected = reference::mhc_pre_partials(inputs, numerics_of(in_unit)).square_sums;
    const Estimate nearest = reference::mhc_pre_partials(inputs, numerics_of({})).square_sums;
    margins.add(expected, stored);
    for (std::int64_t i = 0; i < kTokens; ++i) {
      mean += stored[i] - expected.value[i];
      allowance += expected.row_systematic[i];
      nearest_sigma = std::hypot(nearest_sigma, nearest.sigma[i]);
    }
  }
  margins.expect_honest_and_tight("squares", 30);
  EXPECT_LE(std::abs(mean), allowance);
  EXPECT_LT(mean, -5 * nearest_sigma) << "truncation passes for rounding to nearest";
}

TEST(MhcBound, HonestMhcPostStaysWithinABoundThatIsTight) {
  for (const NamedOrder& order : orders()) {
    if (order.order.chains > 4) continue;
    Margins margins;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const HyperConnectionData data(300 + seed, kTokens, kHidden);
      margins.add(reference::mhc_post(data.mhc_post(), numerics_of(order.order)),
                  fp32::mhc_post(data.mhc_post(), order.order));
    }
    margins.expect_honest_and_tight(order.name);
  }
}

TEST(MhcBound, HonestHcHeadStaysWithinABoundThatIsTight) {
  for (const NamedOrder& order : orders()) {
    for (const bool round_normalised : {false, true}) {
      Margins margins;
      for (int seed = 0; seed < kSeeds; ++seed) {
        const HyperConnectionData data(400 + seed, kTokens, kHidden);
        reference::HcHead inputs = data.hc_head();
        inputs.round_normalised = round_normalised;
        margins.add(reference::hc_head(inputs, numerics_of(order.order)),
                    fp32::hc_head(inputs, Format::f32, order.order));
      }
      margins.expect_honest_and_tight(order.name + (round_normalised ? ", rounded x r" : ""));
    }
  }
}

// A small size and many seeds, to find rare errors.
TEST(MhcBound, NoHonestResultOfThousandSeedsIsBeyondIt) {
  for (const fp32::Order& order :
       {fp32::Order{1, false, false}, fp32::Order{1, false, true}, fp32::Order{4, true, false}}) {
    Margins streams;
    MhcPreMargins mixing;
    for (int seed = 0; seed < 1000; ++seed) {
      const HyperConnectionData data(10000 + seed, 2, 24);
      reference::MhcPre inputs = data.mhc_pre();
      inputs.splits = std::vector{1, 4, 7}[seed % 3];
      if (seed % 2 == 1) inputs.norm = {data.norm_weight.data(), 1e-6F};
      mixing.add(inputs, order, Format::f32);
      streams.add(reference::mhc_post(data.mhc_post(), numerics_of(order)),
                  fp32::mhc_post(data.mhc_post(), order));
    }
    streams.expect_honest("mhc_post");
    mixing.expect_honest("mhc_pre");
  }
}

}  // namespace mhc_bound_test
}  // namespace plumb::tests
