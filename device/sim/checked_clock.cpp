// SPDX-License-Identifier: Apache-2.0
//
// The clocks of a wave start from zero in every segment; they are cleared when first used in it.
#include "device/sim/checked_clock.h"

#include <algorithm>
#include <bit>

namespace plumb::device::sim {

namespace {

constexpr std::uint32_t kLatestClock = (1U << 21) - 1;  // from here on, accesses count as ordered

}  // namespace

void Clock::start_kernel(int block_size, int wave_size) {
  wave_size_ = wave_size;
  blocks_.clear();
  known_.resize(block_size);
  wave_segment_.assign((block_size + wave_size - 1) / wave_size, 0);
}

void Clock::start_block(std::int64_t x, std::int64_t y) { blocks_.push_back({++segment_, x, y}); }

void Clock::pass_wave_sync(int wave, std::uint64_t lanes) {
  const auto first = known_.begin() + wave * wave_size_;
  if (wave_segment_[wave] != segment_) {
    const auto last = known_.end() - first < wave_size_ ? known_.end() : first + wave_size_;
    std::fill(first, last, Lanes{});
    wave_segment_[wave] = segment_;
  }
  Lanes latest{};
  for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    Lanes& mine = first[lane];
    if (mine[lane] < kLatestClock) ++mine[lane];
    for (int i = 0; i < kMostLanes; ++i) latest[i] = std::max(latest[i], mine[i]);
  }
  for (std::uint64_t left = lanes; left != 0; left &= left - 1)
    first[std::countr_zero(left)] = latest;
}

std::uint32_t Clock::completed(int thread, int lane) const {
  return wave_segment_[thread / wave_size_] == segment_ ? known_[thread][lane] : 0;
}

Stamp Clock::now(int thread, bool atomic) const {
  const std::uint32_t clock = completed(thread, thread % wave_size_) + 1;
  Stamp stamp;
  stamp.segment = segment_;
  stamp.thread = static_cast<std::uint32_t>(thread) & 0x3FFU;
  stamp.atomic = atomic;
  stamp.clock = std::min(clock, kLatestClock) & kLatestClock;
  return stamp;
}

bool Clock::is_before(const Stamp& stamp, int running_thread, std::uint32_t floor) const {
  if (stamp.segment < floor) return true;
  if (stamp.segment < first_segment_of_block()) return false;
  if (stamp.segment < segment_) return true;
  const auto thread = static_cast<int>(stamp.thread);
  if (thread == running_thread) return true;
  if (thread / wave_size_ != running_thread / wave_size_) return false;
  return completed(running_thread, thread % wave_size_) >= stamp.clock;
}

bool Clock::may_meet(const Stamp& a, const Stamp& b) const {
  const auto wave_of = [this](const Stamp& stamp) {
    return static_cast<int>(stamp.thread) / wave_size_;
  };
  return a.segment == b.segment && wave_of(a) == wave_of(b);
}

const Clock::BlockStart& Clock::block_of(const Stamp& stamp) const {
  const auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), stamp.segment,
      [](std::uint32_t segment, const BlockStart& block) { return segment < block.segment; });
  return *(after - 1);
}

}  // namespace plumb::device::sim
