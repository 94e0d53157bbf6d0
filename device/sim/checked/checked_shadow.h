// SPDX-License-Identifier: Apache-2.0
//
// The latest accesses to every byte that a launch touched, and whether a new one races with them.
#pragma once

#include <array>
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
  bool uses_old_value = true;  // of an atomic: false for an exchange
};

// A new access has passed or not.
struct Finding {
  enum class Kind { none, race, uninitialized } kind = Kind::none;
  Stamp other;  // of a race: the earlier access
  bool other_wrote = false;
  std::uintptr_t address = 0;
};

class Shadow {
 public:
  // Checks an access of the running thread and remembers it. `floor`: older stamps count as absent.
  // `needs_write`: a byte that nobody wrote since `floor` may not be read.
  Finding access(const Access& access, const Clock& clock, int thread, std::uint32_t floor,
                 bool needs_write);
  // Forgets everything if much memory is held; `always`: in any case.
  void trim(bool always);

 private:
  // The last writer, and two accesses that do not exclude others of their kind (reads or atomics).
  // A reader gives up its place to one that comes after it. Where three or more are unordered, the
  // two kept are of different waves or blocks if any are, so a later write races with one of them
  // if it races with any; only lanes of one wave that met in several partial wave_syncs can
  // escape.
  struct Cell {
    Stamp writer;
    std::array<Stamp, 2> readers;
  };
  // Cells of a page cover `1 << shift` bytes: 4 as long as every access is made of whole words.
  struct Page {
    int shift = 2;
    std::vector<Cell> cells;
  };

  Page& page_at(std::uintptr_t number);
  static void refine(Page& page, int shift);
  static bool check(const Cell& cell, const Access& access, const Clock& clock, int thread,
                    std::uint32_t floor, bool needs_write, Finding& finding);
  static void remember(Cell& cell, const Access& access, const Clock& clock, int thread,
                       std::uint32_t floor, const Stamp& now);

  static constexpr int kPageShift = 12;
  static constexpr std::size_t kRecent = 64;
  struct Recent {
    std::uintptr_t number = 0;
    Page* page = nullptr;
  };
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::array<Recent, kRecent> recent_;
};

}  // namespace plumb::device::sim
