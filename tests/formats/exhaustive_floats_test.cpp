// SPDX-License-Identifier: Apache-2.0
//
// Tests all 2^32 floats with every encoder that takes one. This takes one to three minutes on two
// cores, so it runs only with PLUMB_FULL=1 in the environment.
//
// Rounding is monotonic, so all floats with one code form an interval. A ladder (all values of a
// format, counted up in exact steps) gives the ends of each interval, and each float inside is only
// compared with the interval's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "reference/bound.h"
#include "reference/formats/bfloat16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e8m0.h"
#include "tests/support/format_ladder.h"
#include "tests/support/long_tests.h"

namespace plumb::tests {
namespace exhaustive_floats_test {

using reference::Dialect;
using reference::Overflow;

constexpr std::int64_t kFloats = std::int64_t{1} << 32;
constexpr std::uint32_t kInfinityBits = 0x7F800000;

// Floats from bit pattern `first` up to the next interval's `first` have this code.
struct Interval {
  std::uint32_t first = 0;
  int code = 0;
};

// Intervals of all positive floats up to infinity, rounded to nearest. A tie belongs to the even
// code.
std::vector<Interval> rounded_intervals(const Ladder& ladder, int overflow_code) {
  std::vector<Interval> intervals = {{0, 0}};
  for (int code = 0; code < ladder.codes(); ++code) {
    const auto tie = std::bit_cast<std::uint32_t>(static_cast<float>(ladder.midpoint(code)));
    const int next = code + 1 < ladder.codes() ? code + 1 : overflow_code;
    intervals.push_back({code % 2 == 0 ? tie + 1 : tie, next});
  }
  return intervals;
}

std::vector<Interval> truncated_intervals(const Ladder& ladder) {
  std::vector<Interval> intervals;
  for (int code = 0; code <= ladder.codes(); ++code) {
    const auto value = static_cast<float>(ladder.values[code]);  // 2^128 is infinity as a float
    intervals.push_back({std::bit_cast<std::uint32_t>(value), code});
  }
  return intervals;
}

// Scales up to and including 2^k have byte k + 127. The next `slack(k)` floats above 2^k share that
// byte.
template <class Slack>
std::vector<Interval> ceiling_intervals(int zero_code, int least, int most, const Slack& slack) {
  std::vector<Interval> intervals = {{0, zero_code}, {1, least}};
  for (int k = least - 127; k < 128; ++k) {
    const auto power = std::bit_cast<std::uint32_t>(std::ldexp(1.0f, k));
    intervals.push_back({power + slack(k) + 1, std::min(k + 128, most)});
  }
  return intervals;
}

// Number of floats just above 2^k whose log2 rounds to k in fp32.
std::uint32_t lost_to_log2(int k) {
  if (k == 0) return 0;
  const auto here = static_cast<float>(k);
  const long double half = (static_cast<long double>(std::nextafter(here, 999.0f)) - k) / 2;
  const long double step = k < -126 ? 0x1p-22L : 0x1p-23L;  // spacing of floats, relative to 2^k
  std::uint32_t lost = 0;
  while (std::log1p((lost + 1) * step) / std::log(2.0L) <= half) ++lost;
  return lost;
}

// Counts wrong codes among the floats [begin, end), all of one sign. `encode(float)`: the encoder
// under test. `signed_code(code, negative)`: the rule for signs. `nan_code(bits)`: the rule for
// NaN.
template <class Encode, class SignedCode, class NanCode>
std::int64_t wrong_codes(std::uint32_t begin, std::uint32_t end, bool negative,
                         const std::vector<Interval>& intervals, const Encode& encode,
                         const SignedCode& signed_code, const NanCode& nan_code) {
  const std::uint32_t sign = negative ? 0x80000000u : 0;
  std::int64_t wrong = 0;
  const auto first = [](std::uint32_t bits, const Interval& i) { return bits < i.first; };
  auto interval = std::upper_bound(intervals.begin(), intervals.end(), begin, first) - 1;
  std::uint32_t bits = begin;
  for (; bits < std::min(end, kInfinityBits + 1); ++interval) {
    const bool last = interval + 1 == intervals.end();
    const std::uint32_t stop =
        std::min({end, kInfinityBits + 1, last ? kInfinityBits + 1 : interval[1].first});
    const int expected = signed_code(interval->code, negative);
    for (; bits < stop; ++bits) {
      wrong += encode(std::bit_cast<float>(bits | sign)) != expected ? 1 : 0;
    }
  }
  for (; bits < end; ++bits) {
    wrong += encode(std::bit_cast<float>(bits | sign)) != nan_code(bits | sign) ? 1 : 0;
  }
  return wrong;
}

template <class Encode, class SignedCode, class NanCode>
std::int64_t wrong_of_all_floats(const std::vector<Interval>& intervals, const Encode& encode,
                                 const SignedCode& signed_code, const NanCode& nan_code) {
  constexpr std::int64_t kHalf = kFloats / 2, kPiece = 1 << 20;
  std::atomic<std::int64_t> wrong = 0, seen = 0;
  reference::parallel_for(kFloats / kPiece, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const bool negative = piece * kPiece >= kHalf;
      const auto start = static_cast<std::uint32_t>(piece * kPiece - (negative ? kHalf : 0));
      wrong +=
          wrong_codes(start, start + kPiece, negative, intervals, encode, signed_code, nan_code);
      seen += kPiece;
    }
  });
  EXPECT_EQ(seen, kFloats);
  return wrong;
}

int signed_bf16(int code, bool negative) { return code | (negative ? 0x8000 : 0); }
int quiet_bf16(std::uint32_t bits) { return static_cast<int>(bits >> 16 | 0x0040); }

std::int64_t wrong_e4m3_codes(Dialect dialect, Overflow overflow) {
  const bool fnuz = dialect == Dialect::e4m3fnuz;
  const Ladder ladder(fnuz ? 0x1p-10 : 0x1p-9, 8, fnuz ? 0x80 : 0x7F);
  const int nan = fnuz ? 0x80 : 0x7F;
  const int overflow_code = overflow == Overflow::to_nan ? nan : ladder.codes() - 1;
  return wrong_of_all_floats(
      rounded_intervals(ladder, overflow_code),
      [=](float x) { return reference::encode_e4m3(x, dialect, overflow); },
      [=](int code, bool negative) {
        return negative && !(fnuz && code == 0) ? code | 0x80 : code;
      },
      [=](std::uint32_t bits) { return nan | (bits >> 31 != 0 ? 0x80 : 0); });
}

class ExhaustiveFloats : public testing::Test {
 protected:
  void SetUp() override {
    if (!long_tests_run()) GTEST_SKIP() << kTakesMinutes;
  }
};

const Ladder& bf16_ladder() {
  static const Ladder rungs(0x1p-133, 128, 0x7F80);
  return rungs;
}

TEST_F(ExhaustiveFloats, Bf16RoundsEachToTheNearestCode) {
  const auto encode = [](float x) { return reference::encode_bf16(x); };
  const auto intervals = rounded_intervals(bf16_ladder(), 0x7F80);
  EXPECT_EQ(wrong_of_all_floats(intervals, encode, signed_bf16, quiet_bf16), 0);
}

TEST_F(ExhaustiveFloats, Bf16RoundsEachTheSameAsADouble) {
  const auto encode = [](float x) { return reference::encode_bf16(double{x}); };
  const auto intervals = rounded_intervals(bf16_ladder(), 0x7F80);
  EXPECT_EQ(wrong_of_all_floats(intervals, encode, signed_bf16, quiet_bf16), 0);
}

TEST_F(ExhaustiveFloats, Bf16TruncatesEachTowardsZero) {
  const auto encode = [](float x) { return reference::truncate_to_bf16(x); };
  const auto intervals = truncated_intervals(bf16_ladder());
  EXPECT_EQ(wrong_of_all_floats(intervals, encode, signed_bf16, quiet_bf16), 0);
}

TEST_F(ExhaustiveFloats, E4m3fnSaturates) {
  EXPECT_EQ(wrong_e4m3_codes(Dialect::e4m3fn, Overflow::saturate), 0);
}
TEST_F(ExhaustiveFloats, E4m3fnOverflowsToNan) {
  EXPECT_EQ(wrong_e4m3_codes(Dialect::e4m3fn, Overflow::to_nan), 0);
}
TEST_F(ExhaustiveFloats, E4m3fnuzSaturates) {
  EXPECT_EQ(wrong_e4m3_codes(Dialect::e4m3fnuz, Overflow::saturate), 0);
}
TEST_F(ExhaustiveFloats, E4m3fnuzOverflowsToNan) {
  EXPECT_EQ(wrong_e4m3_codes(Dialect::e4m3fnuz, Overflow::to_nan), 0);
}

TEST_F(ExhaustiveFloats, E8m0ByBitsRoundsEachUp) {
  const auto intervals = ceiling_intervals(1, 1, 254, [](int) { return 0; });
  EXPECT_EQ(wrong_of_all_floats(
                intervals, [](float x) { return reference::encode_e8m0_by_bits(x); },
                [](int code, bool) { return code; }, [](std::uint32_t) { return 254; }),
            0);
}
TEST_F(ExhaustiveFloats, E8m0ByLog2RoundsEachUpButForWhatFp32Loses) {
  constexpr int kZero = -1;  // both zeros have byte 0, other negative numbers 255
  const auto sign = [](int code, bool negative) {
    return code == kZero ? 0 : negative ? 255 : code;
  };
  EXPECT_EQ(wrong_of_all_floats(
                ceiling_intervals(kZero, 0, 255, lost_to_log2),
                [](float x) { return reference::encode_e8m0_by_log2(x); }, sign,
                [](std::uint32_t) { return 255; }),
            0);
}

TEST_F(ExhaustiveFloats, E2m1RoundsEachWithTiesTowardsZero) {
  const Ladder ladder(0.5, 2, 8);
  std::vector<Interval> intervals = {{0, 0}};
  for (int code = 0; code < 7; ++code) {
    const auto tie = std::bit_cast<std::uint32_t>(static_cast<float>(ladder.midpoint(code)));
    intervals.push_back({tie + 1, code + 1});
  }
  EXPECT_EQ(wrong_of_all_floats(
                intervals,
                [](float x) {
                  return reference::encode_e2m1(x, {reference::E2m1Ties::toward_zero, false});
                },
                [](int code, bool negative) { return negative && code != 0 ? code + 8 : code; },
                [](std::uint32_t) { return 0; }),
            0);
}

// This test does not use the fixture that needs PLUMB_FULL=1, so it always runs. Moving one end of
// one interval by one ulp makes one float per sign wrong.
TEST(FloatSweep, SeesASingleWrongFloat) {
  std::vector<Interval> intervals = rounded_intervals(bf16_ladder(), 0x7F80);
  const auto encode = [](float x) { return reference::encode_bf16(x); };
  const auto wrong = [&](bool negative) {
    return wrong_codes(0x3F800000, 0x3F900000, negative, intervals, encode, signed_bf16,
                       quiet_bf16);
  };
  EXPECT_EQ(wrong(false), 0);
  intervals[0x3F81].first += 1;
  EXPECT_EQ(wrong(false), 1);
  EXPECT_EQ(wrong(true), 1);
}

}  // namespace exhaustive_floats_test
}  // namespace plumb::tests
