// SPDX-License-Identifier: Apache-2.0
#include "device/plugin/grown_struct.h"

#include <fmt/format.h>

namespace plumb::device {

namespace {

// Longest structure, in bytes. A larger number is not a size.
inline constexpr std::int64_t kLongestStruct = 1 << 16;

}  // namespace

std::string why_unreadable(const void* from, std::int64_t bytes, std::size_t known,
                           std::size_t least) {
  if (bytes < static_cast<std::int64_t>(least) || bytes > kLongestStruct) {
    return fmt::format("a size of {} bytes instead of {}", bytes, known);
  }
  const auto* const first = static_cast<const std::byte*>(from);
  for (std::size_t i = known; i < static_cast<std::size_t>(bytes); ++i) {
    if (first[i] != std::byte{0}) {
      return fmt::format("a member at byte {} that this plumb does not know", i);
    }
  }
  return "";
}

}  // namespace plumb::device
