// SPDX-License-Identifier: Apache-2.0
//
// Tests reference/rounding.h against the machine's rounding and against numerical integration.
#include "reference/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/random.h"

namespace plumb::reference {
namespace rounding_test {

using tests::Random;

TEST(Rounding, AgreesWithTheMachineOnFloats) {
  Random random(1);
  for (int i = 0; i < 100000; ++i) {
    const double x = random.normal() * std::exp2(static_cast<double>(random.below(270)) - 145);
    EXPECT_EQ(nearest(Format::f32, x), static_cast<double>(static_cast<float>(x))) << x;
    const auto f = static_cast<float>(x);
    const float next = std::nextafter(f, std::numeric_limits<float>::infinity());
    EXPECT_EQ(above(Format::f32, f), static_cast<double>(next)) << x;
  }
  EXPECT_EQ(largest_finite(Format::f32), std::numeric_limits<float>::max());
}

TEST(Rounding, OfBf16HasEightDigitsAndTiesToEven) {
  EXPECT_EQ(spacing(Format::bf16, 1), 0x1p-7);
  EXPECT_EQ(spacing(Format::bf16, 0x1.fep0), 0x1p-7);
  EXPECT_EQ(spacing(Format::bf16, 0), 0x1p-133);
  EXPECT_EQ(nearest(Format::bf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(nearest(Format::bf16, 1 + 0x3p-8), 1 + 0x2p-7);
  EXPECT_EQ(nearest(Format::bf16, -(1 + 0x1.1p-8)), -(1 + 0x1p-7));
  EXPECT_EQ(above(Format::bf16, -1), -1 + 0x1p-8);
  EXPECT_EQ(largest_finite(Format::bf16), 0x1.fep127);
}

// The moments of round(centre + e) - centre, integrated over e with the midpoint rule.
RoundedError integrate(double centre, double sigma) {
  constexpr int kPoints = 200000;
  double weight = 0, mean = 0, square = 0, slope = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double z = -9 + 18 * (i + 0.5) / kPoints;
    const double w = std::exp(-z * z / 2);
    const double error = nearest(Format::bf16, centre + z * sigma) - centre;
    weight += w;
    mean += w * error;
    square += w * error * error;
    slope += w * error * z;
  }
  mean /= weight;
  return {mean, square / weight - mean * mean, slope / weight, 0, 0};
}

TEST(RoundedError, HasTheMomentsOfTheIntegral) {
  Random random(2);
  constexpr double kStep = 0x1p-7;
  for (int i = 0; i < 60; ++i) {
    // sigma goes from far below a step of the format to above it. Every third centre is next to a
    // power of two, and centres have both signs.
    const double sigma = kStep * std::exp2(-8 + 9.5 * random.uniform());
    const double distance = kStep * random.normal();
    const double centre = (i % 3 == 0 ? 1 + distance : 1.5 + distance) * (i % 2 == 0 ? 1 : -1);
    const RoundedError error = rounded_error(Format::bf16, centre, sigma);
    const RoundedError truth = integrate(centre, sigma);
    // The integrand jumps, so the midpoint rule has an error of about the distance between points,
    // as a share of a step.
    const double accuracy = 1e-3 * kStep;
    EXPECT_NEAR(error.mean, truth.mean, accuracy) << centre << " " << sigma;
    EXPECT_NEAR(error.slope, truth.slope, accuracy) << centre << " " << sigma;
    EXPECT_NEAR(error.variance, truth.variance, accuracy * kStep) << centre << " " << sigma;
    EXPECT_LE(error.slope * error.slope, error.variance * (1 + 1e-9));
  }
}

TEST(RoundedError, IsCertainWhereNoTieIsInReach) {
  const RoundedError error = rounded_error(Format::bf16, 1 + 0x1p-10, 0x1p-13);
  EXPECT_EQ(error.mean, -0x1p-10);
  EXPECT_EQ(error.variance, 0);
  EXPECT_EQ(error.step, 0);
  EXPECT_EQ(rounded_error(Format::bf16, 0, 0).variance, 0);
}

}  // namespace rounding_test
}  // namespace plumb::reference
