// SPDX-License-Identifier: Apache-2.0
//
// A vector of four doubles, for loops that compilers do not vectorise. Every operation works on
// each lane alone and in a fixed order, so machines with 256-bit and with 128-bit registers give
// the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

// Pass Four by reference only: the calling convention for values depends on the target.
using Four = double __attribute__((vector_size(32)));

// PLUMB_FOR_ANY_TARGET marks a function that is inlined twice: into a function for any machine, and
// into one for AVX2, which PLUMB_WIDE_TARGET marks.
#define PLUMB_FOR_ANY_TARGET [[gnu::always_inline]] inline
#if defined(__x86_64__)
#define PLUMB_WIDE_TARGET [[gnu::target("avx2")]]
inline bool has_wide_registers() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#else
#define PLUMB_WIDE_TARGET
inline bool has_wide_registers() { return false; }
#endif

PLUMB_FOR_ANY_TARGET void load(const double* from, Four& to) { std::memcpy(&to, from, sizeof(to)); }
// Loads four bf16 numbers as doubles. A bf16 number is the upper half of a float.
PLUMB_FOR_ANY_TARGET void load(const std::uint16_t* from, Four& to) {
  using Halves = std::uint16_t __attribute__((vector_size(8)));
  using Words = std::uint32_t __attribute__((vector_size(16)));
  using Floats = float __attribute__((vector_size(16)));
  Halves halves;
  std::memcpy(&halves, from, sizeof(halves));
  const Words words = __builtin_convertvector(halves, Words) << 16;
  to = __builtin_convertvector(reinterpret_cast<Floats>(words), Four);
}
PLUMB_FOR_ANY_TARGET void store(const Four& from, double* to) {
  std::memcpy(to, &from, sizeof(from));
}

PLUMB_FOR_ANY_TARGET void magnitude_of(const Four& from, Four& to) {
  using Bits = std::int64_t __attribute__((vector_size(32)));
  constexpr std::int64_t kNoSign = 0x7fffffffffffffff;
  to = reinterpret_cast<Four>(reinterpret_cast<Bits>(from) & kNoSign);
}

// Converts `count` bf16 numbers to doubles.
inline void decode_bf16_array(const std::uint16_t* from, std::int64_t count, double* to) {
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four four;
    load(from + i, four);
    store(four, to + i);
  }
  for (; i < count; ++i) to[i] = decode_bf16(from[i]);
}

}  // namespace plumb::reference
