// SPDX-License-Identifier: Apache-2.0
//
// Emulates sums of matrix instructions bit for bit. One instruction takes `step` products and the
// accumulator. E is the largest exponent among them. The exponent of a product is the sum of its
// operands' exponents, even if its significand is 2 or more. Every product and the accumulator are
// truncated towards zero to multiples of 2^(E - kept). Their sum is exact, and is then truncated
// towards zero to `bits` significant bits.
//
// tests/cuda/matrix_units.cu compares the emulated units of sm90 with a card.
#pragma once

#include <cstdint>

namespace plumb::reference {

struct MatrixUnit {
  int step = 1;
  int kept = 0;
  int bits = 24;
  int least_exponent = -126;  // of an operand: subnormal operands are not normalised
};

// wgmma and mma.sync of sm90 on bf16, and wgmma on fp8 (e4m3). mma.sync on fp8 needs no unit of its
// own: sm90 converts its operands to fp16.
inline constexpr MatrixUnit kSm90Bf16{.step = 16, .kept = 25, .bits = 24};
inline constexpr MatrixUnit kSm90Fp8{.step = 32, .kept = 13, .bits = 14, .least_exponent = -6};
// Assumed for units that were not measured: terms are aligned to 24 bits.
inline constexpr MatrixUnit kTwentyFourBits{.step = 16, .kept = 23, .bits = 24};

// One instruction: accumulator + sum of `count` products, count <= unit.step.
float matrix_step(const MatrixUnit& unit, const float* a, const float* b, std::int64_t count,
                  float accumulator);

// A chain of instructions that adds `terms` products, unit.step at a time.
float matrix_sum(const MatrixUnit& unit, const float* a, const float* b, std::int64_t terms,
                 float accumulator = 0);

}  // namespace plumb::reference
