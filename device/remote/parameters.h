// SPDX-License-Identifier: Apache-2.0
//
// Addresses of a device in another process. In this process they carry a mark in their upper bits,
// so that they differ from addresses of this process, and an access to them fails. Marks are
// removed from an op's parameters before these are sent.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>
#include <string_view>

#include "device/remote/codec.h"

namespace plumb::device::remote {

// Upper 16 bits of a marked address. Other members of a structure do not look like marked
// addresses: no usual 64-bit size has these bits, nor do two adjacent 32-bit sizes or floats.
inline constexpr std::uint64_t kMark = std::uint64_t{0xa5d5} << 48;
inline constexpr std::uint64_t kMarkBits = std::uint64_t{0xffff} << 48;

inline std::uint64_t word_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
inline bool is_marked(std::uint64_t word) { return (word & kMarkBits) == kMark; }
inline bool is_marked(const void* address) { return is_marked(word_of(address)); }
inline void* marked(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address | kMark));
}
inline std::uint64_t unmarked(const void* address) { return word_of(address) & ~kMarkBits; }

// A copy of a structure in which addresses have no marks.
Bytes without_marks(const void* structure, std::size_t bytes);

// The tile plan of a call: the only structure in host memory to which an op's parameters point.
// Null: the call has none.
const plumb_mla_plan* plan_of(std::string_view op, const Bytes& params);
void set_plan(Bytes& params, const plumb_mla_plan* plan);

}  // namespace plumb::device::remote
