// SPDX-License-Identifier: Apache-2.0
//
// Reads a structure of the C interface whose maker may have used an older or a newer version of the
// interface, in which it has fewer or more members at its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace plumb::device {

// Why the structure of `bytes` bytes cannot be read; "": it can. `known`: bytes of members known
// here; `least`: bytes that all versions have. Unknown members must be 0: a maker that sets one
// relies on a meaning that is not known here.
std::string why_unreadable(const void* from, std::int64_t bytes, std::size_t known,
                           std::size_t least);

// The members of such a structure that are known here. Members that it lacks are 0.
template <class T>
T read_struct(const void* from, std::int64_t bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T made{};
  std::memcpy(&made, from, std::min(sizeof made, static_cast<std::size_t>(bytes)));
  return made;
}

}  // namespace plumb::device
