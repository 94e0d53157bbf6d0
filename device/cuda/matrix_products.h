// SPDX-License-Identifier: Apache-2.0
//
// Products of bf16 numbers with fp32 weights on matrix units, which take bf16 operands and add in
// fp32. A weight is split into three bf16 numbers whose sum is exactly the weight. So every product
// is exact, and no operand is rounded.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// Rounds two numbers to a bf16 pair, subtracts the pair from them, exactly, and returns it.
static __device__ inline unsigned take_part(float& low, float& high) {
  const unsigned pair = native_bf16_pair(low, high);
  low -= __uint_as_float(pair << 16);
  high -= __uint_as_float(pair & 0xffff0000u);
  return pair;
}

// sums += left operand (16 x 16) times right operand (16 x 8). Lane l has rows l / 4 (a0, a2) and
// l / 4 + 8 (a1, a3) of the left one, column l / 4 of the right one, and rows l / 4 and l / 4 + 8
// of columns 2 (l % 4) and + 1 of the sums. Left rows and right columns have the same layout in a
// lane: the same words on both sides are multiplied by themselves. Sums are separate input and
// output operands of the instruction, so that constant zeros need no registers.
static __device__ inline void multiply(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2,
                                       unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(sums[0]), "f"(sums[1]),
        "f"(sums[2]), "f"(sums[3]));
}

// Multiplies the right operand by itself: the diagonal of the first eight rows holds squares. The
// other rows are undefined, which saves registers.
static __device__ inline void multiply_by_itself(float (&sums)[4], unsigned b0, unsigned b1) {
  asm("{ .reg .b32 any;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, any, %5, any}, {%4, %5}, {%6, %7, %8, %9}; }"
      : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
      : "r"(b0), "r"(b1), "f"(sums[0]), "f"(sums[1]), "f"(sums[2]), "f"(sums[3]));
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
