// SPDX-License-Identifier: Apache-2.0
//
// The bytes that a simulated device's memory holds while nobody may use it: a position-dependent
// pattern in guard zones, a repeated 16-bit word in fresh and in freed blocks. How they are laid
// and compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace plumb::device::sim {

// NaN as bf16, NaN in pairs as fp32, a huge positive index as int32.
inline constexpr std::uint16_t kFreshPoison = 0x7FF5;
inline constexpr std::uint16_t kPinnedPoison = 0x7FF3;
inline constexpr std::uint16_t kFreedPoison = 0x7FFB;

// A range that differs from what was laid there.
struct ByteDifference {
  std::size_t offset = 0;  // of the first byte that differs
  std::uint8_t expected = 0, got = 0;
  std::int64_t bytes = 0;  // how many differ
};

// The pattern at a byte depends on `position` of that byte, so that a guard copied onto another
// shows.
void lay_guard(std::uint8_t* begin, std::size_t bytes, std::uint64_t position);
std::optional<ByteDifference> compare_guard(const std::uint8_t* begin, std::size_t bytes,
                                            std::uint64_t position);

// `begin` is even.
void lay_poison(std::uint8_t* begin, std::size_t bytes, std::uint16_t word);
std::optional<ByteDifference> compare_poison(const std::uint8_t* begin, std::size_t bytes,
                                             std::uint16_t word);

}  // namespace plumb::device::sim
