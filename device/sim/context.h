// SPDX-License-Identifier: Apache-2.0
//
// Shared by the inline half of the simulator (simt_back_end.h) and the compiled half: the running
// simulated thread, and the calls by which it waits for others.
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
// Waits for the lanes of `mask`. Returns the votes of a ballot, else the value of `source_lane`.
std::uint64_t wave_operation(WaveKind kind, std::uint64_t mask, std::uint64_t value,
                             int source_lane, const Site& site);
// Both end the run with ErrorKind::invalid_argument.
[[noreturn]] void refuse_width(int width, const Site& site);
[[noreturn]] void refuse_alignment(const void* address, int bytes, const Site& site);

// One per PLUMB_SHARED in the source. Its address identifies the array.
struct SharedSite {
  const char* name;
  std::size_t bytes, alignment;
};
void* static_shared(const SharedSite& site);
void* dynamic_shared();

// Tells the checked build of an atomic update. An exchange does not use the old value, so that it
// may overwrite memory that is not initialised.
void note_atomic(const void* address, std::size_t bytes, bool uses_old_value);

}  // namespace plumb::device::sim
