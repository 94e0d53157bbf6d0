// SPDX-License-Identifier: Apache-2.0
//
// What the inline half of the simulator (simt_back_end.h) shares with the compiled half: who the
// running simulated thread is, and the calls by which it waits for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace plumb::device::sim {

using Site = std::source_location;

struct BlockContext {
  int block_size = 0;
  int wave_size = 0;
  std::int64_t block_x = 0, block_y = 0;
  std::int64_t grid_x = 0, grid_y = 0;
};

struct ThreadContext {
  int thread = 0, lane = 0, wave = 0;
  BlockContext* block = nullptr;
};

// The simulated thread that this host thread is running; nullptr outside kernels.
extern constinit thread_local ThreadContext* current;

enum class WaveKind { sync, ballot, shuffle, shuffle_down, shuffle_xor };

std::uint64_t all_lanes();
void block_sync(const Site& site);
// Waits for the lanes of `mask`; returns the votes for a ballot, otherwise what `source_lane` gave.
std::uint64_t wave_operation(WaveKind kind, std::uint64_t mask, std::uint64_t value,
                             int source_lane, const Site& site);
// Ends the run with ErrorKind::invalid_argument.
[[noreturn]] void refuse_width(int width, const Site& site);
[[noreturn]] void refuse_alignment(const void* address, int bytes, const Site& site);

// One per PLUMB_SHARED in the source; its address is the array's identity.
struct SharedSite {
  const char* name;
  std::size_t bytes, alignment;
};
void* static_shared(const SharedSite& site);
void* dynamic_shared();

// Tells the checked build of an atomic update; of an exchange, that the old value does not matter.
void note_atomic(const void* address, std::size_t bytes, bool uses_old_value);

}  // namespace plumb::device::sim
