// SPDX-License-Identifier: Apache-2.0
//
// Shared memory of a block: the dynamic part, then static arrays, added when the block first
// reaches their declarations. Every part starts as poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/sim/context.h"

namespace plumb::device::sim {

// 0x7FF7 in every 16-bit word: NaN in bf16, float and double, and a huge integer. As e4m3fn, every
// second byte (0x7F) is a NaN.
constexpr std::uint16_t kPoison = 0x7FF7;
void poison(void* memory, std::size_t bytes);

class SharedMemory {
 public:
  struct Array {
    const SharedSite* site;  // nullptr: the dynamic part
    std::size_t begin, bytes;
    const char* name() const { return site == nullptr ? "dynamic shared memory" : site->name; }
  };

  // `limit`: bytes that the platform allows, of which the dynamic part takes `dynamic_bytes`.
  void start_kernel(std::size_t limit, std::size_t dynamic_bytes);
  void start_block();

  // The array of this site; nullptr if it does not fit: why_full() has the message.
  void* find_or_add(const SharedSite& site) {
    for (const Array& array : arrays_)
      if (array.site == &site) return base() + array.begin;
    return add(site);
  }
  void* dynamic() { return base(); }
  std::string why_full(const SharedSite& site) const;

  bool contains(std::uintptr_t address) const { return address - begin_address() < size(); }
  const Array* array_at(std::uintptr_t address) const;
  std::uintptr_t begin_address() const { return reinterpret_cast<std::uintptr_t>(buffer_.data()); }
  std::size_t size() const { return buffer_.size() * sizeof(Chunk); }
  const std::vector<Array>& arrays() const { return arrays_; }

 private:
  // Has the largest alignment that a shared array may ask for. The buffer is made of whole chunks,
  // because other objects' memory lies behind it.
  struct alignas(1024) Chunk {
    std::byte bytes[1024];
  };

  std::byte* base() { return reinterpret_cast<std::byte*>(buffer_.data()); }
  void* add(const SharedSite& site);

  std::vector<Chunk> buffer_;
  std::vector<Array> arrays_;
  std::size_t limit_ = 0, used_ = 0, end_ = 0;
};

}  // namespace plumb::device::sim
