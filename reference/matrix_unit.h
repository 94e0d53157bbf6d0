// SPDX-License-Identifier: Apache-2.0
//
// Sums of matrix instructions, bit for bit. One instruction takes `step` products and the
// accumulator. E is the largest exponent among them. The exponent of a product is the sum of its
// operands' exponents, also where its significand is 2 or more. Every product and the accumulator
// are cut towards zero to multiples of 2^(E - kept). Their sum is exact, and is then cut towards
// zero to `bits` significant bits.
//
// tests/cuda/matrix_units.cu compares the units of sm90 with a card.
#pragma once

#include <cstdint>

namespace plumb::reference {

struct MatrixUnit {
  int step = 1;
  int kept = 0;
  int bits = 24;
  int least_exponent = -126;  // of an operand: subnormal operands are not normalised
};

// wgmma and mma.sync of sm90: bf16, and fp8 (e4m3) of wgmma. mma.sync on fp8 is no unit of its own:
// sm90 converts the operands to fp16.
inline constexpr MatrixUnit kSm90Bf16{.step = 16, .kept = 25, .bits = 24};
inline constexpr MatrixUnit kSm90Fp8{.step = 32, .kept = 13, .bits = 14, .least_exponent = -6};
// Terms aligned to 24 bits: what is assumed of units that were not measured.
inline constexpr MatrixUnit kTwentyFourBits{.step = 16, .kept = 23, .bits = 24};

// One instruction: accumulator + sum of `count` <= unit.step products.
float matrix_step(const MatrixUnit& unit, const float* a, const float* b, std::int64_t count,
                  float accumulator);

// A chain of instructions over `terms` products.
float matrix_sum(const MatrixUnit& unit, const float* a, const float* b, std::int64_t terms,
                 float accumulator = 0);

}  // namespace plumb::reference
