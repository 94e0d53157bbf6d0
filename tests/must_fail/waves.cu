// SPDX-License-Identifier: Apache-2.0
//
// Errors with wave operations: masks, exited lanes, lanes that meet at different lines of the
// source. Also right kernels, whose results the tests check.
#include "tests/must_fail/kernels.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_DEVICE std::int32_t wave_sum(std::int32_t value) {
  for (int delta = wave_size() / 2; delta > 0; delta /= 2)
    value += shuffle_xor(all_lanes(), value, delta);
  return value;
}

constexpr LaneMask kEvenLanes = 0x5555555555555555U;

}  // namespace

// Block b: data[b] = sum of the integers i < n with i % grid == b. Whole waves.
PLUMB_KERNEL void block_sum(std::int32_t* data, int n) {
  PLUMB_SHARED(std::int32_t, part, 32);
  std::int32_t sum = 0;
  for (int i = block_index_x() + thread_index() * grid_size_x(); i < n;
       i += block_size() * grid_size_x())
    sum += i;
  sum = wave_sum(sum);
  if (lane_index() == 0) part[wave_index()] = sum;
  block_sync();
  if (wave_index() > 0) return;
  sum = wave_sum(lane_index() < block_size() / wave_size() ? part[lane_index()] : 0);
  if (lane_index() == 0) data[block_index_x()] = sum;
}

PLUMB_KERNEL void wave_after_exit(std::int32_t*, int) {
  if (lane_index() == 0) return;
  block_sync();
  ballot(all_lanes(), true);  // lane 0 has returned
}

PLUMB_KERNEL void exit_in_wave(std::int32_t*, int) {
  if (lane_index() < 3) wave_sync(LaneMask{15});  // lane 3 does not come
}

PLUMB_KERNEL void lane_beyond_wave(std::int32_t*, int) { wave_sync(~LaneMask{0}); }

PLUMB_KERNEL void caller_not_in_mask(std::int32_t*, int) { wave_sync(LaneMask{1}); }

PLUMB_KERNEL void two_lines(std::int32_t* data, int) {
  if (lane_index() == 7)
    data[7] = shuffle(all_lanes(), lane_index(), 0);  // two lines: lane 7
  else
    data[0] = shuffle(all_lanes(), lane_index(), 0);  // two lines: the others
}

PLUMB_KERNEL void two_kinds(std::int32_t*, int) {
  if (lane_index() == 7)
    ballot(all_lanes(), true);  // two kinds: lane 7
  else
    wave_sync(all_lanes());  // two kinds: the others
}

PLUMB_KERNEL void two_masks(std::int32_t*, int) {
  wave_sync(lane_index() == 7 ? LaneMask{0xFF} : all_lanes());  // two masks
}

// Odd lanes do not wait for even ones.
PLUMB_KERNEL void odd_and_even_lanes(std::int32_t* data, int) {
  std::int32_t value = lane_index();
  if (lane_index() % 2 == 0) {
    for (int delta = 2; delta < wave_size(); delta *= 2)
      value += shuffle_xor(kEvenLanes & all_lanes(), value, delta);
  } else {
    value = shuffle_xor(~kEvenLanes & all_lanes(), value, 2);
  }
  data[thread_index()] = value;
}

// Lane 0 meets each other lane in turn. It must not overwrite a value that the other lane has not
// read.
PLUMB_KERNEL void overtaking(std::int32_t* data, int) {
  for (int other = 1; other < wave_size(); ++other)
    if (lane_index() == 0 || lane_index() == other)
      data[thread_index()] = shuffle(LaneMask{1} | LaneMask{1} << other, other * 100, 0);
}

PLUMB_KERNEL void group_shuffles(std::int32_t* data, int n) {
  std::int32_t* const out = data + thread_index() * 3;
  out[0] = shuffle(all_lanes(), lane_index(), 2, n);
  out[1] = shuffle_down(all_lanes(), lane_index(), 1, n);
  out[2] = shuffle_xor(all_lanes(), lane_index(), 1, n);
}

PLUMB_KERNEL void unnamed_source(std::int32_t* data, int) {
  if (lane_index() > 0) return;
  data[0] = shuffle(LaneMask{1}, 17, 1);
}

PLUMB_KERNEL void bad_width(std::int32_t* data, int n) { data[0] = shuffle(all_lanes(), 1, 0, n); }

PLUMB_KERNEL void wide_values(std::int32_t* data, int) {
  const double half = shuffle(all_lanes(), lane_index() + 0.5, 3);
  const std::int64_t large = shuffle(all_lanes(), std::int64_t{lane_index()} << 40, 5);
  const float single = shuffle(all_lanes(), static_cast<float>(lane_index()), 7);
  data[thread_index()] = half == 3.5 && large == std::int64_t{5} << 40 && single == 7.0F;
}

PLUMB_KERNEL void vote(std::int32_t* data, int) {
  const LaneMask votes = ballot(all_lanes(), lane_index() % 3 == 0);
  data[2 * thread_index()] = static_cast<std::int32_t>(votes & 0xFFFFFFFFU);
  data[2 * thread_index() + 1] = static_cast<std::int32_t>(votes >> 32);
}

// Lanes exchange values through shared memory, in pairs.
PLUMB_KERNEL void lane_pairs(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 1024);
  const LaneMask pair = LaneMask{3} << (lane_index() & ~1);
  for (int step = 0; step < 3; ++step) {
    part[thread_index()] = thread_index() + step;
    wave_sync(pair);
    data[thread_index()] = part[thread_index() ^ 1];
    wave_sync(pair);
  }
}

PLUMB_KERNEL void missing_wave_sync(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 1024);
  part[thread_index()] = 0;
  wave_sync(all_lanes());  // the only one
  part[thread_index()] = thread_index();
  data[thread_index()] = part[thread_index() ^ 1];
}

PLUMB_KERNEL void present_wave_sync(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 1024);
  part[thread_index()] = 0;
  wave_sync(all_lanes());
  part[thread_index()] = thread_index();
  wave_sync(all_lanes());  // needed
  data[thread_index()] = part[thread_index() ^ 1];
}

// Lanes 0 and 1 meet, and lanes 2 and 3; lane 0 then reads what lane 2 wrote.
PLUMB_KERNEL void wave_sync_of_others(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 4);
  if (thread_index() >= 4) return;
  part[thread_index()] = 0;
  wave_sync(LaneMask{15});
  part[thread_index()] = 1;
  wave_sync(LaneMask{3} << (lane_index() & ~1));  // in pairs
  if (lane_index() == 0) data[0] = part[2];
}

// Every lane takes part, but a shuffle orders registers only.
PLUMB_KERNEL void shuffle_for_wave_sync(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 1024);
  part[thread_index()] = 0;
  block_sync();
  part[thread_index()] = thread_index();
  data[0] = shuffle(all_lanes(), 1, 0) + part[thread_index() ^ 1];
}

// Lane 0 meets lane 1, then lane 1 meets lane 2, which reads what lane 0 wrote.
PLUMB_KERNEL void relay(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 1);
  if (lane_index() == 0) part[0] = 7;
  if (lane_index() < 2) wave_sync(LaneMask{3});
  if (lane_index() == 1 || lane_index() == 2) wave_sync(LaneMask{6});
  if (lane_index() == 2) data[0] = part[0];
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
