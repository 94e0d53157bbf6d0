// SPDX-License-Identifier: Apache-2.0
//
// A second implementation of small floating-point formats, for the tests of reference/formats: it
// computes the values of all positive codes step by step instead of decoding them, and rounds by a
// search instead of bit arithmetic.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace plumb::tests {

// values[c] is the value of positive code c. The last entry is the value that the first missing
// code would have: rounding to it is an overflow.
struct Ladder {
  std::vector<double> values;

  // The first two blocks of `block` codes (subnormals, smallest exponent) have steps of `least`.
  // Each later block has twice the step of the block before.
  Ladder(double least, int block, int codes) {
    double value = 0, step = least;
    for (int code = 0; code <= codes; ++code) {
      values.push_back(value);
      if (code >= 2 * block && code % block == 0) step *= 2;
      value += step;
    }
  }

  int codes() const { return static_cast<int>(values.size()) - 1; }

  // The code nearest to x >= 0; at a tie the even code. Both differences are exact, or one is so
  // much smaller that its rounding does not matter.
  int nearest(double x) const {
    const auto above = std::upper_bound(values.begin(), values.end(), x);
    if (above == values.end()) return codes();
    const int high = static_cast<int>(above - values.begin()), low = high - 1;
    const double from_low = x - values[low], to_high = values[high] - x;
    if (from_low != to_high) return from_low < to_high ? low : high;
    return low % 2 == 0 ? low : high;
  }

  // The value halfway between codes c and c + 1. Exact, and an fp32 value in the tested formats.
  double midpoint(int code) const { return (values[code] + values[code + 1]) / 2; }
};

// The value, its neighbouring floats, its neighbouring doubles, and the negatives of all these.
inline std::vector<double> around(double x) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  constexpr float kFarF32 = std::numeric_limits<float>::infinity();
  const auto narrow = static_cast<float>(x);
  std::vector<double> all = {x, std::nextafter(x, kFar), std::nextafter(x, -kFar),
                             std::nextafter(narrow, kFarF32), std::nextafter(narrow, -kFarF32)};
  for (int i = 0; i < 5; ++i) all.push_back(-all[i]);
  return all;
}

// The i-th of a stream of 64-bit random numbers (SplitMix64, counter-based).
inline std::uint64_t random_bits(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

// A random bit pattern that is not a NaN.
inline float random_float(std::uint64_t i) {
  auto bits = static_cast<std::uint32_t>(random_bits(i));
  if ((bits & 0x7FFFFFFF) > 0x7F800000) bits &= 0xBFFFFFFF;
  return std::bit_cast<float>(bits);
}

// A random sign and a magnitude in [2^least, 2^(least + count)); every binade is equally likely.
inline float random_float_in(std::uint64_t i, int least, int count) {
  const std::uint64_t bits = random_bits(i);
  const auto exponent = static_cast<std::uint32_t>(least + 127 + (bits >> 32) % count);
  return std::bit_cast<float>((static_cast<std::uint32_t>(bits) & 0x807FFFFF) | exponent << 23);
}

}  // namespace plumb::tests
