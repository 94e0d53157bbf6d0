// SPDX-License-Identifier: Apache-2.0
//
// Addresses of a device in another process. In this process such an address carries a mark in its
// upper bits: it can be told from memory of this process, and an access to it fails. Parameters of
// an op lose the marks before they are sent.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>
#include <string_view>

#include "device/remote/codec.h"

namespace plumb::device::remote {

// As a number of 64 bits not a size, as two of 32 bits neither a usual size nor a usual float.
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

// The bytes of a structure with unmarked addresses.
Bytes without_marks(const void* structure, std::size_t bytes);

// The tile plan of a call: the one structure in host memory that an op's parameters name. Null: the
// call has none.
const plumb_mla_plan* plan_of(std::string_view op, const Bytes& params);
void set_plan(Bytes& params, const plumb_mla_plan* plan);

}  // namespace plumb::device::remote
