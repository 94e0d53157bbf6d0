// SPDX-License-Identifier: Apache-2.0
//
// Four doubles side by side, for loops that compilers leave to one at a time. Every operation is
// done on each of the four alone and in a fixed order, so results are the same bits whether the
// machine has registers of 256 bits or does it in halves.
#pragma once

#include <cstdint>
#include <cstring>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

// Never by value through a call: how that is done depends on the target.
using Four = double __attribute__((vector_size(32)));

// On a function that is inlined into one function for any machine and one for AVX2.
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
// Four bf16 numbers: the upper halves of floats.
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

// count bf16 numbers as doubles.
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
