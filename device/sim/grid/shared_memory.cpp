// SPDX-License-Identifier: Apache-2.0
//
// Arrays are kGap bytes apart, so that an index slightly too large hits a gap and not another
// array. The gaps do not count towards the platform's limit.
#include "device/sim/grid/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "device/device.h"

namespace plumb::device::sim {

namespace {

constexpr std::size_t kGap = 64;
constexpr std::size_t kMostArrays = 64;

// Copied to shared memory: a quarter of the time of writing word by word.
constexpr std::array<std::uint16_t, 2048> kPoisoned = [] {
  std::array<std::uint16_t, 2048> words{};
  words.fill(kPoison);
  return words;
}();

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

void poison(void* memory, std::size_t bytes) {
  auto* const out = static_cast<unsigned char*>(memory);
  for (std::size_t at = 0; at < bytes; at += sizeof kPoisoned)
    std::memcpy(out + at, kPoisoned.data(), std::min(sizeof kPoisoned, bytes - at));
}

void SharedMemory::start_kernel(std::size_t limit, std::size_t dynamic_bytes) {
  limit_ = limit;
  const std::size_t bytes = limit + kMostArrays * 2 * kGap + sizeof(Chunk);
  const std::size_t chunks = round_up(bytes, sizeof(Chunk)) / sizeof(Chunk);
  if (buffer_.size() < chunks) buffer_.resize(chunks);
  arrays_.clear();
  arrays_.reserve(kMostArrays);
  arrays_.push_back({nullptr, 0, dynamic_bytes});
}

void SharedMemory::start_block() {
  arrays_.resize(1);
  used_ = arrays_[0].bytes;
  end_ = round_up(used_ + kGap, kGap);
  poison(base(), used_);
}

void* SharedMemory::add(const SharedSite& site) {
  if (used_ + site.bytes > limit_ || arrays_.size() == kMostArrays) return nullptr;
  const std::size_t begin = round_up(end_, site.alignment < kGap ? kGap : site.alignment);
  arrays_.push_back({&site, begin, site.bytes});
  used_ += site.bytes;
  end_ = begin + site.bytes + kGap;
  poison(base() + begin, site.bytes);
  return base() + begin;
}

std::string SharedMemory::why_full(const SharedSite& site) const {
  return fmt::format(
      "shared array {} of {} bytes does not fit: {} bytes in {} arrays are in use, the platform "
      "has "
      "{}",
      site.name, site.bytes, used_, arrays_.size(), limit_);
}

const SharedMemory::Array* SharedMemory::array_at(std::uintptr_t address) const {
  const std::size_t offset = address - begin_address();
  for (const Array& array : arrays_)
    if (offset - array.begin < array.bytes) return &array;
  return nullptr;
}

}  // namespace plumb::device::sim
