// SPDX-License-Identifier: Apache-2.0
//
// The clocks of a wave start from zero in every segment. They are cleared at their first use in it.
#include "device/sim/checked/checked_clock.h"

#include <algorithm>
#include <bit>

namespace plumb::device::sim {

void Clock::start_kernel(int block_size, int wave_size) {
  wave_size_ = wave_size;
  wave_bits_ = std::countr_zero(static_cast<unsigned>(wave_size));
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
    for (int i = 0; i < wave_size_; ++i) latest[i] = std::max(latest[i], mine[i]);
  }
  for (std::uint64_t left = lanes; left != 0; left &= left - 1)
    first[std::countr_zero(left)] = latest;
}

const Clock::BlockStart& Clock::block_of(const Stamp& stamp) const {
  const auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), stamp.segment,
      [](std::uint32_t segment, const BlockStart& block) { return segment < block.segment; });
  return *(after - 1);
}

}  // namespace plumb::device::sim
