// SPDX-License-Identifier: Apache-2.0
//
// Random numbers for plumb's own tests (splitmix64): every run sees the same ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace plumb::tests {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }  // (0, 1)
  double normal() {  // Box-Muller; uses one of the pair
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_;
};

}  // namespace plumb::tests
