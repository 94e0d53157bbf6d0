// SPDX-License-Identifier: Apache-2.0
//
// Streams whose squares add up to infinity in fp32, as in rows that an engine leaves unwritten. A
// right kernel gets 1 / sqrt(infinity) = 0, so its mixes are the base alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/hyper_connection/hc_head.h"
#include "reference/hyper_connection/mhc_pre.h"
#include "reference/hyper_connection/sinkhorn.h"
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

TEST(HugeStreams, HcHeadMayLoseItsMixes) {
  for (const double size : {1e18, 1e19, 1e25, 1e36}) {
    const HugeToken token(size);
    const Estimate out = hc_head({.hidden_states = token.streams(),
                                  .fn = token.fn.data(),
                                  .scale = token.scale,
                                  .base = token.base.data()},
                                 kNumerics);
    for (std::int64_t column = 0; column < kHidden; ++column) {
      const double got =
          token.weighted(column, [&](int slot) { return sigmoid(token.base[slot]); });
      expect_within(got, out, column);
    }
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
      for (std::int64_t column = 0; column < kHidden; ++column) {
        const double got = token.weighted(column, [&](int slot) { return sigmoid(base[slot]); });
        expect_within(got, outputs.layer_input, column);
      }
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
