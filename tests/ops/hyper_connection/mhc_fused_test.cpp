// SPDX-License-Identifier: Apache-2.0
//
// Tests mhc_fused_post_pre and mhc_pre_broadcast: results computed by hand, identities with the
// plain ops, bounds that correct fp32 arithmetic keeps and comes near to, and the kernels that a
// call launches.
#include <gtest/gtest.h>
#include <plumb/ops/hyper_connection.h>

#include <cmath>
#include <vector>

#include "reference/hyper_connection/mhc_fused_post_pre.h"
#include "reference/hyper_connection/mhc_pre_broadcast.h"
#include "tests/support/margins.h"
#include "tests/support/mhc_data.h"
#include "tests/support/op_session.h"

namespace plumb::device::kernels {
device::OpEntry mhc_fused_post_pre();
device::OpEntry mhc_pre_broadcast();
}  // namespace plumb::device::kernels

namespace plumb::cases {
OpDefinition define_mhc_fused_post_pre();
}  // namespace plumb::cases

namespace plumb::tests {
namespace mhc_fused_test {

using reference::Estimate;
using reference::kMixes;
using reference::Numerics;

constexpr int kSeeds = 24;
constexpr std::int64_t kTokens = 6, kHidden = 96;

// One token with hidden size 1. Stream 0 becomes 1 + 2^-9, which bf16 rounds to 1.
struct OneColumn {
  std::vector<std::uint16_t> x = {HyperConnectionData::bf16(0x1p-9)};
  std::vector<std::uint16_t> residual, stored;
  std::vector<float> post = {1, 0, 2, 0}, comb = std::vector<float>(16, 0);
  std::vector<float> fn = std::vector<float>(24 * 4, 0), scale = {1, 1, 1},
                     base = std::vector<float>(24, 0);

  OneColumn() {
    for (const double v : {1.0, 2.0, 3.0, 4.0}) residual.push_back(HyperConnectionData::bf16(v));
    comb[4 * 0 + 0] = 1;    // new stream 0: x + old 0
    comb[4 * 3 + 1] = 1;    // new stream 1: old 3
    comb[4 * 1 + 2] = 0.5;  // new stream 2: 2 x + old 1 / 2
    for (const double v : {1.0, 4.0, 1 + 0x1p-7, 0.0}) {
      stored.push_back(HyperConnectionData::bf16(v));
    }
    fn[0] = 3;           // mix 0: stream 0
    fn[4 * 5 + 1] = -1;  // mix 5: streams 1 and 2
    fn[4 * 5 + 2] = 2;
  }
  reference::MhcFusedPostPre inputs(bool unrounded) const {
    reference::MhcFusedPostPre inputs;
    inputs.post = {x.data(), {residual.data(), 1, 1, 4, 1}, post.data(), comb.data()};
    inputs.pre.residual = {stored.data(), 1, 1, 4, 1};
    inputs.pre.fn = fn.data();
    inputs.pre.scale = scale.data();
    inputs.pre.base = base.data();
    inputs.unrounded_sums = unrounded;
    return inputs;
  }
};

TEST(MhcFusedReference, HandMadeToken) {
  const OneColumn data;
  const double first = 1 + 0x1p-9, third = 0x1p-8 + 1;
  const auto small = reference::mhc_fused_post_pre(data.inputs(true), Numerics{});
  EXPECT_EQ(small.residual.value, (std::vector<double>{first, 4, third, 0}));
  EXPECT_EQ(small.partials.mixes.value[0], 3 * first);
  EXPECT_EQ(small.partials.mixes.value[5], -4 + 2 * third);
  EXPECT_EQ(small.partials.mixes.value[1], 0);
  EXPECT_EQ(small.partials.square_sums.value[0], first * first + 16 + third * third);

  const double stored = 1 + 0x1p-7;
  const auto large = reference::mhc_fused_post_pre(data.inputs(false), Numerics{});
  EXPECT_EQ(large.partials.mixes.value[0], 3);
  EXPECT_EQ(large.partials.mixes.value[5], -4 + 2 * stored);
  EXPECT_EQ(large.partials.square_sums.value[0], 1 + 16 + stored * stored);
}

// Partial sums of mhc_pre, added in one order, over streams that are computed in fp32 and not
// rounded.
struct SmallBatch {
  std::vector<float> mixes, square_sums;
};

float rounded(float x) { return fp32::from_bf16(fp32::to_bf16(x)); }

// Appends the terms of one sum: squares if `weight` is null, else products with one mix. Split
// weights give two terms per product.
void append_terms(float x, const float* weight, bool split, std::vector<float>& terms) {
  if (weight == nullptr) {
    terms.push_back(x * x);
  } else if (split) {
    terms.push_back(rounded(x) * rounded(*weight));
    terms.push_back(rounded(x) * rounded(*weight - rounded(*weight)));
  } else {
    terms.push_back(x * *weight);
  }
}

SmallBatch run_small_batch(const HyperConnectionData& data, int splits, const fp32::Order& order,
                           bool split_weights, std::vector<float>& streams) {
  const std::int64_t depth = 4 * data.hidden;
  streams.clear();
  for (std::int64_t i = 0; i < data.tokens * depth; ++i) {
    const std::int64_t token = i / depth, n = i % depth / data.hidden, h = i % data.hidden;
    std::vector<float> terms = {data.post[4 * token + n] *
                                fp32::from_bf16(data.x[token * data.hidden + h])};
    for (std::int64_t m = 0; m < 4; ++m) {
      terms.push_back(data.comb[16 * token + 4 * m + n] *
                      fp32::from_bf16(data.residual[(4 * token + m) * data.hidden + h]));
    }
    streams.push_back(fp32::add_up(terms, {1, false, order.reversed}));
  }
  SmallBatch sums;
  for (int s = 0; s < splits; ++s) {
    for (std::int64_t token = 0; token < data.tokens; ++token) {
      for (int c = 0; c <= kMixes; ++c) {  // c == kMixes: the squares
        std::vector<float> terms;
        for (std::int64_t k = depth * s / splits; k < depth * (s + 1) / splits; ++k) {
          append_terms(streams[token * depth + k], c < kMixes ? &data.fn[c * depth + k] : nullptr,
                       split_weights, terms);
        }
        (c < kMixes ? sums.mixes : sums.square_sums).push_back(fp32::add_up(terms, order));
      }
    }
  }
  return sums;
}

// The first piece of a split product has 16 bits, so most of its additions do not round. The bound
// counts a rounding for each piece, so it is wider than other bounds by sqrt(2).
void expect_honest_and_tight(bool split_weights) {
  const double most = split_weights ? 16 * std::sqrt(2.0) : 16;
  for (const fp32::Order& order : {fp32::Order{1, false, false}, fp32::Order{1, false, true},
                                   fp32::Order{4, true, false}, fp32::Order{64, false, false}}) {
    Margins mixes, square_sums, residual;
    Numerics numerics;
    numerics.chains = order.chains;
    numerics.function_ulp = 0.5;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const HyperConnectionData data(700 + seed, kTokens, kHidden);
      std::vector<float> streams;
      reference::MhcFusedPostPre inputs{data.mhc_post(), data.mhc_pre(), true};
      inputs.pre.splits = std::vector{1, 4, 7, 24}[seed % 4];
      inputs.pre.bf16_split = split_weights;
      const SmallBatch got =
          run_small_batch(data, inputs.pre.splits, order, split_weights, streams);
      std::vector<std::uint16_t> stored;
      for (const float v : streams) stored.push_back(fp32::to_bf16(v));
      inputs.pre.residual.data = stored.data();
      const auto expected = reference::mhc_fused_post_pre(inputs, numerics);
      mixes.add(expected.partials.mixes, got.mixes);
      square_sums.add(expected.partials.square_sums, got.square_sums);
      for (float& v : streams) v = rounded(v);
      residual.add(expected.residual, streams);
    }
    const std::string what = std::to_string(order.chains) + " chains";
    mixes.expect_honest_and_tight("mixes, " + what, most);
    square_sums.expect_honest_and_tight("square sums, " + what);
    residual.expect_honest_and_tight("residual, " + what);
  }
}

TEST(MhcFusedBound, HonestUnroundedSumsStayWithinABoundThatIsTight) {
  expect_honest_and_tight(false);
}
TEST(MhcFusedBound, HonestSumsOfSplitWeightsStayWithinABoundThatIsTight) {
  expect_honest_and_tight(true);
}

// With unsplit weights some mixes exceed the bound of split weights, so the check distinguishes the
// two.
TEST(MhcFusedBound, WeightsInOnePieceExceedThatOfSplitOnes) {
  const HyperConnectionData data(901, kTokens, kHidden);
  reference::MhcPre inputs = data.mhc_pre();
  const auto whole = reference::mhc_pre_partials(inputs, Numerics{}).mixes;
  inputs.bf16_split = true;
  const auto split = reference::mhc_pre_partials(inputs, Numerics{}).mixes;
  int beyond = 0;
  for (std::int64_t i = 0; i < std::ssize(whole.value); ++i) {
    beyond += std::abs(whole.value[i] - split.centre(i)) > split.bound(i);
  }
  EXPECT_GT(beyond, static_cast<int>(whole.value.size() / 10));
}

// Sums of rounded streams are far outside the bound of unrounded ones, so the check notices the
// wrong choice.
TEST(MhcFusedBound, RoundedStreamsExceedIt) {
  const HyperConnectionData data(900, kTokens, kHidden);
  reference::MhcFusedPostPre inputs{data.mhc_post(), data.mhc_pre(), true};
  const auto unrounded = reference::mhc_fused_post_pre(inputs, Numerics{}).partials;
  const Estimate residual = reference::mhc_post(inputs.post, Numerics{});
  std::vector<std::uint16_t> stored;
  for (const double v : residual.value) stored.push_back(HyperConnectionData::bf16(v));
  inputs.pre.residual.data = stored.data();
  inputs.unrounded_sums = false;
  const auto rounded = reference::mhc_fused_post_pre(inputs, Numerics{}).partials;
  int beyond = 0;
  for (std::size_t i = 0; i < rounded.mixes.value.size(); ++i) {
    const double error = std::abs(rounded.mixes.value[i] - unrounded.mixes.value[i]);
    beyond += error > unrounded.mixes.bound(static_cast<std::int64_t>(i));
  }
  EXPECT_GT(beyond, static_cast<int>(rounded.mixes.value.size() * 9 / 10));
}

// mhc_pre_broadcast with summed weights must equal mhc_pre of four equal streams.
TEST(MhcBroadcastReference, IsMhcPreOfFourEqualStreams) {
  HyperConnectionData data(31, kTokens, kHidden);
  std::vector<std::uint16_t> one, four;
  for (std::int64_t token = 0; token < kTokens; ++token) {
    const auto* row = &data.x[token * kHidden];
    one.insert(one.end(), row, row + kHidden);
    for (int slot = 0; slot < 4; ++slot) four.insert(four.end(), row, row + kHidden);
  }
  std::vector<float> summed(24 * kHidden);
  for (std::int64_t c = 0; c < 24; ++c) {
    for (std::int64_t k = 0; k < 4 * kHidden; ++k) {
      float& weight = data.fn[c * 4 * kHidden + k];
      weight = std::round(weight * 1024) / 1024;  // so that the sum of four weights is exact
      summed[c * kHidden + k % kHidden] += weight;
    }
  }
  reference::MhcPre plain = data.mhc_pre(), broadcast = plain;
  plain.residual = {four.data(), kTokens, kHidden, 4 * kHidden, kHidden};
  broadcast.residual = reference::broadcast(one.data(), kTokens, kHidden, kHidden);
  broadcast.fn = summed.data();
  broadcast.summed_weights = true;
  broadcast.splits = 3;
  const Numerics numerics;
  const auto expected =
      reference::mhc_pre_outputs(plain, reference::mhc_pre_partials(plain, numerics), numerics);
  const auto got = reference::mhc_pre_outputs(
      broadcast, reference::mhc_pre_partials(broadcast, numerics), numerics);
  const auto compare = [](const Estimate& a, const Estimate& b) {
    ASSERT_EQ(a.value.size(), b.value.size());
    for (std::size_t i = 0; i < a.value.size(); ++i) {
      EXPECT_NEAR(a.value[i], b.value[i], 1e-11 * std::abs(b.value[i])) << i;
    }
  };
  compare(got.post, expected.post);
  compare(got.comb, expected.comb);
  compare(got.layer_input, expected.layer_input);
}

TEST(MhcFusedKernel, StoresFirstFrom17TokensOn) {
  const cases::OpDefinition op = cases::define_mhc_fused_post_pre();
  cases::Row row;
  for (const cases::Parameter& parameter : op.parameters) {
    row.integers[std::string(parameter.name)] = parameter.default_value;
  }
  row.integers.at("hidden") = 8;
  row.words["unrounded_rows"] = "16";
  const auto kernels_of = [&](std::int64_t tokens) {
    row.integers.at("tokens") = tokens;
    cases::OpSession session(op, row, {1, tokens}, "sim-sm90");
    return session.captured(device::kernels::mhc_fused_post_pre());
  };
  EXPECT_EQ(kernels_of(16),
            (std::vector<std::string>{"mhc_fused_small_partials", "mhc_fused_outputs<true>"}));
  EXPECT_EQ(kernels_of(17), (std::vector<std::string>{"mhc_fused_post<true>", "mhc_fused_partials",
                                                      "mhc_fused_outputs<true>"}));
}

TEST(MhcFusedKernel, RefusesWhatIsMissing) {
  plumb_mhc_fused_post_pre_params fused{};
  plumb_mhc_pre_broadcast_params broadcast{};
  fused.hidden = broadcast.hidden = 8;
  fused.splits = broadcast.splits = 1;
  fused.sinkhorn_iterations = broadcast.sinkhorn_iterations = 1;
  fused.residual_out_token_stride = broadcast.residual_out_token_stride = 32;
  fused.residual_out_slot_stride = broadcast.residual_out_slot_stride = 8;
  fused.post_row_stride = broadcast.post_row_stride = 4;
  fused.comb_token_stride = broadcast.comb_token_stride = 16;
  fused.layer_input_row_stride = broadcast.layer_input_row_stride = 8;
  EXPECT_EQ(device::kernels::mhc_fused_post_pre().launch(&fused), PLUMB_OK);  // no tokens
  EXPECT_EQ(device::kernels::mhc_pre_broadcast().launch(&broadcast), PLUMB_OK);
  fused.tokens = broadcast.tokens = 1;
  EXPECT_EQ(device::kernels::mhc_fused_post_pre().launch(&fused), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::mhc_pre_broadcast().launch(&broadcast), PLUMB_INVALID_ARGUMENT);
  fused.tokens = broadcast.tokens = -1;
  EXPECT_EQ(device::kernels::mhc_fused_post_pre().launch(&fused), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::mhc_pre_broadcast().launch(&broadcast), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::mhc_fused_post_pre().launch(nullptr), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::mhc_pre_broadcast().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace mhc_fused_test
}  // namespace plumb::tests
