// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/rope.h"

#include <cmath>

namespace plumb::reference {

namespace {

// first + second, of two rounded products.
Rotated sum_of(double first, double second) {
  constexpr double kVariance = kUnitF32 * kUnitF32 / 3;
  Rotated element;
  element.value = first + second;
  element.magnitude = std::abs(first) + std::abs(second);
  element.product_squares = first * first + second * second;
  element.variance = kVariance * (element.product_squares + element.value * element.value);
  // The sum that is rounded is itself off by the products' roundings.
  element.worst = kUnitF32 * (element.magnitude + std::abs(element.value)) * (1 + 2 * kUnitF32);
  return element;
}

}  // namespace

std::array<Rotated, kRopeDim> rotate(const double* x, const float* cos_sin, Rotation rotation) {
  std::array<Rotated, kRopeDim> rotated;
  for (int pair = 0; pair < kRopeDim / 2; ++pair) {
    const double even = x[2 * pair], odd = x[2 * pair + 1];
    const double cosine = cos_sin[pair];
    const double sine = (rotation == Rotation::forward ? 1 : -1) *
                        static_cast<double>(cos_sin[kRopeDim / 2 + pair]);
    rotated[2 * pair] = sum_of(even * cosine, -odd * sine);
    rotated[2 * pair + 1] = sum_of(even * sine, odd * cosine);
  }
  return rotated;
}

}  // namespace plumb::reference
