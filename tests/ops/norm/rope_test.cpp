// SPDX-License-Identifier: Apache-2.0
//
// Tests rotary embedding: results computed by hand, the inverse, and bounds that correct arithmetic
// keeps and comes near to.
#include "reference/norm/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/norm/inverse_rope.h"
#include "reference/norm/q_head_rms_norm_rope.h"
#include "reference/norm/rms_norm.h"
#include "tests/support/fp32_hyper_connection.h"
#include "tests/support/margins.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace rope_test {

using tests::Random;

std::vector<float> same_turn(float cosine, float sine) {
  std::vector<float> cos_sin(kRopeDim, cosine);
  std::fill(cos_sin.begin() + kRopeDim / 2, cos_sin.end(), sine);
  return cos_sin;
}

std::vector<double> rotate_one(const std::vector<double>& x, const std::vector<float>& turn,
                               Rotation rotation) {
  return rotate(
             {x, {1, kRopeDim}, {}}, 0, [&](std::int64_t) { return turn.data(); }, rotation)
      .values();
}

TEST(Rope, HandMadePairs) {
  std::vector<double> x(kRopeDim);
  x[0] = 8, x[1] = 4;     // the first pair
  x[62] = -2, x[63] = 6;  // the last
  const auto turn = same_turn(0.5F, 0.25F);
  const auto forward = rotate_one(x, turn, Rotation::forward);
  EXPECT_EQ(forward[0], 8 * 0.5 - 4 * 0.25);
  EXPECT_EQ(forward[1], 8 * 0.25 + 4 * 0.5);
  EXPECT_EQ(forward[62], -2 * 0.5 - 6 * 0.25);
  EXPECT_EQ(forward[63], -2 * 0.25 + 6 * 0.5);
  const auto inverse = rotate_one(x, turn, Rotation::inverse);
  EXPECT_EQ(inverse[0], 8 * 0.5 + 4 * 0.25);
  EXPECT_EQ(inverse[1], 4 * 0.5 - 8 * 0.25);
  EXPECT_EQ(inverse[2], 0);
}

// Pair i takes cosine i and sine 32 + i.
TEST(Rope, EachPairHasItsOwnTurn) {
  std::vector<double> x(kRopeDim, 1);
  std::vector<float> cos_sin(kRopeDim, 0);
  cos_sin[3] = 1;       // pair 3 stays
  cos_sin[32 + 5] = 1;  // pair 5 turns by a quarter
  const auto rotated = rotate_one(x, cos_sin, Rotation::forward);
  for (int i = 0; i < kRopeDim; ++i) {
    const double expected = i / 2 == 3 ? 1 : i == 10 ? -1 : i == 11 ? 1 : 0;
    EXPECT_EQ(rotated[i], expected) << i;
  }
}

TEST(Rope, TheInverseOfARotationIsTheInput) {
  Random random(3);
  std::vector<double> x;
  std::vector<float> cos_sin(kRopeDim);
  for (int i = 0; i < kRopeDim; ++i) x.push_back(random.normal());
  for (int pair = 0; pair < kRopeDim / 2; ++pair) {
    cos_sin[pair] = static_cast<float>(std::cos(0.2 * pair));
    cos_sin[32 + pair] = static_cast<float>(std::sin(0.2 * pair));
  }
  const auto turned = rotate_one(x, cos_sin, Rotation::forward);
  const auto back = rotate_one(turned, cos_sin, Rotation::inverse);
  for (int i = 0; i < kRopeDim; ++i) EXPECT_NEAR(back[i], x[i], 1e-6) << i;
}

// Heads of normal random numbers and a table of rotations.
struct HeadData {
  std::int64_t tokens = 4, heads = 3;
  std::vector<std::uint16_t> x;
  std::vector<float> cos_sin;
  std::vector<std::int64_t> rows = {2, 0, 1, 2};

  explicit HeadData(std::uint64_t seed) {
    Random random(seed);
    for (std::int64_t row = 0; row < tokens * heads; ++row) {
      const double scale = std::pow(10.0, 6 * random.uniform() - 3);
      for (int i = 0; i < kHeadDim; ++i) {
        x.push_back(fp32::to_bf16(static_cast<float>(scale * random.normal())));
      }
    }
    for (int position = 0; position < 3; ++position) {
      std::vector<float> sines;
      for (int pair = 0; pair < kRopeDim / 2; ++pair) {
        const double angle = position * (1 + random.uniform());
        cos_sin.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
      cos_sin.insert(cos_sin.end(), sines.begin(), sines.end());
    }
  }
  const float* turns(std::int64_t row) const { return &cos_sin[rows[row / heads] * kRopeDim]; }
};

TEST(QHeadRmsNormRopeReference, PositionZeroIsThePlainNorm) {
  HeadData data(5);
  data.rows.assign(4, 0);
  const Numerics numerics;
  const auto rotated = q_head_rms_norm_rope(
      {data.x.data(), data.cos_sin.data(), data.rows, 4, 3, 3 * kHeadDim, 1e-6}, numerics);
  const auto norm = rms_norm(
      {data.x.data(), nullptr, 12, kHeadDim, kHeadDim, 1e-6, NormRounding::once}, numerics);
  EXPECT_EQ(rotated.value, norm.value);
}

// The RoPE dims count in the mean square of the whole head.
TEST(QHeadRmsNormRopeReference, HandMadeHead) {
  std::vector<std::uint16_t> head(kHeadDim);
  head[0] = fp32::to_bf16(3);
  head[510] = fp32::to_bf16(4), head[511] = fp32::to_bf16(12);  // the last pair
  const auto turn = same_turn(0, 1);
  const auto out =
      q_head_rms_norm_rope({head.data(), turn.data(), {0}, 1, 1, kHeadDim, 0}, Numerics{});
  const double r = std::sqrt(512.0) / 13;
  EXPECT_DOUBLE_EQ(out.value[0], 3 * r);
  EXPECT_DOUBLE_EQ(out.value[510], -12 * r);
  EXPECT_DOUBLE_EQ(out.value[511], 4 * r);
}

float store(float value) { return fp32::from_bf16(fp32::to_bf16(value)); }

TEST(RopeBound, HonestInverseStaysWithinABoundThatIsTight) {
  tests::Margins margins;
  for (int seed = 0; seed < 40; ++seed) {
    const HeadData data(seed);
    std::vector<float> got;
    for (std::int64_t row = 0; row < data.tokens * data.heads; ++row) {
      const float* turns = data.turns(row);
      for (int pair = 0; pair < kRopeDim / 2; ++pair) {
        const std::uint16_t* x = &data.x[row * kHeadDim + kNopeDim + 2 * pair];
        const float even = fp32::from_bf16(x[0]), odd = fp32::from_bf16(x[1]);
        const float c = turns[pair], s = turns[32 + pair];
        // Alternates between plain arithmetic and fused multiply-add.
        got.push_back(store(seed % 2 == 0 ? even * c + odd * s : std::fma(even, c, odd * s)));
        got.push_back(store(seed % 2 == 0 ? odd * c - even * s : std::fma(odd, c, -(even * s))));
      }
    }
    margins.add(inverse_rope({data.x.data(), data.cos_sin.data(), data.rows, data.tokens,
                              data.heads, data.heads * kHeadDim}),
                got);
  }
  margins.expect_honest_and_tight("inverse_rope");
}

// All heads computed in fp32.
std::vector<float> rotated_norms(const HeadData& data, NormRounding rounding,
                                 const fp32::Order& order) {
  std::vector<float> got;
  for (std::int64_t row = 0; row < data.tokens * data.heads; ++row) {
    std::vector<float> y, squares;
    for (int i = 0; i < kHeadDim; ++i) {
      y.push_back(fp32::from_bf16(data.x[row * kHeadDim + i]));
      squares.push_back(y.back() * y.back());
    }
    const float mean = fp32::add_up(squares, order) / 512;
    auto r = static_cast<float>(1 / std::sqrt(static_cast<double>(mean + 1e-6F)));
    if (rounding == NormRounding::factor) r = store(r);
    for (float& v : y) v = rounding == NormRounding::once ? v * r : store(v * r);
    for (int pair = 0; pair < kRopeDim / 2; ++pair) {
      float* p = &y[kNopeDim + 2 * pair];
      const float c = data.turns(row)[pair], s = data.turns(row)[32 + pair];
      const float even = p[0] * c - p[1] * s, odd = p[0] * s + p[1] * c;
      p[0] = even, p[1] = odd;
    }
    for (const float v : y) got.push_back(store(v));
  }
  return got;
}

Estimate estimate_of(const HeadData& data, NormRounding rounding, const fp32::Order& order) {
  Numerics numerics;
  numerics.chains = order.chains;
  numerics.function_ulp = 0.5;
  return q_head_rms_norm_rope({data.x.data(), data.cos_sin.data(), data.rows, data.tokens,
                               data.heads, data.heads * kHeadDim, 1e-6, rounding},
                              numerics);
}

constexpr NormRounding kRoundings[] = {NormRounding::once, NormRounding::twice,
                                       NormRounding::factor};

TEST(RopeBound, HonestRotatedNormStaysWithinABoundThatIsTight) {
  for (const NormRounding rounding : kRoundings) {
    for (const fp32::Order& order : {fp32::Order{1, false, false}, fp32::Order{32, false, false},
                                     fp32::Order{64, true, true}}) {
      tests::Margins margins;
      for (int seed = 0; seed < 12; ++seed) {
        const HeadData data(100 + seed);
        margins.add(estimate_of(data, rounding, order), rotated_norms(data, rounding, order));
      }
      margins.expect_honest_and_tight("q_head, " + std::to_string(order.chains) + " chains");
    }
  }
}

// Results of each rounding exceed the bounds of the other roundings in many of the rotated dims.
TEST(RopeBound, AnotherRoundingLeavesTheBound) {
  const fp32::Order order{32, false, false};
  const HeadData data(7);
  for (const NormRounding rounding : kRoundings) {
    const Estimate expected = estimate_of(data, rounding, order);
    for (const NormRounding other : kRoundings) {
      const auto got = rotated_norms(data, other, order);
      std::int64_t beyond = 0;
      for (std::int64_t i = 0; i < std::ssize(got); ++i) {
        beyond += std::abs(got[i] - expected.centre(i)) > expected.bound(i);
      }
      if (other == rounding) continue;
      EXPECT_GT(beyond, data.tokens * data.heads * kRopeDim / 20);
    }
  }
}

// 1 + 2^-8 is a tie between two bf16 numbers, so a correct kernel may round the factor to either.
TEST(RopeBound, AFactorAtATieIsEitherNumber) {
  const std::vector<std::uint16_t> q(kHeadDim, fp32::to_bf16(0.5F));
  std::vector<float> turns(kRopeDim, 0.0F);
  std::fill_n(turns.begin(), kRopeDim / 2, 1.0F);
  const auto bound_at = [&](double factor) {
    const double eps = 1 / (factor * factor) - 0.25;
    return q_head_rms_norm_rope(
        {q.data(), turns.data(), {0}, 1, 1, kHeadDim, eps, NormRounding::factor}, {});
  };
  const Estimate tie = bound_at(1 + 0x1p-8), clear = bound_at(1 + 0x1p-9);
  for (const std::int64_t i : {0, kHeadDim - 1}) {
    for (const double factor : {1.0, 1 + 0x1p-7}) {
      EXPECT_LE(std::abs(0.5 * factor - tie.centre(i)), tie.bound(i)) << i;
    }
    EXPECT_GT(std::abs(0.5 * (1 + 0x1p-7) - clear.centre(i)), clear.bound(i)) << i;
  }
}

}  // namespace rope_test
}  // namespace plumb::reference
