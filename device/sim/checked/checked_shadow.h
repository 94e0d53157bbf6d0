// SPDX-License-Identifier: Apache-2.0
//
// The latest accesses to every byte that a launch touched. A new access may race with them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/sim/checked/checked_clock.h"

namespace plumb::device::sim {

struct Access {
  std::uintptr_t address;
  std::size_t bytes;
  bool write;
  bool atomic = false;
  bool uses_old_value = true;  // atomics only: false for an exchange
};

// What is wrong with a new access.
struct AccessVerdict {
  enum class Flaw { race, uninitialized } kind = Flaw::race;
  Stamp other;  // if kind is race: the earlier access
  bool other_wrote = false;
  std::uintptr_t address = 0;
};

class Shadow {
 public:
  // Checks an access of the running thread and records it. `floor`: older stamps are ignored.
  // `needs_write`: a read fails if no thread has written the byte since `floor`. Returns false and
  // sets `finding` if the access is wrong.
  inline bool access(const Access& access, const Clock& clock, int thread, std::uint32_t floor,
                     bool needs_write, AccessVerdict& finding);
  // Forgets everything if it holds much memory, or if `always` is set.
  void trim(bool always);

 private:
  // The last writer, and two accesses that do not exclude others of their kind (reads or atomics).
  // A reader is replaced by one that is ordered after it. If three or more are unordered, the two
  // that are kept are of different waves or blocks, if any are. So a later write that races with
  // any of them races with one that is kept, unless lanes of one wave met in several partial
  // wave_syncs.
  struct Cell {
    Stamp writer;
    std::array<Stamp, 2> readers;
  };
  // A cell of a page covers `1 << shift` bytes: 4 as long as all accesses are whole words.
  struct Page {
    int shift = 2;
    std::vector<Cell> cells;
  };

  Page& page_at(std::uintptr_t number) {
    const RecentPage& recent = recent_[number % kRecent];
    return recent.page != nullptr && recent.number == number ? *recent.page : find_page(number);
  }
  Page& find_page(std::uintptr_t number);
  static void refine(Page& page, int shift);
  static inline bool check(const Cell& cell, const Access& access, const Clock& clock, int thread,
                           std::uint32_t floor, bool needs_write, AccessVerdict& finding);
  static inline void remember(Cell& cell, const Access& access, const Clock& clock, int thread,
                              std::uint32_t floor, const Stamp& now);

  static constexpr int kPageShift = 12;
  static constexpr std::size_t kRecent = 64;
  struct RecentPage {
    std::uintptr_t number = 0;
    Page* page = nullptr;
  };
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::array<RecentPage, kRecent> recent_;
};

// Inline, because these functions run for every access of every checked kernel.
inline bool Shadow::access(const Access& access, const Clock& clock, int thread,
                           std::uint32_t floor, bool needs_write, AccessVerdict& finding) {
  const Stamp now = clock.now(thread, access.atomic);
  const std::uintptr_t end = access.address + access.bytes;
  const int shift = std::min(2, std::countr_zero(access.address | end));
  for (std::uintptr_t at = access.address; at < end;) {
    Page& page = page_at(at >> kPageShift);
    if (shift < page.shift) refine(page, shift);
    const std::uintptr_t page_end = (at | ((std::uintptr_t{1} << kPageShift) - 1)) + 1;
    Cell* cell = &page.cells[(at & ((std::uintptr_t{1} << kPageShift) - 1)) >> page.shift];
    for (; at < std::min(end, page_end); at += std::uintptr_t{1} << page.shift, ++cell) {
      if (!check(*cell, access, clock, thread, floor, needs_write, finding)) {
        finding.address = at;
        return false;
      }
      remember(*cell, access, clock, thread, floor, now);
    }
  }
  return true;
}

inline bool Shadow::check(const Cell& cell, const Access& access, const Clock& clock, int thread,
                          std::uint32_t floor, bool needs_write, AccessVerdict& finding) {
  const auto races = [&](const Stamp& other) {
    return !(access.atomic && other.atomic) && !clock.is_before(other, thread, floor);
  };
  const auto found = [&](const Stamp& other, bool wrote) {
    finding = {AccessVerdict::Flaw::race, other, wrote};
    return false;
  };
  if (races(cell.writer)) return found(cell.writer, true);
  for (const Stamp& reader : cell.readers)
    if ((access.write || reader.atomic) && races(reader)) return found(reader, reader.atomic);
  const bool reads = !access.write || (access.atomic && access.uses_old_value);
  if (reads && needs_write && cell.writer.segment < floor) {
    finding = {AccessVerdict::Flaw::uninitialized};
    return false;
  }
  return true;
}

inline void Shadow::remember(Cell& cell, const Access& access, const Clock& clock, int thread,
                             std::uint32_t floor, const Stamp& now) {
  if (access.write) cell.writer = now;
  if (access.write && !access.atomic) {
    cell.readers = {};
    return;
  }
  auto& [a, b] = cell.readers;
  if (clock.is_before(a, thread, floor)) a = {};
  if (clock.is_before(b, thread, floor)) b = {};
  if (a.segment == 0)
    a = now;
  else if (b.segment == 0 || (clock.may_meet(a, b) && !clock.may_meet(a, now)))
    b = now;
}

}  // namespace plumb::device::sim
