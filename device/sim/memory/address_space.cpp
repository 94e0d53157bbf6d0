// SPDX-License-Identifier: Apache-2.0
//
// Reserves the whole range without backing memory, keeps free holes in a map, and opens and closes
// pages as blocks are allocated and freed.
#include "device/sim/memory/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "device/device.h"

namespace plumb::device::sim {

namespace {
void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

void require(int result, const char* what) {
  if (result != 0) {
    throw DeviceError(ErrorKind::out_of_memory, std::string("the system refused to ") + what);
  }
}

std::uintptr_t reserve(std::size_t bytes) {
  void* const reserved =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(reserved == MAP_FAILED ? 1 : 0, "reserve address space");
  return reinterpret_cast<std::uintptr_t>(reserved);
}

struct FreedSpan {
  std::uintptr_t begin = 0;  // 0: none
  std::size_t bytes = 0;
  std::uintptr_t used_end = 0;
};

// Address spaces that no device uses. A case opens a new device for each combination of conditions
// that it tries, and each device needs a space of the same size.
class LeftBehind {
 public:
  // The space of this size that was left last; begin is 0 if there is none.
  FreedSpan take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(spans_.rbegin(), spans_.rend(),
                                    [&](const FreedSpan& span) { return span.bytes == bytes; });
    if (found == spans_.rend()) return {};
    const FreedSpan span = *found;
    spans_.erase(std::next(found).base());
    return span;
  }

  bool keep(FreedSpan span) {
    const std::lock_guard lock(mutex_);
    if (spans_.size() == kMost) return false;
    const std::uintptr_t most = span.begin + kMostUsed;
    if (span.used_end > most) {
      if (madvise(pointer(most), span.used_end - most, MADV_DONTNEED) != 0) return false;
      span.used_end = most;
    }
    spans_.push_back(span);
    return true;
  }

 private:
  static constexpr std::size_t kMost = 12;  // device and pinned memory of four engines, and more
  static constexpr std::size_t kMostUsed = std::size_t{64} << 20;
  std::mutex mutex_;
  std::vector<FreedSpan> spans_;
};

// Never destroyed: a device may be destroyed after all static objects.
LeftBehind& left_behind() {
  static auto* const the_spaces = new LeftBehind;
  return *the_spaces;
}

}  // namespace

std::size_t page_size() {
  static const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

AddressSpace::AddressSpace(std::size_t bytes, Pages pages) : bytes_(bytes), pages_(pages) {
  const FreedSpan left = pages == Pages::recycled ? left_behind().take(bytes) : FreedSpan{};
  begin_ = left.begin != 0 ? left.begin : reserve(bytes);
  old_end_ = left.begin != 0 ? left.used_end : begin_;
  open_end_ = used_end_ = begin_;
  holes_[begin_] = bytes;
}

AddressSpace::~AddressSpace() {
  const std::uintptr_t touched_end = std::max({open_end_, used_end_, old_end_});
  if (pages_ == Pages::recycled &&
      mprotect(pointer(begin_), touched_end - begin_, PROT_NONE) == 0 &&
      left_behind().keep({begin_, bytes_, touched_end})) {
    return;
  }
  munmap(pointer(begin_), bytes_);
}

std::uintptr_t AddressSpace::take(std::size_t bytes) {
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const auto [begin, size] = *hole;
    if (size < bytes) continue;
    holes_.erase(hole);
    if (size > bytes) holes_[begin + bytes] = size - bytes;
    used_end_ = std::max(used_end_, begin + bytes);
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
  if (old_end_ > open_end_)
    std::memset(pointer(open_end_), 0, std::min(bytes, old_end_ - open_end_));
  open_end_ += bytes;
}

void AddressSpace::close_pages(std::uintptr_t begin, std::size_t bytes) {
  drop_pages(begin, bytes);
  lock_pages(begin, bytes);
}

void AddressSpace::lock_pages(std::uintptr_t begin, std::size_t bytes) {
  require(mprotect(pointer(begin), bytes, PROT_NONE), "close pages");
}

void AddressSpace::drop_pages(std::uintptr_t begin, std::size_t bytes) {
  require(madvise(pointer(begin), bytes, MADV_DONTNEED), "drop pages");
}

// A system without huge pages refuses this advice, and does not need it.
void AddressSpace::keep_pages_small() { madvise(pointer(begin_), bytes_, MADV_NOHUGEPAGE); }

}  // namespace plumb::device::sim
