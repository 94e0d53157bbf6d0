// SPDX-License-Identifier: Apache-2.0
//
// A structure of the C interface as its maker knows it, which may be an older or a younger version
// of it: with fewer or more members at its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace plumb::device {

// Why `bytes`, of which `known` are members here, cannot be read; "": they can. A structure has at
// least its first `least` bytes. What is unknown here has to be 0, because somebody means something
// by what is not.
std::string why_unreadable(const void* from, std::int64_t bytes, std::size_t known,
                           std::size_t least);

// What is known here of such a structure; members that it lacks are 0.
template <class T>
T read_struct(const void* from, std::int64_t bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T made{};
  std::memcpy(&made, from, std::min(sizeof made, static_cast<std::size_t>(bytes)));
  return made;
}

}  // namespace plumb::device
