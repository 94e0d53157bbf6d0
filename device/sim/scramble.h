// SPDX-License-Identifier: Apache-2.0
//
// Random numbers for the random orders: counters through the finaliser of SplitMix64.
#pragma once

#include <cstdint>

namespace plumb::device::sim {

inline std::uint64_t scramble(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace plumb::device::sim
