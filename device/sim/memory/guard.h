// SPDX-License-Identifier: Apache-2.0
//
// Bytes in a simulated device's memory that no kernel has written: a pattern that depends on the
// position in guard zones, a repeated 16-bit word in fresh and in freed blocks. A kernel must not
// write guard zones and freed blocks, and must not read a fresh block before it has written it.
// Functions that write these bytes, and find bytes that have changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace plumb::device::sim {

// NaN in bf16, two of them NaN in fp32, a huge positive index in int32.
inline constexpr std::uint16_t kFreshPoison = 0x7FF5;
inline constexpr std::uint16_t kPinnedPoison = 0x7FF3;
inline constexpr std::uint16_t kFreedPoison = 0x7FFB;

// How a range differs from the guard or poison that was written there.
struct ByteDifference {
  std::size_t offset = 0;  // offset of the first byte that differs
  std::uint8_t expected = 0, got = 0;
  std::int64_t bytes = 0;  // how many bytes differ
};

// The pattern of a byte depends on its `position`, so that compare_guard notices a guard zone that
// was copied onto another one.
void lay_guard(std::uint8_t* begin, std::size_t bytes, std::uint64_t position);
std::optional<ByteDifference> compare_guard(const std::uint8_t* begin, std::size_t bytes,
                                            std::uint64_t position);

// `begin` is even.
void lay_poison(std::uint8_t* begin, std::size_t bytes, std::uint16_t word);
std::optional<ByteDifference> compare_poison(const std::uint8_t* begin, std::size_t bytes,
                                             std::uint16_t word);

}  // namespace plumb::device::sim
