// SPDX-License-Identifier: Apache-2.0
//
// Tests compress_norm_rope_insert: its reference against results computed by hand, its bound
// against fp32 arithmetic in the orders of kernels, and what its launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/compressor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cases/tensors/fill.h"
#include "device/op_entry.h"
#include "reference/compressor/compress_norm_rope_insert.h"
#include "reference/formats/bfloat16.h"

namespace plumb::device::kernels {
device::OpEntry compress_norm_rope_insert();
}

namespace plumb::reference {
namespace compress_test {

constexpr std::int64_t kDim = 128;

// Partial states of positions 0, 1, ... in fp32, with ape. RoPE turns odd groups by a quarter.
struct Sequence {
  Sequence(std::int64_t positions, std::int64_t group, bool is_overlapping)
      : ratio(group), overlap(is_overlapping), count(positions) {
    states.resize(static_cast<std::size_t>(count * 2 * width()));
    for (std::int64_t position = 0; position < count; ++position) {
      const bool turned = position / ratio % 2 == 1;
      for (int i = 0; i < 32; ++i) cos_sin.push_back(turned ? 0 : 1);
      for (int i = 0; i < 32; ++i) cos_sin.push_back(turned ? 1 : 0);
    }
  }

  std::int64_t width() const { return overlap ? 2 * kDim : kDim; }
  float* kv(std::int64_t position) { return states.data() + position * 2 * width(); }
  float* score(std::int64_t position) { return kv(position) + width(); }
  CompressedStates input(std::vector<std::int64_t> positions) const {
    CompressedStates input;
    input.positions = std::move(positions);
    input.head_dim = kDim;
    input.ratio = ratio;
    input.overlap = overlap;
    input.partial_state = [this](std::int64_t, std::int64_t position) {
      EXPECT_GE(position, 0);
      EXPECT_LT(position, count);
      return reinterpret_cast<const std::uint8_t*>(states.data() + position * 2 * width());
    };
    input.weight = weight.data();
    input.eps = 0;
    input.cos_sin = cos_sin.data();
    return input;
  }

  std::int64_t ratio;
  bool overlap;
  std::int64_t count;
  std::vector<float> states, cos_sin;
  std::vector<std::uint16_t> weight = std::vector<std::uint16_t>(kDim, encode_bf16(1.0));
};

// First halves of channels are 1, second halves 3. The first group has no group before it and uses
// second halves only: all channels are 3, and 1 after the norm. In the next group, the means are of
// 1 and 3. A quarter turn maps (y, y) to (-y, y).
TEST(CompressedStates, TakeTheHalfOfTheirPlace) {
  Sequence sequence(8, 4, true);
  for (std::int64_t position = 0; position < 8; ++position) {
    std::fill_n(sequence.kv(position), kDim, 1.0F);
    std::fill_n(sequence.kv(position) + kDim, kDim, 3.0F);
    sequence.kv(position)[kDim] = position < 4 ? 6 : 3;  // channel 0 of the first group
  }
  const Estimate states = compressed_states(sequence.input({3, 7}), {});
  const double norm = std::sqrt((36 + 127.0 * 9) / 128);
  EXPECT_NEAR(states.value[0], 6 / norm, 1e-12);
  EXPECT_NEAR(states.value[1], 3 / norm, 1e-12);
  EXPECT_NEAR(states.value[kDim], 1, 1e-12);  // (4 * 1 + 4 * 3) / 8 = 2 in every channel
  EXPECT_NEAR(states.value[kDim + 64], -1, 1e-12);
  EXPECT_NEAR(states.value[kDim + 65], 1, 1e-12);
}

// In channel 5 the scores are ln 9 for position 2, 0 for two positions and -inf for one, so
// position 2 has 9/11 of the weight. Its kv is 1, that of the others 0.
TEST(CompressedStates, HaveASoftmaxOfEachChannel) {
  Sequence sequence(4, 4, false);
  for (std::int64_t position = 0; position < 4; ++position) {
    std::fill_n(sequence.kv(position), kDim, 1.0F);
    sequence.kv(position)[5] = position == 2 ? 1 : 0;
  }
  sequence.score(2)[5] = std::log(9.0F);
  sequence.score(0)[5] = -INFINITY;
  const Estimate states = compressed_states(sequence.input({3}), {});
  EXPECT_NEAR(states.value[5] / states.value[4], 9.0 / 11, 1e-7);
}

TEST(CompressedStates, AddApeByThePhaseOfAPosition) {
  Sequence sequence(8, 4, true);
  std::vector<float> ape(4 * 2 * kDim);
  for (std::size_t i = 0; i < ape.size(); ++i) {
    ape[i] = static_cast<float>(cases::normal(1, i));
  }
  for (std::int64_t position = 0; position < 8; ++position) {
    for (std::int64_t i = 0; i < 2 * kDim; ++i) {
      const auto at = static_cast<std::uint64_t>(position * 2 * kDim + i);
      sequence.kv(position)[i] = static_cast<float>(cases::normal(2, at));
      sequence.score(position)[i] = static_cast<float>(cases::integer(3, at, -4, 4));
    }
  }
  CompressedStates raw = sequence.input({3, 7});
  raw.ape = ape.data();
  const Estimate added = compressed_states(raw, {});
  for (std::int64_t position = 0; position < 8; ++position) {
    for (std::int64_t i = 0; i < 2 * kDim; ++i) {
      sequence.score(position)[i] += ape[position % 4 * 2 * kDim + i];
    }
  }
  const Estimate biased = compressed_states(sequence.input({3, 7}), {});
  for (std::size_t i = 0; i < biased.value.size(); ++i) {
    EXPECT_NEAR(added.value[i], biased.value[i], 1e-6);
  }
}

float plain_rsqrt(float x) { return 1 / std::sqrt(x); }

// One channel in fp32, in order, with a running maximum (`online`) or with the maximum of the whole
// window.
float pooled_in_order(Sequence& sequence, std::int64_t last, std::int64_t d, bool online) {
  const std::int64_t window = sequence.overlap ? 2 * sequence.ratio : sequence.ratio;
  float largest = -INFINITY, weights = 0, sum = 0;
  const auto visit = [&](const auto& use) {
    for (std::int64_t i = 0; i < window; ++i) {
      const std::int64_t column = sequence.overlap && i >= sequence.ratio ? kDim + d : d;
      const std::int64_t position = last - window + 1 + i;
      use(sequence.score(position)[column], sequence.kv(position)[column]);
    }
  };
  if (!online) visit([&](float z, float) { largest = std::max(largest, z); });
  visit([&](float z, float k) {
    const float next = std::max(largest, z);
    const float scale = std::exp(largest - next), weight = std::exp(z - next);
    weights = weights * scale + weight;
    sum = sum * scale + weight * k;
    largest = next;
  });
  return sum / weights;
}

// Largest ratio of error to bound of states in fp32 arithmetic. The last 64 channels are not
// rotated.
double largest_share(std::int64_t ratio, bool overlap, bool online) {
  const std::int64_t last = 2 * ratio - 1;
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Sequence sequence(2 * ratio, ratio, overlap);
    for (std::size_t i = 0; i < sequence.states.size(); ++i) {
      sequence.states[i] = static_cast<float>(cases::normal(seed + 10, i));
    }
    for (std::size_t i = 0; i < sequence.cos_sin.size(); ++i) {
      sequence.cos_sin[i] = i % 64 < 32 ? 1 : 0;
    }
    const Estimate states = compressed_states(sequence.input({last}), {.chains = 1});
    std::vector<float> c(kDim);
    float squares = 0;
    for (std::int64_t d = 0; d < kDim; ++d) {
      c[d] = pooled_in_order(sequence, last, d, online);
      squares += c[d] * c[d];
    }
    const float r = plain_rsqrt(squares / kDim);
    for (std::int64_t d = 0; d < kDim; ++d) {
      const double error = std::abs(double{c[d] * r} - states.value[d]);
      largest = std::max(largest, error / states.arithmetic(d));
    }
  }
  return largest;
}

TEST(CompressedStates, AreWithinTheirBoundInEveryOrder) {
  for (const bool online : {false, true}) {
    for (const auto& [ratio, overlap] : {std::pair{4, true}, std::pair{128, false}}) {
      const double share = largest_share(ratio, overlap, online);
      EXPECT_TRUE(share <= 1) << ratio << online << share;
      EXPECT_TRUE(share >= 0.002) << ratio << online << share;
    }
  }
}

float bf16(float x) { return static_cast<float>(decode_bf16(encode_bf16(x))); }

// Channel d of the mean over a window with every result rounded, as torch computes it in bf16.
float pooled_with_roundings(Sequence& sequence, std::int64_t last, std::int64_t d) {
  const std::int64_t window = 2 * sequence.ratio, first = last - window + 1;
  const auto column = [&](std::int64_t i) { return i >= sequence.ratio ? kDim + d : d; };
  const auto score = [&](std::int64_t i) { return bf16(sequence.score(first + i)[column(i)]); };
  float largest = -INFINITY, weights = 0, sum = 0;
  for (std::int64_t i = 0; i < window; ++i) largest = std::max(largest, score(i));
  for (std::int64_t i = 0; i < window; ++i) weights += std::exp(score(i) - largest);
  for (std::int64_t i = 0; i < window; ++i) {
    const float weight = bf16(std::exp(score(i) - largest) / weights);
    sum += bf16(weight * sequence.kv(first + i)[column(i)]);
  }
  return bf16(sum);
}

struct RoundingShares {
  double rounded = 0, unrounded = 0;  // largest ratio of error to bound
};

// Of states that round every result, and of states that round the stored one only, under `every`.
// Angles are 0.
RoundingShares shares_under_every_rounding() {
  RoundingShares shares;
  constexpr std::int64_t kRatio = 4, kLast = 7;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Sequence sequence(kLast + 1, kRatio, true);
    for (std::size_t i = 0; i < sequence.states.size(); ++i) {
      sequence.states[i] = bf16(static_cast<float>(cases::normal(seed + 500, i)));
    }
    for (std::size_t i = 0; i < sequence.cos_sin.size(); ++i) {
      sequence.cos_sin[i] = i % 64 < 32 ? 1 : 0;
    }
    CompressedStates input = sequence.input({kLast});
    input.rounding = CompressedRounding::every;
    const Estimate states = compressed_states(input, {.chains = 1});
    for (const bool rounds : {true, false}) {
      std::vector<float> c(kDim);
      float squares = 0;
      for (std::int64_t d = 0; d < kDim; ++d) {
        c[d] = rounds ? pooled_with_roundings(sequence, kLast, d)
                      : pooled_in_order(sequence, kLast, d, false);
        squares += c[d] * c[d];
      }
      const float r = plain_rsqrt(squares / kDim);
      double& share = rounds ? shares.rounded : shares.unrounded;
      for (std::int64_t d = 0; d < kDim; ++d) {
        const double y = bf16(c[d] * r);
        share = std::max(share, std::abs(y - states.centre(d)) / states.arithmetic(d));
      }
    }
  }
  return shares;
}

TEST(CompressedStates, AreWithinTheirBoundWithEveryResultRounded) {
  const RoundingShares shares = shares_under_every_rounding();
  EXPECT_LE(shares.rounded, 1);
  EXPECT_GT(shares.unrounded, 1);
}

// A right kernel's sum of squares is infinite in fp32, so its states are 0.
TEST(CompressedStates, MayBeLostIfTheirSquaresArePastTheRange) {
  Sequence sequence(4, 4, false);
  for (std::int64_t position = 0; position < 4; ++position) {
    std::fill_n(sequence.kv(position), kDim, 3e37F);
  }
  const Estimate states = compressed_states(sequence.input({3}), {});
  for (std::int64_t channel = 0; channel < kDim; ++channel) {
    EXPECT_LE(std::abs(states.centre(channel)), states.bound(channel));
    EXPECT_LT(states.bound(channel), 4 * std::sqrt(kDim));
  }
}

TEST(CompressedStates, ImpossibleArgumentsAreRefused) {
  using P = plumb_compress_norm_rope_insert_params;
  const auto status = [](auto spoil) {
    P params{};
    params.head_dim = 512;
    params.ratio = params.states.rows = params.cache.page = 1;
    params.states.row_stride_bytes = params.states.block_stride_bytes = 8 * 512;
    params.cache.block_stride_bytes = 1024;
    params.layout = PLUMB_COMPRESSED_MAIN;
    spoil(params);
    return device::kernels::compress_norm_rope_insert().launch(&params);
  };
  EXPECT_EQ(status([](P&) {}), PLUMB_OK);
  EXPECT_EQ(status([](P& p) { p.tokens = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.ratio = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.head_dim = 256; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.overlap = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.states.rows = 2; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.cache.block_stride_bytes = 582; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.eps = NAN; }), PLUMB_INVALID_ARGUMENT);
  const auto mxfp4 = [](std::int64_t stride) {
    return [stride](P& p) {
      p.layout = PLUMB_COMPRESSED_INDEXER_MXFP4;
      p.head_dim = 128;
      p.cache.block_stride_bytes = stride;
    };
  };
  EXPECT_EQ(status(mxfp4(68)), PLUMB_OK);
  EXPECT_EQ(status(mxfp4(67)), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::compress_norm_rope_insert().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace compress_test
}  // namespace plumb::reference
