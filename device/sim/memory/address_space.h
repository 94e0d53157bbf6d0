// SPDX-License-Identifier: Apache-2.0
//
// A range of address space that is reserved as a whole and handed out in pieces, each at the lowest
// address that fits. Pages cost memory only once touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace plumb::device::sim {

std::size_t page_size();
constexpr std::uintptr_t align_up(std::uintptr_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class AddressSpace {
 public:
  // recycled: uses pages that an earlier AddressSpace of this size left behind, so that the system
  // need not find and clear new ones. They are as inaccessible as fresh pages.
  enum class Pages { fresh, recycled };
  explicit AddressSpace(std::size_t bytes, Pages pages = Pages::fresh);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Returns 0 if no hole is large enough. All sizes are multiples of 256, or all of the page size.
  std::uintptr_t take(std::size_t bytes);
  void give(std::uintptr_t begin, std::size_t bytes);

  std::uintptr_t begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  bool holds(std::uintptr_t address) const { return address - begin_ < bytes_; }

  // open: pages become readable and writable. close: they become inaccessible, and their memory
  // goes back to the system. lock: inaccessible, memory is kept. drop: only memory goes back.
  void open_pages(std::uintptr_t begin, std::size_t bytes);
  // Opens all pages from the start to `end` or further, in steps, so that few system calls are
  // needed. Bytes that were never written read as zero.
  void open_up_to(std::uintptr_t end, std::size_t step);
  void close_pages(std::uintptr_t begin, std::size_t bytes);
  void lock_pages(std::uintptr_t begin, std::size_t bytes);
  void drop_pages(std::uintptr_t begin, std::size_t bytes);
  // One touched byte costs one small page, whatever the system's policy on huge pages is.
  void keep_pages_small();

 private:
  std::uintptr_t begin_ = 0;
  std::size_t bytes_ = 0;
  std::uintptr_t open_end_ = 0;
  std::uintptr_t used_end_ = 0;  // end of the pieces handed out so far
  std::uintptr_t old_end_ = 0;   // end of the pages that may hold old bytes of a recycled space
  Pages pages_;
  std::map<std::uintptr_t, std::size_t> holes_;
};

}  // namespace plumb::device::sim
