// SPDX-License-Identifier: Apache-2.0
//
// mmap without backing for the whole, holes kept in a map, pages opened and closed as blocks come
// and go.
#include "device/sim/memory/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "device/device.h"

namespace plumb::device::sim {

namespace {
void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

void require(int result, const char* what) {
  if (result != 0) {
    throw DeviceError(Fault::out_of_memory, std::string("the system refused to ") + what);
  }
}
}  // namespace

std::size_t page_size() {
  static const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

AddressSpace::AddressSpace(std::size_t bytes) : bytes_(bytes) {
  void* reserved =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(reserved == MAP_FAILED ? 1 : 0, "reserve address space");
  begin_ = open_end_ = reinterpret_cast<std::uintptr_t>(reserved);
  holes_[begin_] = bytes;
}

AddressSpace::~AddressSpace() { munmap(pointer(begin_), bytes_); }

std::uintptr_t AddressSpace::take(std::size_t bytes) {
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const auto [begin, size] = *hole;
    if (size < bytes) continue;
    holes_.erase(hole);
    if (size > bytes) holes_[begin + bytes] = size - bytes;
    return begin;
  }
  return 0;
}

void AddressSpace::give(std::uintptr_t begin, std::size_t bytes) {
  const auto next = holes_.lower_bound(begin);
  if (next != holes_.end() && next->first == begin + bytes) {
    bytes += next->second;
    holes_.erase(next);
  }
  const auto after = holes_.lower_bound(begin);
  if (after != holes_.begin()) {
    const auto previous = std::prev(after);
    if (previous->first + previous->second == begin) {
      previous->second += bytes;
      return;
    }
  }
  holes_[begin] = bytes;
}

void AddressSpace::open_pages(std::uintptr_t begin, std::size_t bytes) {
  require(mprotect(pointer(begin), bytes, PROT_READ | PROT_WRITE), "open pages");
}

void AddressSpace::open_up_to(std::uintptr_t end, std::size_t step) {
  if (end <= open_end_) return;
  const std::size_t bytes =
      std::min<std::size_t>(align_up(end - open_end_, step), begin_ + bytes_ - open_end_);
  open_pages(open_end_, bytes);
  open_end_ += bytes;
}

void AddressSpace::close_pages(std::uintptr_t begin, std::size_t bytes) {
  drop_pages(begin, bytes);
  require(mprotect(pointer(begin), bytes, PROT_NONE), "close pages");
}

void AddressSpace::drop_pages(std::uintptr_t begin, std::size_t bytes) {
  require(madvise(pointer(begin), bytes, MADV_DONTNEED), "drop pages");
}

// A system without huge pages refuses the advice, which is as good.
void AddressSpace::keep_pages_small() { madvise(pointer(begin_), bytes_, MADV_NOHUGEPAGE); }

}  // namespace plumb::device::sim
