// SPDX-License-Identifier: Apache-2.0
//
// The verdict on codes: right arithmetic passes; one wrong code fails, and so do more flips at
// rounding boundaries than the errors explain.
#include "cases/judge/judge_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {
namespace judge_codes_test {

using reference::CodeEstimate;
using reference::CodeFormat;

constexpr CodeFormat kAllFormats[] = {
    CodeFormat::e4m3fn, CodeFormat::e4m3fnuz,   CodeFormat::e2m1, CodeFormat::e2m1_away,
    CodeFormat::ue8m0,  CodeFormat::ue8m0_down, CodeFormat::bf16};

// Values with the error of `roundings` fp32 roundings, each up to half a unit in the last place.
CodeEstimate estimate(CodeFormat format, std::int64_t rows, const std::vector<double>& values,
                      double roundings) {
  CodeEstimate expected;
  expected.format = format;
  expected.before.resize(rows, static_cast<std::int64_t>(values.size()) / rows);
  expected.before.value = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected.before.worst[i] = roundings * reference::kUnitF32 * std::abs(values[i]);
    expected.before.sigma[i] =
        reference::kUniformSigma * std::sqrt(roundings) * reference::kUnitF32 * std::abs(values[i]);
  }
  return expected;
}

HostTensor tensor(CodeFormat format, std::int64_t rows, std::int64_t columns,
                  const std::function<std::uint16_t(std::int64_t)>& code) {
  const bool wide = format == CodeFormat::bf16;
  HostTensor got(
      {.name = "codes", .dtype = wide ? Dtype::bf16 : Dtype::u8, .shape = {rows, columns}});
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    if (wide) {
      got.data<std::uint16_t>()[i] = code(i);
    } else {
      got.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(code(i));
    }
  }
  return got;
}

// x / s for bf16 x. If s is not a power of 2, many quotients are close to a rounding boundary.
struct Group {
  std::vector<float> x;
  float scale;
};
Group group(std::int64_t n, float scale) {
  Group data{{}, scale};
  for (std::int64_t i = 0; i < n; ++i) {
    data.x.push_back(static_cast<float>(reference::decode_bf16(
        reference::encode_bf16(100 * normal(3, static_cast<std::uint64_t>(i))))));
  }
  return data;
}

TEST(Codes, OrdersAllCodesByValue) {
  for (const CodeFormat format : kAllFormats) {
    const bool four_bits = format == CodeFormat::e2m1 || format == CodeFormat::e2m1_away;
    const int codes = format == CodeFormat::bf16 ? 1 << 16 : four_bits ? 16 : 256;
    for (int a = 0; a < codes; ++a) {
      const auto code = static_cast<std::uint16_t>(a);
      const bool unused = format == CodeFormat::ue8m0 && a == 0;
      if (unused || is_nan(format, code)) continue;
      for (const double factor : {0.999, 1.001}) {
        const double near = decode(format, code) * factor;
        if (near < decode(format, code)) {
          EXPECT_LE(order_of(format, encode(format, near)), order_of(format, code)) << a;
        } else if (near > decode(format, code) && format != CodeFormat::ue8m0) {
          EXPECT_GE(order_of(format, encode(format, near)), order_of(format, code)) << a;
        }
      }
    }
  }
}

TEST(Codes, AScaleIsTheLeastPowerOfTwoThatIsNotSmaller) {
  EXPECT_EQ(encode(CodeFormat::ue8m0, 1.0), 127);
  EXPECT_EQ(encode(CodeFormat::ue8m0, 1.0 + 0x1p-50), 128);
  EXPECT_EQ(encode(CodeFormat::ue8m0, 1.0 - 0x1p-50), 127);
  EXPECT_EQ(encode(CodeFormat::ue8m0, 1e-4 / 448), 105);
  EXPECT_EQ(encode(CodeFormat::ue8m0, 0.0), 1);
  EXPECT_EQ(encode(CodeFormat::ue8m0, std::nan("")), 255);
}

TEST(Codes, AScaleRoundedDownIsTheGreatestPowerOfTwoThatIsNotLarger) {
  EXPECT_EQ(encode(CodeFormat::ue8m0_down, 1.0), 127);
  EXPECT_EQ(encode(CodeFormat::ue8m0_down, 2.0 - 0x1p-50), 127);
  EXPECT_EQ(encode(CodeFormat::ue8m0_down, 1.0 - 0x1p-50), 126);
  EXPECT_EQ(encode(CodeFormat::ue8m0_down, 0x1p-127), 0);
  EXPECT_EQ(encode(CodeFormat::ue8m0_down, 0.0), 0);
  EXPECT_EQ(encode(CodeFormat::ue8m0_down, 0x1p130), 254);
  EXPECT_EQ(encode(CodeFormat::ue8m0_down, std::nan("")), 255);
}

TEST(JudgeCodes, PassesDivisionAndReciprocalAlike) {
  constexpr std::int64_t kRows = 64, kColumns = 1000;
  // With a scale of 1.25 some quotients are exact ties; multiplication by the reciprocal 0.8 misses
  // them.
  for (const float scale : {1.25F, 0.3F, 3.7F}) {
    const Group data = group(kRows * kColumns, scale);
    std::vector<double> exact;
    for (const float x : data.x) exact.push_back(double{x} / double{scale});
    for (const CodeFormat format : {CodeFormat::e4m3fn, CodeFormat::e4m3fnuz, CodeFormat::e2m1}) {
      CodeEstimate expected = estimate(format, kRows, exact, 2);
      expected.shared_error = kColumns;
      const float reciprocal = 1 / scale;
      const auto divided = judge_codes(
          tensor(format, kRows, kColumns,
                 [&](std::int64_t i) { return encode(format, double{data.x[i] / scale}); }),
          expected, {});
      const auto multiplied = judge_codes(
          tensor(format, kRows, kColumns,
                 [&](std::int64_t i) { return encode(format, double{data.x[i] * reciprocal}); }),
          expected, {});
      EXPECT_TRUE(divided.passed()) << divided.failures.front();
      EXPECT_TRUE(multiplied.passed()) << multiplied.failures.front();
      EXPECT_LE(divided.margin, 1);
      EXPECT_LE(multiplied.margin, 1);
    }
  }
}

TEST(JudgeCodes, NamesOneWrongCode) {
  for (const CodeFormat format : kAllFormats) {
    std::vector<double> values;
    for (int i = 0; i < 40; ++i) values.push_back(2.9);
    const CodeEstimate expected = estimate(format, 4, values, 4);
    const auto right = [&](std::int64_t) { return encode(format, 2.9); };
    EXPECT_TRUE(judge_codes(tensor(format, 4, 10, right), expected, {}).passed());
    for (const int off : {-1, 1}) {
      const auto one_wrong = [&](std::int64_t i) {
        return static_cast<std::uint16_t>(right(i) + (i == 23 ? off : 0));
      };
      const TensorReport report = judge_codes(tensor(format, 4, 10, one_wrong), expected, {});
      EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{2});
      EXPECT_EQ(report.wrong_elements, 1);
      EXPECT_EQ(report.flips, 0);
      ASSERT_TRUE(report.worst);
      EXPECT_EQ(report.worst->coordinates, "[2, 3]");
      EXPECT_NE(report.failures.front().find("codes: 1 of 4 rows (row 2) wrong"), std::string::npos)
          << report.failures.front();
    }
  }
}

TEST(JudgeCodes, DoesNotLookAtRowsThatAreNotPromised) {
  const CodeEstimate expected = estimate(CodeFormat::e4m3fn, 2, {1, 1}, 1);
  const auto second_wrong = [](std::int64_t i) { return static_cast<std::uint16_t>(0x38 + i); };
  const HostTensor got = tensor(CodeFormat::e4m3fn, 2, 1, second_wrong);
  EXPECT_TRUE(judge_codes(got, expected, {true, false}).passed());
  EXPECT_FALSE(judge_codes(got, expected, {}).passed());
  EXPECT_THROW(judge_codes(got, expected, {true}), std::invalid_argument);
}

TEST(JudgeCodes, WithoutAnErrorATieHasOneCode) {
  // 17 is halfway between 16 (code 0x58) and 18 (0x59), and 2.5 between 2 (code 4) and 3 (5).
  const CodeEstimate fp8 = estimate(CodeFormat::e4m3fn, 1, {17}, 0);
  const CodeEstimate fp4 = estimate(CodeFormat::e2m1, 1, {2.5}, 0);
  const auto code = [](std::uint16_t c) { return [c](std::int64_t) { return c; }; };
  EXPECT_TRUE(judge_codes(tensor(CodeFormat::e4m3fn, 1, 1, code(0x58)), fp8, {}).passed());
  EXPECT_FALSE(judge_codes(tensor(CodeFormat::e4m3fn, 1, 1, code(0x59)), fp8, {}).passed());
  EXPECT_TRUE(judge_codes(tensor(CodeFormat::e2m1, 1, 1, code(4)), fp4, {}).passed());
  EXPECT_FALSE(judge_codes(tensor(CodeFormat::e2m1, 1, 1, code(5)), fp4, {}).passed());
}

TEST(JudgeCodes, CountsFlipsAndSaysHowNearTheyAre) {
  CodeEstimate expected = estimate(CodeFormat::e4m3fn, 1, {17 + 0x1p-20}, 2);
  const HostTensor flipped =
      tensor(CodeFormat::e4m3fn, 1, 1, [](std::int64_t) { return std::uint16_t{0x58}; });
  const TensorReport report = judge_codes(flipped, expected, {});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.flips, 1);
  EXPECT_NEAR(report.margin, 0x1p-20 / expected.before.worst[0], 2e-3);
  // At twice the distance it is an error instead of a flip.
  expected.before.value[0] = 17 + 4 * expected.before.worst[0];
  EXPECT_FALSE(judge_codes(flipped, expected, {}).passed());
}

// Values spread evenly around a boundary, over a width of 30 error limits.
std::vector<double> near_boundary(double boundary, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(count) - 0.5;
    values.push_back(boundary * (1 + 30 * place * reference::kUnitF32));
  }
  return values;
}

TEST(JudgeCodes, FailsMoreFlipsThanArithmeticExplains) {
  constexpr std::int64_t kCount = 2000;
  const double step = reference::kUnitF32;
  for (const auto& [format, boundary] :
       {std::pair{CodeFormat::e4m3fn, 17.0}, std::pair{CodeFormat::e4m3fnuz, -19.0},
        std::pair{CodeFormat::e2m1, 2.5}, std::pair{CodeFormat::ue8m0, 4.0},
        std::pair{CodeFormat::bf16, 257.0}}) {
    const std::vector<double> values = near_boundary(boundary, kCount);
    const CodeEstimate expected = estimate(format, 20, values, 6);
    const auto rounded = [&, f = format](auto&& change) {
      return judge_codes(tensor(f, 20, kCount / 20,
                                [&](std::int64_t i) { return encode(f, change(values[i], i)); }),
                         expected, {});
    };
    const auto honest = rounded([&](double x, std::int64_t i) {
      double error = 0;
      for (int k = 0; k < 6; ++k)
        error += 2 * uniform(7, static_cast<std::uint64_t>(6 * i + k)) - 1;
      return x * (1 + error * step);
    });
    EXPECT_TRUE(honest.passed()) << honest.failures.front();
    EXPECT_GT(honest.flips, 10);
    const auto away = rounded([&](double x, std::int64_t) { return x * (1 + 4 * step); });
    EXPECT_FALSE(away.passed()) << static_cast<int>(format);
    const auto towards = rounded([&](double x, std::int64_t) { return x * (1 - 4 * step); });
    EXPECT_FALSE(towards.passed()) << static_cast<int>(format);
    EXPECT_NE(towards.failures.front().find("other side of a rounding boundary in "),
              std::string::npos);
  }
}

TEST(JudgeCodes, SharedErrorsMayFlipTogether) {
  // Four rows with a hundred ties each. The single error of the row's reciprocal decides all ties
  // of a row.
  std::vector<double> ties;
  for (int i = 0; i < 400; ++i) ties.push_back(17 * (1 - i * 0x1p-40));
  CodeEstimate expected = estimate(CodeFormat::e4m3fn, 4, ties, 2);
  const auto up = [](std::int64_t) { return std::uint16_t{0x59}; };
  EXPECT_FALSE(judge_codes(tensor(CodeFormat::e4m3fn, 4, 100, up), expected, {}).passed());
  expected.shared_error = 100;
  EXPECT_TRUE(judge_codes(tensor(CodeFormat::e4m3fn, 4, 100, up), expected, {}).passed());
}

TEST(JudgeCodes, EqualNumbersFlipTogether) {
  const CodeEstimate expected = estimate(CodeFormat::e4m3fn, 4, std::vector<double>(400, 17), 2);
  const auto up = [](std::int64_t) { return std::uint16_t{0x59}; };
  const TensorReport report = judge_codes(tensor(CodeFormat::e4m3fn, 4, 100, up), expected, {});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.flips, 400);
}

TEST(JudgeCodes, AnIntermediateRoundingMovesTheBoundary) {
  // bf16 rounds 17.05 to 17, a tie that goes to 16; it rounds 17.07 to 17.125, which goes to 18.
  CodeEstimate expected = estimate(CodeFormat::e4m3fn, 1, {17.05, 17.07}, 2);
  expected.through = reference::Format::bf16;
  const auto twice = [](std::int64_t i) { return static_cast<std::uint16_t>(0x58 + i); };
  EXPECT_TRUE(judge_codes(tensor(CodeFormat::e4m3fn, 1, 2, twice), expected, {}).passed());
  const auto once = [](std::int64_t) { return std::uint16_t{0x59}; };
  EXPECT_FALSE(judge_codes(tensor(CodeFormat::e4m3fn, 1, 2, once), expected, {}).passed());
}

TEST(JudgeCodes, ZerosKeepTheSignThatTheFormatGivesThem) {
  const auto passes = [](CodeFormat format, double value, std::uint16_t code) {
    const CodeEstimate expected = estimate(format, 1, {value}, 4);
    return judge_codes(tensor(format, 1, 1, [=](std::int64_t) { return code; }), expected, {})
        .passed();
  };
  EXPECT_TRUE(passes(CodeFormat::e4m3fn, -0.0, 0x80));
  EXPECT_FALSE(passes(CodeFormat::e4m3fn, -0.0, 0x00));
  EXPECT_FALSE(passes(CodeFormat::e4m3fn, 0.0, 0x80));
  EXPECT_TRUE(passes(CodeFormat::e4m3fnuz, -0.0, 0x00));
  EXPECT_FALSE(passes(CodeFormat::e4m3fnuz, -0.0, 0x80));
  EXPECT_FALSE(passes(CodeFormat::e4m3fnuz, -1e-9, 0x80));
  EXPECT_TRUE(passes(CodeFormat::e2m1, -0.2, 0x8));
  EXPECT_FALSE(passes(CodeFormat::e2m1, -0.2, 0x0));
  EXPECT_TRUE(passes(CodeFormat::e2m1_unsigned_zero, -0.2, 0x0));
  EXPECT_FALSE(passes(CodeFormat::e2m1_unsigned_zero, -0.2, 0x8));
}

TEST(JudgeCodes, NotANumberIsNeverRightByAccident) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto passes = [](const CodeEstimate& expected, std::uint16_t code) {
    return judge_codes(tensor(expected.format, 1, 1, [=](std::int64_t) { return code; }), expected,
                       {})
        .passed();
  };
  CodeEstimate expected = estimate(CodeFormat::e4m3fn, 1, {1}, 0);
  expected.before.value[0] = nan;
  EXPECT_TRUE(passes(expected, 0x7f));
  EXPECT_TRUE(passes(expected, 0xff));
  EXPECT_FALSE(passes(expected, 0x7e));
  expected = estimate(CodeFormat::e4m3fn, 1, {440}, 1);
  EXPECT_FALSE(passes(expected, 0x7f));
  expected.before.sigma[0] = expected.before.worst[0] = nan;
  EXPECT_FALSE(passes(expected, 0x7e));
  expected.before.value[0] = nan;
  EXPECT_FALSE(passes(expected, 0x7f));
  expected = estimate(CodeFormat::e4m3fnuz, 1, {1e9}, 1);
  EXPECT_TRUE(passes(expected, 0x7f));
  EXPECT_FALSE(passes(expected, 0x80));
}

TEST(Codes, FlipsAreBoundedByTheirLaw) {
  EXPECT_EQ(reference::most_honest_flips(0, 1), 0);
  // Poisson: P(X >= 1 | 1e-9) = 1e-9 is below exp(-18) = 1.5e-8, so no flip is allowed.
  EXPECT_EQ(reference::most_honest_flips(1e-9, 1), 0);
  EXPECT_EQ(reference::most_honest_flips(1e-6, 1), 1);
  EXPECT_EQ(reference::most_honest_flips(0.01, 1), 3);
  // For large means the law is normal: 100 + 6 sigma, and a little more for the skew.
  EXPECT_NEAR(static_cast<double>(reference::most_honest_flips(100, 1)), 165, 2);
  EXPECT_GT(reference::most_honest_flips(100, 10), 300);
}

}  // namespace judge_codes_test
}  // namespace plumb::cases
