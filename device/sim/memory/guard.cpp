// SPDX-License-Identifier: Apache-2.0
//
// In the common case nothing differs, and a check costs one memcmp.
#include "device/sim/memory/guard.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace plumb::device::sim {

namespace {

constexpr std::size_t kPeriod = 4096;

constexpr std::uint8_t guard_byte(std::uint64_t position) {
  const std::uint64_t mixed = (position % kPeriod + 1) * 0x9E3779B97F4A7C15U;
  return static_cast<std::uint8_t>(mixed >> 56);
}

constexpr std::array<std::uint8_t, kPeriod> kGuard = [] {
  std::array<std::uint8_t, kPeriod> bytes{};
  for (std::size_t i = 0; i < kPeriod; ++i) bytes[i] = guard_byte(i);
  return bytes;
}();

constexpr std::uint8_t poison_byte(std::size_t offset, std::uint16_t word) {
  return static_cast<std::uint8_t>(offset % 2 == 0 ? word & 0xFF : word >> 8);
}

// Calls body(offset, length, pattern) for each piece of the range in which the pattern does not
// wrap.
template <class Body>
void for_each_piece(std::size_t bytes, std::uint64_t position, const Body& body) {
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t start = (position + offset) % kPeriod;
    const std::size_t length = std::min(bytes - offset, kPeriod - start);
    body(offset, length, kGuard.data() + start);
    offset += length;
  }
}

template <class Expected>
std::optional<ByteDifference> differences(const std::uint8_t* begin, std::size_t bytes,
                                          const Expected& expected) {
  std::optional<ByteDifference> found;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (begin[i] == expected(i)) continue;
    if (!found) found = ByteDifference{i, expected(i), begin[i], 0};
    ++found->bytes;
  }
  return found;
}

}  // namespace

void lay_guard(std::uint8_t* begin, std::size_t bytes, std::uint64_t position) {
  for_each_piece(bytes, position, [&](std::size_t offset, std::size_t length, const auto* pattern) {
    std::memcpy(begin + offset, pattern, length);
  });
}

std::optional<ByteDifference> compare_guard(const std::uint8_t* begin, std::size_t bytes,
                                            std::uint64_t position) {
  bool same = true;
  for_each_piece(bytes, position, [&](std::size_t offset, std::size_t length, const auto* pattern) {
    same = same && std::memcmp(begin + offset, pattern, length) == 0;
  });
  if (same) return std::nullopt;
  return differences(begin, bytes, [&](std::size_t i) { return guard_byte(position + i); });
}

// Writes two bytes, then copies all written bytes behind themselves, twice as many each time, up to
// what a cache holds.
void lay_poison(std::uint8_t* begin, std::size_t bytes, std::uint16_t word) {
  std::size_t laid = std::min<std::size_t>(bytes, 2);
  for (std::size_t i = 0; i < laid; ++i) begin[i] = poison_byte(i, word);
  while (laid < bytes) {
    const std::size_t copied = std::min({laid, kPeriod, bytes - laid});
    std::memcpy(begin + laid, begin, copied);
    laid += copied;
  }
}

std::optional<ByteDifference> compare_poison(const std::uint8_t* begin, std::size_t bytes,
                                             std::uint16_t word) {
  if (bytes == 0) return std::nullopt;
  const auto expected = [&](std::size_t i) { return poison_byte(i, word); };
  // If each byte equals the byte two places behind it, and the first two are right, all are right.
  const bool starts = begin[0] == expected(0) && (bytes < 2 || begin[1] == expected(1));
  if (starts && (bytes <= 2 || std::memcmp(begin, begin + 2, bytes - 2) == 0)) return std::nullopt;
  return differences(begin, bytes, expected);
}

}  // namespace plumb::device::sim
