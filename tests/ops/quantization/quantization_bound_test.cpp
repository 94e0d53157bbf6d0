// SPDX-License-Identifier: Apache-2.0
//
// Tests bounds that follow from the quantisers' formulas: scales and codes of fp32 quotients within
// 2 ulp stay inside, for three forms of the quotient. The median bound is at most twice the bound
// derived by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/quantization/mxfp4_quant.h"
#include "reference/quantization/per_token_group_quant_fp8.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace quantization_bound_test {

constexpr std::int64_t kRows = 2, kColumns = 256;
constexpr int kSeeds = 1000;
const Numerics kTwoUlp{.function_ulp = 2};

// A form of the fp32 quotient. `chance`: random number in [-1, 1] that sets its error.
struct Form {
  float (*quotient)(float x, float scale, double chance);
  bool by_reciprocal = false;
};
float within_2_ulp(double value, double chance) {
  // 3 roundoffs are 1.5 ulp; the rounding to fp32 adds half an ulp.
  return static_cast<float>(value * (1 + 3 * kUnitF32 * chance));
}
const Form kForms[] = {
    {[](float x, float scale, double) { return x / scale; }},
    {[](float x, float scale, double chance) { return within_2_ulp(double{x} / scale, chance); }},
    {[](float x, float scale, double chance) { return x * within_2_ulp(1.0 / scale, chance); },
     true},
};
// A quotient of bf16 numbers is either a tie or at least 2^-12 of its value away from one, so a
// smaller error than this would show in scales only.
float wrong_quotient(float x, float scale, double) { return x / scale * (1 + 0x1p-10F); }

struct Tally {
  std::int64_t results = 0, outside = 0, flips = 0;
  double expected_flips = 0;
};

// Compares the codes of quotient_of(i) with the permitted codes.
void compare_codes(const CodeEstimate& estimate, const auto& quotient_of, Tally& tally) {
  for (std::int64_t i = 0; i < std::ssize(estimate.before.value); ++i) {
    const HonestCodes permitted = honest_codes(estimate, i);
    const std::uint16_t code = encode(estimate.format, quotient_of(i));
    const int order = order_of(estimate.format, code);
    ++tally.results;
    tally.outside += !(permitted.least <= order && order <= permitted.most);
    tally.flips += code != permitted.exact;
    tally.expected_flips += permitted.flip;
  }
}

// Rows of normal random numbers, and the scales that an implementation stores for them.
class QuantisedRows {
 public:
  QuantisedRows(const GroupQuant& how, tests::Random& random) : how_(how), random_(&random) {
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      bits_.push_back(encode_bf16(static_cast<float>(random.normal())));
    }
    for (std::int64_t g = 0; g < kRows * kColumns / how.group; ++g) {
      float amax = static_cast<float>(how.amax_floor);
      for (std::int64_t i = g * how.group; i < (g + 1) * how.group; ++i) {
        amax = std::max(amax, std::abs(number(i)));
      }
      amax_.push_back(amax);
    }
  }
  Bf16Rows view() const { return {bits_.data(), kRows, kColumns, kColumns}; }
  float number(std::int64_t i) const { return static_cast<float>(decode_bf16(bits_[i])); }
  float scale(std::int64_t group, const Form& form) {
    return form.quotient(amax_[group], static_cast<float>(how_.largest), chance());
  }
  double chance() { return 2 * random_->uniform() - 1; }

  // Compares the codes of all rows under these scales.
  void compare(const std::vector<double>& scales, const Form& form, Tally& tally) {
    how_.by_reciprocal = form.by_reciprocal;
    std::vector<double> of_groups;  // a reciprocal is computed once
    for (std::size_t g = 0; g < scales.size(); ++g) of_groups.push_back(chance());
    compare_codes(
        group_codes(view(), scales, how_, kTwoUlp),
        [&](std::int64_t i) {
          const std::int64_t g = i / how_.group;
          const float quotient = form.quotient(number(i), static_cast<float>(scales[g]),
                                               form.by_reciprocal ? of_groups[g] : chance());
          const auto largest = static_cast<float>(how_.largest);
          return double{std::clamp(quotient, -largest, largest)};
        },
        tally);
  }

 private:
  GroupQuant how_;
  tests::Random* random_;
  std::vector<std::uint16_t> bits_;
  std::vector<float> amax_;
};

const GroupQuant kFp8 = per_token_group_quant_fp8({.group = 128, .amax_floor = 1e-4F});
const GroupQuant kMxfp4 = mxfp4_quant(0x1.8p-124);

// Appends the bounds before the output rounding, relative to the values, in units of an fp32
// rounding.
void add_bounds(const Estimate& estimate, std::vector<double>& bounds) {
  for (std::int64_t i = 0; i < std::ssize(estimate.value); ++i) {
    if (estimate.value[i] == 0) continue;
    bounds.push_back(estimate.arithmetic(i) / std::abs(estimate.value[i]) / kUnitF32);
  }
}
double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

TEST(QuantisationBounds, Fp32ScalesStayInside) {
  std::vector<double> bounds;
  std::int64_t outside = 0, wrong_outside = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    tests::Random random(static_cast<std::uint64_t>(seed) + 1);
    QuantisedRows rows(kFp8, random);
    const Estimate scales = group_scales(rows.view(), kFp8, kTwoUlp);
    add_bounds(scales, bounds);
    for (std::int64_t g = 0; g < std::ssize(scales.value); ++g) {
      const auto is_outside = [&](const Form& form) {
        return !(std::abs(double{rows.scale(g, form)} - scales.centre(g)) <= scales.bound(g));
      };
      for (const Form& form : kForms) outside += is_outside(form);
      wrong_outside += is_outside({wrong_quotient});
    }
  }
  EXPECT_EQ(outside, 0);
  EXPECT_EQ(wrong_outside, std::ssize(bounds));
  EXPECT_LE(median(bounds), 2 * 4.0);  // the bound by hand is 2 ulp = 4 roundings
}

TEST(QuantisationBounds, ScaleBytesStayInside) {
  Tally tally, wrong;
  for (int seed = 0; seed < kSeeds; ++seed) {
    tests::Random random(static_cast<std::uint64_t>(seed) + 1);
    QuantisedRows rows(kMxfp4, random);
    const CodeEstimate bytes = group_scale_bytes(rows.view(), kMxfp4, kTwoUlp);
    for (const Form& form : kForms) {
      compare_codes(bytes, [&](std::int64_t g) { return double{rows.scale(g, form)}; }, tally);
    }
    compare_codes(bytes, [&](std::int64_t g) { return 4.0 * rows.scale(g, kForms[0]); }, wrong);
  }
  EXPECT_EQ(tally.results, 3 * kSeeds * kRows * kColumns / 32);
  EXPECT_EQ(tally.outside, 0);
  EXPECT_EQ(wrong.outside, wrong.results) << "bytes of scales four times as large";
  EXPECT_LE(tally.flips, most_honest_flips(tally.expected_flips, 3));
}

TEST(QuantisationBounds, CodesStayInside) {
  Tally tally, wrong;
  std::vector<double> bounds;
  for (int seed = 0; seed < kSeeds; ++seed) {
    tests::Random random(static_cast<std::uint64_t>(seed) + 1);
    QuantisedRows rows(kFp8, random);
    std::vector<double> scales;
    for (std::int64_t g = 0; g < kRows * kColumns / kFp8.group; ++g) {
      scales.push_back(rows.scale(g, kForms[0]));
    }
    for (const Form& form : kForms) rows.compare(scales, form, tally);
    rows.compare(scales, {wrong_quotient}, wrong);
    add_bounds(group_codes(rows.view(), scales, kFp8, kTwoUlp).before, bounds);
  }
  EXPECT_EQ(tally.outside, 0);
  EXPECT_LE(tally.flips, most_honest_flips(tally.expected_flips, kFp8.group));
  EXPECT_GT(tally.flips, 0);
  EXPECT_GT(wrong.outside, wrong.results / 2000);
  EXPECT_LE(median(bounds), 2 * 4.0);  // the bound by hand is 2 ulp = 4 roundings
}

// Under power-of-two scales only one code is right.
TEST(QuantisationBounds, CodesUnderPowersOfTwoAreExact) {
  Tally tally;
  for (int seed = 0; seed < kSeeds; ++seed) {
    tests::Random random(static_cast<std::uint64_t>(seed) + 1);
    QuantisedRows rows(kMxfp4, random);
    std::vector<double> scales;
    for (std::int64_t g = 0; g < kRows * kColumns / kMxfp4.group; ++g) {
      const double scale = rows.scale(g, kForms[0]);
      scales.push_back(decode(CodeFormat::ue8m0, encode(CodeFormat::ue8m0, scale)));
    }
    rows.compare(scales, kForms[0], tally);
  }
  EXPECT_EQ(tally.outside, 0);
  EXPECT_EQ(tally.flips, 0);
  EXPECT_EQ(tally.expected_flips, 0);
}

}  // namespace quantization_bound_test
}  // namespace plumb::reference
