// SPDX-License-Identifier: Apache-2.0
//
// Tests functions in the forms of GPUs: fp32 results in these forms stay inside the bounds of the
// form and exceed those of a function with only its own ulp. Functions within half an ulp are
// correctly rounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/tracked/other_forms.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_forms_test {

const Numerics kHalfUlp{.function_ulp = 0.5};

float in_fp32(auto function, float x) {
  return static_cast<float>(function(static_cast<double>(x)));
}
float exp_of(float x) {
  return in_fp32([](double y) { return std::exp2(y); }, x * 1.44269504F);
}
// log2 as the sum of an exponent and the logarithm of a mantissa. Near 1 the sum is small, so its
// relative error is large.
float log_of(float x) {
  const double log2 = std::log2(static_cast<double>(x));
  return (static_cast<float>(log2 + 1) - 1) * 0.693147181F;
}
float root_of(float x) {
  return x * in_fp32([](double y) { return 1 / std::sqrt(y); }, x);
}
float sigmoid_by_exp(float x) { return 1 / (1 + exp_of(-x)); }
float sigmoid_by_tanh(float x) {
  return 0.5F * in_fp32([](double y) { return std::tanh(y); }, 0.5F * x) + 0.5F;
}
float log1p_of(float x) {
  return x < 1 ? in_fp32([](double y) { return std::log1p(y); }, x) : log_of(1 + x);
}

// Largest error / bound over all elements.
double largest_share(const Tracked& result, const std::vector<float>& operands,
                     float (*function)(float)) {
  double largest = 0;
  const Estimate estimate = estimate_of(result, Format::f32);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double error = std::abs(double{function(operands[i])} - estimate.value[i]);
    largest = std::max(largest, error / (estimate.arithmetic(at) + kLeastNormalF32));
  }
  return largest;
}

struct Operands {
  std::vector<float> numbers;
  Operands(double least, double most) {
    tests::Random random(1);
    for (int i = 0; i < 20000; ++i) {
      numbers.push_back(static_cast<float>(least + (most - least) * random.uniform()));
    }
  }
  Tracked array() const {
    return {
        {numbers.begin(), numbers.end()}, {static_cast<std::int64_t>(numbers.size())}, kHalfUlp};
  }
};

void expect_inside(const Tracked& result, const Operands& operands, float (*function)(float)) {
  const double share = largest_share(result, operands.numbers, function);
  EXPECT_LE(share, 1);
  EXPECT_GT(share, 0.3);
}

TEST(TrackedForms, Fp32StaysInside) {
  const Operands any(-80, 80), small(-2, 2), near_1(0.9, 1.1), positive(0, 50);
  for (const Operands& x : {any, small}) {
    expect_inside(exp_by_exp2(x.array()), x, exp_of);
    expect_inside(sigmoid_by_exp2_or_tanh(x.array()), x, sigmoid_by_exp);
    expect_inside(sigmoid_by_exp2_or_tanh(x.array()), x, sigmoid_by_tanh);
  }
  for (const Operands& x : {near_1, positive}) {
    expect_inside(log_by_log2(x.array()), x, log_of);
    expect_inside(sqrt_by_rsqrt(x.array()), x, root_of);
    expect_inside(log1p(x.array()), x, log1p_of);
  }
}

TEST(TrackedForms, AFunctionWithinHalfAnUlpIsLessThanItsForm) {
  const Operands any(-80, 80), positive(0, 50);
  EXPECT_GT(largest_share(exp(any.array()), any.numbers, exp_of), 10);
  EXPECT_GT(largest_share(sigmoid(any.array()), any.numbers, sigmoid_by_exp), 2);
  EXPECT_GT(largest_share(log(positive.array()), positive.numbers, log_of), 1.5);
  EXPECT_GT(largest_share(sqrt(positive.array()), positive.numbers, root_of), 1.2);
}

TEST(TrackedForms, LimitsAreExact) {
  const auto of = [](double x) { return Tracked({x}, {}, kHalfUlp); };
  EXPECT_EQ(exp_by_exp2(of(-kInfinity)).worst(0), 0);
  EXPECT_EQ(log_by_log2(of(1)).values()[0], 0);
  EXPECT_EQ(log_by_log2(of(1)).worst(0), 0);
  EXPECT_GT(log_by_log2(exp(of(1e-9))).worst(0), 0);
  EXPECT_EQ(sigmoid_by_exp2_or_tanh(of(kInfinity)).values()[0], 1);
  EXPECT_EQ(sigmoid_by_exp2_or_tanh(of(kInfinity)).worst(0), 0);
  EXPECT_EQ(sigmoid_by_exp2_or_tanh(of(-kInfinity)).worst(0), 0);
}

TEST(TrackedForms, CorrectRoundingLeavesAloneWhatNeedsNone) {
  const auto worst_of = [](double x, double y, double ulp) {
    const Numerics numerics{.function_ulp = ulp};
    return (Tracked({x}, {}, numerics) / Tracked({y}, {}, numerics)).worst(0);
  };
  EXPECT_EQ(worst_of(6, 3, 0.5), 0);
  EXPECT_DOUBLE_EQ(worst_of(1, 3, 0.5), kUnitF32 / 3);
  EXPECT_DOUBLE_EQ(worst_of(6, 3, 1), 2 * kUnitF32 * 2);
  EXPECT_EQ(worst_of(6, 4, 1), 0);  // division by a power of two is exact
}

}  // namespace tracked_forms_test
}  // namespace plumb::reference
