// SPDX-License-Identifier: Apache-2.0
//
// Products of bf16 numbers by fp32 weights on matrix units, whose operands are bf16 and whose sums
// are fp32. A weight is the sum of three bf16 numbers, exactly, so that every product is exact and
// no operand is rounded.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// Takes its nearest pair of bf16 numbers off two numbers; what is left is exact.
static __device__ inline unsigned take_part(float& low, float& high) {
  const unsigned pair = native_bf16_pair(low, high);
  low -= __uint_as_float(pair << 16);
  high -= __uint_as_float(pair & 0xffff0000u);
  return pair;
}

// sums += 16 rows by 16 columns, times 16 columns by 8: lane l has rows l / 4 (a0, a2) and
// l / 4 + 8 (a1, a3) of the left operand, column l / 4 of the right one, and of the sums rows l / 4
// and l / 4 + 8 of columns 2 (l % 4) and + 1. A lane's words of a row on the left are those of a
// column on the right: what stands on both sides is multiplied by itself. The sums before and after
// are operands apart, so that constant zeros need no registers.
static __device__ inline void multiply(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2,
                                       unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(sums[0]), "f"(sums[1]),
        "f"(sums[2]), "f"(sums[3]));
}

// What stands on the right, times itself: the diagonal of the first eight rows holds squares. The
// other rows are anything, which costs no registers.
static __device__ inline void multiply_by_itself(float (&sums)[4], unsigned b0, unsigned b1) {
  asm("{ .reg .b32 any;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, any, %5, any}, {%4, %5}, {%6, %7, %8, %9}; }"
      : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
      : "r"(b0), "r"(b1), "f"(sums[0]), "f"(sums[1]), "f"(sums[2]), "f"(sums[3]));
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
