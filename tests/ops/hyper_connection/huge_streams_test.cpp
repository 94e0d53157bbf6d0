// SPDX-License-Identifier: Apache-2.0
//
// Streams whose squares add up to infinity in fp32, as in rows that an engine leaves unwritten. A
// right kernel gets 1 / sqrt(infinity) = 0, so its mixes are the base alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/hyper_connection/hc_head.h"
#include "reference/hyper_connection/mhc_pre.h"
#include "reference/hyper_connection/sinkhorn.h"
#include "reference/norm/q_head_rms_norm_rope.h"
#include "reference/norm/rms_norm.h"
#include "tests/support/judge_data.h"
#include "tests/support/random.h"

namespace plumb::tests {
namespace huge_streams_test {

using reference::Estimate;
using reference::kMixes;
using reference::kStreams;
using reference::Numerics;

constexpr std::int64_t kHidden = 256, kTerms = kStreams * kHidden;
const Numerics kNumerics{.chains = 32, .function_ulp = 4};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct HugeToken {
  std::vector<std::uint16_t> x;
  std::vector<float> fn, base;
  float scale[3] = {1, 1, 1};

  explicit HugeToken(double size) {
    Random random(5);
    for (std::int64_t i = 0; i < kTerms; ++i) {
      x.push_back(reference::encode_bf16(size * random.normal()));
    }
    for (std::int64_t i = 0; i < kMixes * kTerms; ++i) {
      fn.push_back(static_cast<float>(random.normal() / 32));
    }
    for (int i = 0; i < kMixes; ++i) base.push_back(static_cast<float>(random.normal()));
  }
  reference::Streams streams() const { return {x.data(), 1, kHidden, kTerms, kHidden}; }
  // sum over the streams of factor(stream) * x
  template <class Factor>
  double weighted(std::int64_t column, const Factor& factor) const {
    double total = 0;
    for (int slot = 0; slot < kStreams; ++slot) {
      total += factor(slot) * reference::decode_bf16(x[slot * kHidden + column]);
    }
    return total;
  }
};

void expect_within(double got, const Estimate& expected, std::int64_t i) {
  ASSERT_LE(std::abs(got - expected.centre(i)), expected.bound(i)) << i;  // fails for NaN
}

// got(i): element i of the bf16 output
template <class Element>
void expect_right(const Estimate& expected, const Element& got) {
  const HostTensor stored =
      make_result(expected, 1, [&](std::int64_t i, double) { return got(i); });
  for (const std::string& failure : judge(expected, stored).failures) ADD_FAILURE() << failure;
}

// A kernel whose r is 0 stores zeros. `most`: largest bound of an element.
void expect_may_be_lost(const Estimate& expected, double most) {
  expect_right(expected, [](std::int64_t) { return 0.0; });
  for (std::int64_t i = 0; i < expected.rows * expected.columns; ++i) {
    EXPECT_LT(expected.bound(i), most) << i;
  }
}

TEST(HugeStreams, HcHeadMayLoseItsMixes) {
  for (const double size : {1e18, 1e19, 1e25, 1e36}) {
    const HugeToken token(size);
    const Estimate out = hc_head({.hidden_states = token.streams(),
                                  .fn = token.fn.data(),
                                  .scale = token.scale,
                                  .base = token.base.data()},
                                 kNumerics);
    expect_right(out, [&](std::int64_t column) {
      return token.weighted(column, [&](int slot) { return sigmoid(token.base[slot]); });
    });
  }
}

TEST(HugeStreams, MhcPreMayLoseItsMixes) {
  for (const bool scaled : {false, true}) {
    for (const double size : {1e18, 1e19, 1e25, 1e36}) {
      const HugeToken token(size);
      const reference::MhcPre inputs{.residual = token.streams(),
                                     .fn = token.fn.data(),
                                     .scaled_streams = scaled,
                                     .scale = token.scale,
                                     .base = token.base.data()};
      const auto outputs = mhc_pre_outputs(inputs, mhc_pre_partials(inputs, kNumerics), kNumerics);
      const float* const base = token.base.data();
      for (int slot = 0; slot < kStreams; ++slot) {
        expect_within(2 * sigmoid(base[kStreams + slot]), outputs.post, slot);
      }
      expect_right(outputs.layer_input, [&](std::int64_t column) {
        return token.weighted(column, [&](int slot) { return sigmoid(base[slot]); });
      });
      reference::Matrix4 logits{};
      std::copy_n(base + 2 * kStreams, std::size(logits), logits.begin());
      const auto comb = reference::sinkhorn(logits, {}, 0, inputs.sinkhorn_iterations,
                                            inputs.sinkhorn_eps, kNumerics);
      for (std::size_t i = 0; i < std::size(logits); ++i) {
        expect_within(comb.value[i], outputs.comb, static_cast<std::int64_t>(i));
      }
    }
  }
}

TEST(HugeStreams, AFusedNormMayLoseItsRow) {
  const std::vector<std::uint16_t> weight(kHidden, reference::encode_bf16(1.5));
  for (const double size : {1e18, 1e19, 1e25, 1e37}) {
    const HugeToken token(size);
    const reference::MhcPre inputs{.residual = token.streams(),
                                   .fn = token.fn.data(),
                                   .scale = token.scale,
                                   .base = token.base.data(),
                                   .norm = {weight.data(), 1e-6}};
    const auto outputs = mhc_pre_outputs(inputs, mhc_pre_partials(inputs, kNumerics), kNumerics);
    expect_may_be_lost(outputs.layer_input, 4 * 1.5 * std::sqrt(kHidden));
  }
}

// Squares below fp32's range may be flushed to 0. Then r is infinite.
TEST(HugeStreams, ANormOfTinyNumbersMayBeInfinite) {
  const HugeToken token(1e-25);
  const Estimate out = rms_norm({.x = token.x.data(),
                                 .tokens = kStreams,
                                 .hidden = kHidden,
                                 .x_row_stride = kHidden,
                                 .eps = 0},
                                kNumerics);
  for (std::int64_t i = 0; i < kTerms; ++i) EXPECT_EQ(out.bound(i), tests::kInfinity);
}

// The accumulator of this kernel is so coarse that its sum may be 0.
TEST(HugeStreams, ANormOfOrdinaryNumbersKeepsErrorsWithoutALimit) {
  constexpr std::int64_t kColumns = 4096;
  Random random(3);
  std::vector<std::uint16_t> x;
  for (int i = 0; i < kColumns; ++i) x.push_back(reference::encode_bf16(random.normal()));
  Numerics coarse{.chains = 1, .function_ulp = 4};
  coarse.accumulator = reference::Format::bf16;
  const Estimate out = rms_norm(
      {.x = x.data(), .tokens = 1, .hidden = kColumns, .x_row_stride = kColumns, .eps = 1e-6},
      coarse);
  for (std::int64_t i = 0; i < kColumns; ++i) EXPECT_EQ(out.bound(i), tests::kInfinity);
}

TEST(HugeStreams, ARowNormMayLoseItsRow) {
  const HugeToken token(3e37);
  const Estimate out = rms_norm({.x = token.x.data(),
                                 .tokens = kStreams,
                                 .hidden = kHidden,
                                 .x_row_stride = kHidden,
                                 .eps = 1e-6},
                                kNumerics);
  expect_may_be_lost(out, 4 * std::sqrt(kHidden));
}

TEST(HugeStreams, ANormOfAHeadMayLoseItsRow) {
  const HugeToken token(3e37);
  const std::vector<float> cos_sin(reference::kRopeDim, std::sqrt(0.5F));
  const Estimate out = q_head_rms_norm_rope({.q = token.x.data(),
                                             .cos_sin = cos_sin.data(),
                                             .rows = {0},
                                             .tokens = 1,
                                             .heads = kTerms / reference::kHeadDim,
                                             .q_token_stride = kTerms,
                                             .eps = 1e-6},
                                            kNumerics);
  expect_may_be_lost(out, 6 * std::sqrt(reference::kHeadDim));
}

TEST(HugeStreams, SmallerStreamsKeepTheirBounds) {
  const HugeToken token(1e15);
  const reference::MhcPre inputs{.residual = token.streams(),
                                 .fn = token.fn.data(),
                                 .scale = token.scale,
                                 .base = token.base.data()};
  const auto outputs = mhc_pre_outputs(inputs, mhc_pre_partials(inputs, kNumerics), kNumerics);
  for (int i = 0; i < kStreams; ++i) EXPECT_LT(outputs.post.bound(i), 1e-4);
  for (int i = 0; i < kStreams * kStreams; ++i) EXPECT_LT(outputs.comb.bound(i), 1e-4);
}

}  // namespace huge_streams_test
}  // namespace plumb::tests
