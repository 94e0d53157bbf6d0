// SPDX-License-Identifier: Apache-2.0
//
// The order of the memory accesses of one launch. block_sync orders all accesses of a block.
// wave_sync orders those of the lanes that took part, by vector clocks; shuffles and ballots move
// values but order no memory. Nothing orders accesses of different blocks. Launches run one after
// the other.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "device/sim/grid/wave.h"

namespace plumb::device::sim {

// Who accessed memory, and when. `segment` counts the spans between block_syncs over all blocks
// that this host thread has run since restart(), so that it also identifies the block.
struct Stamp {
  std::uint32_t segment = 0;  // 0: no access
  std::uint32_t thread : 10 = 0;
  std::uint32_t atomic : 1 = 0;
  std::uint32_t clock : 21 = 0;  // wave_syncs of the lane in this segment, plus one
};
static_assert(sizeof(Stamp) == 8);

class Clock {
 public:
  void start_kernel(int block_size, int wave_size);
  void start_block(std::int64_t x, std::int64_t y);
  void pass_block_sync() { ++segment_; }
  void pass_wave_sync(int wave, std::uint64_t lanes);

  Stamp now(int thread, bool atomic) const {
    const std::uint32_t clock = completed(thread, thread & (wave_size_ - 1)) + 1;
    Stamp stamp;
    stamp.segment = segment_;
    stamp.thread = static_cast<std::uint32_t>(thread) & 0x3FFU;
    stamp.atomic = atomic;
    stamp.clock = clock < kLatestClock ? clock & kLatestClock : kLatestClock;
    return stamp;
  }
  // Whether the access of `stamp` comes before everything that the running thread does now. True
  // for all segments before `floor`.
  bool is_before(const Stamp& stamp, int running_thread, std::uint32_t floor) const {
    if (stamp.segment < floor) return true;
    if (stamp.segment < first_segment_of_block()) return false;
    if (stamp.segment < segment_) return true;
    const auto thread = static_cast<int>(stamp.thread);
    if (thread == running_thread) return true;
    if (wave_of(thread) != wave_of(running_thread)) return false;
    return completed(running_thread, thread & (wave_size_ - 1)) >= stamp.clock;
  }

  // Whether both accesses are of one wave and one segment, so that a wave_sync may still order them
  // before later accesses.
  bool may_meet(const Stamp& a, const Stamp& b) const {
    return a.segment == b.segment &&
           wave_of(static_cast<int>(a.thread)) == wave_of(static_cast<int>(b.thread));
  }

  std::uint32_t first_segment_of_kernel() const { return blocks_.front().segment; }
  std::uint32_t first_segment_of_block() const { return blocks_.back().segment; }
  // True when the 32-bit numbers of segments are nearly used up. Stamps would repeat after that, so
  // all kept stamps must be forgotten before restart().
  bool is_worn_out() const { return segment_ > 0xF0000000U; }
  void restart() { segment_ = 0; }

  struct BlockStart {
    std::uint32_t segment;
    std::int64_t x, y;
  };
  const BlockStart& block_of(const Stamp& stamp) const;

 private:
  using Lanes = std::array<std::uint32_t, kMostLanes>;
  // Largest clock that a stamp can hold. Accesses after it count as ordered.
  static constexpr std::uint32_t kLatestClock = (1U << 21) - 1;
  int wave_of(int thread) const { return thread >> wave_bits_; }
  std::uint32_t completed(int thread, int lane) const {
    return wave_segment_[wave_of(thread)] == segment_ ? known_[thread][lane] : 0;
  }

  int wave_size_ = 0, wave_bits_ = 0;  // a power of two, and its logarithm
  std::uint32_t segment_ = 0;
  std::vector<BlockStart> blocks_;
  std::vector<Lanes> known_;  // [thread][lane]: wave_syncs of `lane` that `thread` knows of
  std::vector<std::uint32_t> wave_segment_;  // segment in which the wave's clocks were last used
};

}  // namespace plumb::device::sim
