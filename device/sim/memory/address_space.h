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
constexpr std::uintptr_t align_up(std::uintptr_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class AddressSpace {
 public:
  // Recycled: the memory of pages that a space of this size left behind, which saves the system
  // from finding and clearing it. They are as closed as fresh ones.
  enum class Pages { fresh, recycled };
  explicit AddressSpace(std::size_t bytes, Pages pages = Pages::fresh);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // 0 if no hole is large enough. Sizes are multiples of 256 (or of the page size, always).
  std::uintptr_t take(std::size_t bytes);
  void give(std::uintptr_t begin, std::size_t bytes);

  std::uintptr_t begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  bool holds(std::uintptr_t address) const { return address - begin_ < bytes_; }

  // Pages become readable and writable; the reverse, and their memory goes back to the system or
  // not; or it only goes back.
  void open_pages(std::uintptr_t begin, std::size_t bytes);
  // All pages from the start to `end` at least, in steps, so that few calls reach the system. They
  // read zero where nobody has written.
  void open_up_to(std::uintptr_t end, std::size_t step);
  void close_pages(std::uintptr_t begin, std::size_t bytes);
  void lock_pages(std::uintptr_t begin, std::size_t bytes);
  void drop_pages(std::uintptr_t begin, std::size_t bytes);
  // One touched byte costs one small page, whatever the system's policy on huge ones.
  void keep_pages_small();

 private:
  std::uintptr_t begin_ = 0;
  std::size_t bytes_ = 0;
  std::uintptr_t open_end_ = 0;
  std::uintptr_t used_end_ = 0;  // behind it no piece was handed out yet
  std::uintptr_t old_end_ = 0;   // behind it recycled pages are as fresh ones
  Pages pages_;
  std::map<std::uintptr_t, std::size_t> holes_;
};

}  // namespace plumb::device::sim
