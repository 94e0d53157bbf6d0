// SPDX-License-Identifier: Apache-2.0
//
// A piece of address space that is reserved whole, and handed out in pieces at the lowest address
// that fits. Pages cost memory only once touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace plumb::device::sim {

std::size_t page_size();
constexpr std::uintptr_t round_up(std::uintptr_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class AddressSpace {
 public:
  explicit AddressSpace(std::size_t bytes);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // 0 if no hole is large enough. Sizes are multiples of 256 (or of the page size, always).
  std::uintptr_t take(std::size_t bytes);
  void give(std::uintptr_t begin, std::size_t bytes);

  std::uintptr_t begin() const { return begin_; }
  bool holds(std::uintptr_t address) const { return address - begin_ < bytes_; }

  // Readable and writable from here on; the reverse; and only the memory back to the system.
  void open_pages(std::uintptr_t begin, std::size_t bytes);
  void close_pages(std::uintptr_t begin, std::size_t bytes);
  void drop_pages(std::uintptr_t begin, std::size_t bytes);

 private:
  std::uintptr_t begin_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::uintptr_t, std::size_t> holes_;
};

}  // namespace plumb::device::sim
