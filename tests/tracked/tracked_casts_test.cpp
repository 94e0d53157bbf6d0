// SPDX-License-Identifier: Apache-2.0
//
// Tests tracked arrays that are stored as codes, truncated or selected, against fp32 results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/quantization/group_quant.h"
#include "reference/rounding.h"
#include "reference/tracked/quantized.h"
#include "reference/tracked/tracked_node.h"
#include "tests/support/random.h"
#include "tests/tracked/honest_array.h"

namespace plumb::reference {
namespace tracked_casts_test {

const Numerics kFp32{};
constexpr CodeFormat kFormats[] = {CodeFormat::e4m3fn,    CodeFormat::e4m3fnuz, CodeFormat::e2m1,
                                   CodeFormat::e2m1_down, CodeFormat::ue8m0,    CodeFormat::bf16};

std::vector<double> normal_numbers(std::int64_t count, double scale, tests::Random& random) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(nearest(Format::bf16, scale * random.normal()));
  }
  return numbers;
}

double value_of(CodeFormat format, double x) { return decode(format, encode(format, x)); }

TEST(TrackedCasts, AreWhatTheFormatsSay) {
  tests::Random random(1);
  for (const CodeFormat format : kFormats) {
    for (const double x : {0.0, 0.25, 1.0, 2.5, 5.0, 449.0, 1e6, 0.3, 0x1.00001p3}) {
      const Tracked stored = cast(Tracked({x}, {1}, kFp32), format);
      EXPECT_EQ(stored.centres()[0], value_of(format, x)) << x;
      EXPECT_EQ(stored.values()[0], x);
      EXPECT_EQ(stored.worst(0), 0) << x;
    }
  }
  const auto cut = [](double x) {
    return truncated(Tracked({x}, {1}, kFp32), Format::bf16).centres()[0];
  };
  for (int i = 0; i < 1000; ++i) {
    const auto x = static_cast<float>(std::exp(8 * random.normal()) * random.normal());
    EXPECT_EQ(cut(x), decode_bf16(truncate_to_bf16(x))) << x;
  }
  EXPECT_EQ(cut(-0x1.01p0), -1);
}

// A computation with errors that may flip a code.
template <class A>
A before_cast(const A& x, const A& weight) {
  return x * rsqrt(mean(x * x, 1) + 1e-6) * weight;
}

// Expects that stored results stay within the bounds of tracked arrays. Functions have such large
// errors that some codes flip (differ from the code of the exact value).
void expect_honest(const auto& store, const auto& cast_of, const std::string& what) {
  constexpr double kUlp = 20000;
  const Numerics coarse{.function_ulp = kUlp};
  tests::Random random(2);
  std::int64_t flips = 0;
  double squares = 0, variance = 0;
  for (int seed = 0; seed < 300; ++seed) {
    const auto x = normal_numbers(128, 1, random), weight = normal_numbers(128, 3, random);
    const Tracked stored =
        cast_of(before_cast(Tracked(x, {1, 128}, coarse), Tracked(weight, {128}, coarse)));
    const HonestArray got =
        before_cast(HonestArray({x.begin(), x.end()}, {1, 128}, random, kUlp),
                    HonestArray({weight.begin(), weight.end()}, {128}, random, kUlp));
    for (std::int64_t i = 0; i < 128; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double error = std::abs(store(got.values[at]) - stored.centres()[at]);
      ASSERT_LE(error, std::min(6 * stored.sigma(i), stored.worst(i))) << what << ' ' << i;
      flips += error != 0;
      squares += square(error);
      variance += square(stored.sigma(i));
    }
  }
  EXPECT_GE(flips, 20) << what;
  EXPECT_LT(squares, 1.5 * variance) << what;
  EXPECT_LT(variance, 5 * squares) << what;
}

TEST(TrackedCasts, BoundWhatFp32Stores) {
  for (const CodeFormat format : kFormats) {
    expect_honest([=](double x) { return value_of(format, std::abs(x)); },
                  [=](const Tracked& a) { return cast(abs(a), format); },
                  "code " + std::to_string(static_cast<int>(format)));
  }
  expect_honest(
      [](double x) { return double{decode_bf16(truncate_to_bf16(static_cast<float>(x)))}; },
      [](const Tracked& a) { return truncated(a, Format::bf16); }, "truncated");
}

// ---- rows of bf16 in groups, as in reference/quantization ----

struct GroupsByTracked {
  QuantizedArray scales, codes;
};
GroupsByTracked groups_of(const std::vector<double>& x, std::int64_t groups,
                          const std::vector<double>& stored_scales, const Numerics& numerics) {
  const std::int64_t group = static_cast<std::int64_t>(x.size()) / groups;
  const Tracked all(x, {groups, group}, numerics);
  const Tracked largest(std::vector<double>{448}, {1}, numerics);
  const Tracked amax = max(max(abs(all), 1), Tracked({1e-4}, {1}, numerics));
  return {quantized(amax / largest, CodeFormat::ue8m0),
          quantized(all / Tracked(stored_scales, {groups, 1}, numerics), CodeFormat::e4m3fn)};
}

TEST(TrackedCasts, JudgeCodesAndScalesAsTheReferenceByHand) {
  tests::Random random(5);
  constexpr std::int64_t kGroups = 40, kGroup = 32;
  for (const bool powers : {true, false}) {
    std::vector<std::uint16_t> bits;
    std::vector<double> x, scales;
    for (std::int64_t i = 0; i < kGroups * kGroup; ++i) {
      bits.push_back(encode_bf16(random.normal()));
      x.push_back(decode_bf16(bits.back()));
    }
    for (std::int64_t i = 0; i < kGroups; ++i) {
      scales.push_back(powers ? std::ldexp(1.0, static_cast<int>(i % 5) - 7)
                              : static_cast<float>(0.006 * (1 + random.uniform())));
    }
    const Bf16Rows rows{bits.data(), 1, kGroups * kGroup, kGroups * kGroup};
    GroupQuant how = fp8_quant(Dialect::e4m3fn, kGroup);
    how.amax_floor = 1e-4;
    const GroupsByTracked got = groups_of(x, kGroups, scales, kFp32);
    const CodeEstimate right_scales = group_scale_bytes(rows, how, kFp32);
    const CodeEstimate right_codes = group_codes(rows, scales, how, kFp32);
    const auto expect_same = [](const CodeEstimate& codes, const CodeEstimate& right,
                                std::int64_t i) {
      const HonestCodes a = honest_codes(codes, i), b = honest_codes(right, i);
      EXPECT_EQ(a.exact, b.exact) << i;
      EXPECT_EQ(a.least, b.least) << i;
      EXPECT_EQ(a.most, b.most) << i;
      EXPECT_NEAR(a.flip, b.flip, 1e-3) << i;
    };
    for (std::int64_t i = 0; i < kGroups; ++i) expect_same(got.scales.codes, right_scales, i);
    for (std::int64_t i = 0; i < kGroups * kGroup; ++i) {
      expect_same(got.codes.codes, right_codes, i);
    }
    EXPECT_EQ(got.codes.codes.shared_error, 1);
    EXPECT_EQ(powers, got.codes.codes.before.worst[3] == 0);
  }
}

TEST(TrackedCasts, KnowWhichCodesShareAnError) {
  const Tracked x({1, 2, 3, 4}, {1, 4}, kFp32);
  EXPECT_EQ(quantized(x * exp(mean(x, 1)), CodeFormat::e4m3fn).codes.shared_error, 4);
  EXPECT_EQ(quantized(exp(x), CodeFormat::e4m3fn).codes.shared_error, 1);
}

// A tie between two codes: both are permitted, the other one is expected in half of all results,
// and the value's bound includes both.
TEST(TrackedCasts, PermitTheNeighbourAtATie) {
  const QuantizedArray tie =
      quantized(exp(Tracked({std::log(17.0)}, {1}, kFp32)), CodeFormat::e4m3fn);
  const HonestCodes codes = honest_codes(tie.codes, 0);
  EXPECT_EQ(codes.most - codes.least, 1);
  EXPECT_NEAR(codes.flip, 0.5, 0.1);
  EXPECT_EQ(tie.values.worst(0), 2);
  EXPECT_EQ(quantized(Tracked({17}, {1}, kFp32), CodeFormat::e4m3fn).values.worst(0), 0);
}

// Roundings have moved the result far from the exact value, to 31 / 128: halfway between two codes.
// The exact value plus the distance must be 31 / 128 again, or the wrong code is expected.
TEST(TrackedCasts, KeepACentreOnATie) {
  tests::Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.normal() / 16, tie = 31.0 / 128;
    TrackedNode node = Tracked({value}, {1, 1}, kFp32).release();
    node.centres = {tie};
    const Tracked moved(std::make_shared<const TrackedNode>(std::move(node)));
    const Estimate stored = estimate_of(moved, Format::f64);
    const CodeEstimate codes{.format = CodeFormat::e4m3fn, .before = stored};
    EXPECT_EQ(honest_codes(codes, 0).exact, encode(CodeFormat::e4m3fn, tie)) << value;
    EXPECT_NEAR(stored.value[0], value, 1e-15);
  }
}

TEST(TrackedCasts, DivideByPowersOfTwoExactly) {
  const Tracked x({3, 0x1p-125, 5}, {3}, kFp32);
  const Tracked by_power = x / 4.0;
  EXPECT_EQ(by_power.worst(0), 0);
  EXPECT_GE(by_power.worst(1), kLeastNormalF32);  // may be flushed
  EXPECT_GT((x / 3.0).worst(0), 0);
  EXPECT_GT((x / exp(x * 0.0)).worst(0), 0);  // not known to be a power of two
}

TEST(TrackedCasts, SelectByExactConditions) {
  const Tracked x = exp(Tracked({1, 2, 3}, {3}, kFp32));
  const Tracked y({5, kInfinity, 7}, {3}, kFp32);
  const Tracked chosen = select(Tracked({1, 0, 0, 0, 1, 1}, {2, 3}, kFp32), x, y);
  EXPECT_EQ(chosen.sizes(), (TrackedSizes{2, 3}));
  EXPECT_EQ(chosen.values()[0], std::exp(1.0));
  EXPECT_EQ(chosen.values()[1], kInfinity);
  EXPECT_EQ(chosen.worst(0), x.worst(0));
  EXPECT_EQ(chosen.sigma(4), x.sigma(1));
  EXPECT_EQ(chosen.worst(3), 0);
  // select() keeps predictable roundings, and the errors stay correlated with those of x.
  const Tracked stored = select(Tracked({1, 0, 1}, {3}, kFp32), rounded(x, Format::bf16), x);
  EXPECT_EQ(stored.centres()[0], nearest(Format::bf16, std::exp(1.0)));
  EXPECT_EQ(stored.values()[0], std::exp(1.0));
  const Tracked rest = select(Tracked({1, 0, 1}, {3}, kFp32), x, x * 0.0) - x;
  EXPECT_LT(rest.sigma(0), 0.01 * x.sigma(0));
  EXPECT_GT(rest.sigma(1), 0.9 * x.sigma(1));
  EXPECT_THROW(select(x, x, y), std::invalid_argument);
}

TEST(TrackedCasts, AnErrorWithoutALimitGetsThatOfTheFormat) {
  const Tracked near_0 = exp(Tracked({0x1p-30}, {1}, kFp32)) + -1.0;
  const Tracked unlimited = joined({Tracked({0x1p-30}, {1}, kFp32) / near_0, near_0 + 3.0}, 0);
  ASSERT_EQ(unlimited.worst(0), kInfinity);
  const auto expect_limit = [](const Tracked& stored, double limit) {
    const Estimate estimate = estimate_of(reshaped(stored, {2, 1}), Format::bf16);
    EXPECT_EQ(estimate.worst[0], limit);
    EXPECT_EQ(estimate.sigma[0], limit);
    EXPECT_EQ(estimate.row_mean_sigma[0], limit);
    EXPECT_FALSE(std::isnan(estimate.row_systematic[0]));
    EXPECT_LT(estimate.arithmetic(1), 0.3);
  };
  expect_limit(rounded(unlimited, Format::bf16), kInfinity);
  expect_limit(truncated(unlimited, Format::f32), kInfinity);
  expect_limit(cast(unlimited, CodeFormat::e4m3fn), 449);
}

}  // namespace tracked_casts_test
}  // namespace plumb::reference
