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
#include "reference/hyper_connection/mhc_post.h"
#include "reference/norm/q_head_rms_norm_rope.h"
#include "reference/norm/rms_norm.h"
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
void expect_alike(const Estimate& tracked, const Estimate& by_hand, double least = 0.7) {
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
    EXPECT_GE(*middle, least) << (ratios == &means ? "mean of a row" : "element");
    EXPECT_LT(*middle, 1.5) << (ratios == &means ? "mean of a row" : "element");
  }
}

TEST(TrackedByHand, RmsNorm) {
  tests::Random random(1);
  const auto x = bf16_numbers(4 * 512, random), weight = bf16_numbers(512, random);
  // The bound by hand keeps the errors of what is rounded to bf16, which nearly always round away.
  for (const NormRounding rounding : {NormRounding::once, NormRounding::twice}) {
    const Tracked all(x.numbers, {4, 512}, kFp32);
    Tracked scaled = all * rsqrt(mean(all * all, 1) + 1e-6);
    if (rounding == NormRounding::twice) scaled = rounded(std::move(scaled), Format::bf16);
    const Tracked out = std::move(scaled) * Tracked(weight.numbers, {512}, kFp32);
    expect_alike(estimate_of(out, Format::bf16),
                 rms_norm({.x = x.bits.data(),
                           .weight = weight.bits.data(),
                           .tokens = 4,
                           .hidden = 512,
                           .x_row_stride = 512,
                           .eps = 1e-6,
                           .rounding = rounding},
                          kFp32),
                 rounding == NormRounding::once ? 0.7 : 0);
  }
}

TEST(TrackedByHand, MhcPost) {
  tests::Random random(2);
  const auto x = bf16_numbers(256, random), residual = bf16_numbers(4 * 256, random);
  const auto post = fp32_numbers(4, random), comb = fp32_numbers(16, random);
  // Of stream n: post[n] x + sum over m of comb[m, n] residual[m].
  std::vector<double> factors;
  for (std::size_t n = 0; n < 4; ++n) {
    factors.push_back(post.numbers[n]);
    for (std::size_t m = 0; m < 4; ++m) factors.push_back(comb.numbers[4 * m + n]);
  }
  const Tracked streams = joined(
      {Tracked(x.numbers, {1, 1, 256}, kFp32), Tracked(residual.numbers, {1, 4, 256}, kFp32)}, 1);
  const Tracked out = sum(Tracked(factors, {4, 5, 1}, kFp32) * streams, 1);
  expect_alike(estimate_of(out, Format::bf16),
               mhc_post({.x = x.bits.data(),
                         .residual = {residual.bits.data(), 1, 256, 4 * 256, 256},
                         .post = post.bits.data(),
                         .comb = comb.bits.data()},
                        kFp32));
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

TEST(TrackedByHand, QHeadRmsNormRope) {
  tests::Random random(4);
  const auto q = bf16_numbers(2 * kHeadDim, random);
  const auto angles = fp32_numbers(kRopeDim, random);
  std::vector<double> nope, even, odd;
  for (std::int64_t i = 0; i < 2 * kHeadDim; ++i) {
    const std::int64_t of_rope = i % kHeadDim - kNopeDim;
    (of_rope < 0        ? nope
     : of_rope % 2 == 0 ? even
                        : odd)
        .push_back(q.numbers[static_cast<std::size_t>(i)]);
  }
  const auto half = [&](std::size_t first) {
    const auto begin = angles.numbers.begin() + static_cast<std::ptrdiff_t>(first);
    return Tracked({begin, begin + kRopeDim / 2}, {kRopeDim / 2}, kFp32);
  };
  const Tracked all(q.numbers, {2, kHeadDim}, kFp32), cos = half(0), sin = half(kRopeDim / 2);
  const Tracked r = rsqrt(mean(all * all, 1) + 1e-6);
  const Tracked of_even = Tracked(even, {2, kRopeDim / 2}, kFp32) * r;
  const Tracked of_odd = Tracked(odd, {2, kRopeDim / 2}, kFp32) * r;
  const Tracked turned = joined({reshaped(of_even * cos - of_odd * sin, {2, 1, kRopeDim / 2}),
                                 reshaped(of_even * sin + of_odd * cos, {2, 1, kRopeDim / 2})},
                                1);
  const Estimate by_hand = q_head_rms_norm_rope({.q = q.bits.data(),
                                                 .cos_sin = angles.bits.data(),
                                                 .rows = {0},
                                                 .tokens = 1,
                                                 .heads = 2,
                                                 .q_token_stride = 2 * kHeadDim,
                                                 .eps = 1e-6},
                                                kFp32);
  const Estimate tracked = estimate_of(turned, Format::bf16);
  std::vector<double> ratios;
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t i = 0; i < kRopeDim; ++i) {
      const std::int64_t there = head * kHeadDim + kNopeDim + i;
      const std::int64_t here = (2 * head + i % 2) * (kRopeDim / 2) + i / 2;
      EXPECT_NEAR(tracked.value[static_cast<std::size_t>(here)],
                  by_hand.value[static_cast<std::size_t>(there)], 1e-9);
      ratios.push_back(tracked.arithmetic(here) / by_hand.arithmetic(there));
    }
  }
  std::ranges::sort(ratios);
  EXPECT_GT(ratios[ratios.size() / 2], 0.7);
  EXPECT_LT(ratios[ratios.size() / 2], 1.5);
}

}  // namespace tracked_by_hand_test
}  // namespace plumb::reference
