// SPDX-License-Identifier: Apache-2.0
//
// Small kernels with an error that the simulator must refuse, and correct twins, which it must
// accept. Each works on n integers in `data`; the kernel's comment says how many it needs.
#pragma once

#include <string_view>

#include "device/simt.h"

#define PLUMB_TEST_KERNELS(set)                                                     \
  namespace plumb::device::set {                                                    \
  sim::KernelCall test_call(std::string_view kernel, const sim::LaunchShape& shape, \
                            std::int32_t* data, int n);                             \
  }
PLUMB_TEST_KERNELS(kernels)
PLUMB_TEST_KERNELS(checked_kernels)

namespace plumb::device::PLUMB_KERNEL_SET {

using TestKernel = void(std::int32_t* data, int n);

// barriers.cu
TestKernel missing_barrier, present_barrier, divergent_barrier, barrier_against_wave, early_exit,
    many_barriers, count_blocks, nothing, throwing;
// waves.cu
TestKernel block_sum, wave_after_exit, exit_in_wave, lane_beyond_wave, caller_not_in_mask,
    two_lines, two_kinds, two_masks, odd_and_even_lanes, overtaking, group_shuffles, unnamed_source,
    bad_width, wide_values, vote, lane_pairs, missing_wave_sync, present_wave_sync,
    wave_sync_of_others, shuffle_for_wave_sync, relay;
// memory.cu
TestKernel misaligned_load, misaligned_store, vector_past_the_end, stray_write, stray_read,
    stray_shared_write, uninitialized_shared, shared_too_large, two_shared_arrays,
    dynamic_histogram, same_value, block_race, block_atomics, mixed_atomics, neighbouring_bytes,
    read_then_write, many_readers, constant_table, struct_arguments;

}  // namespace plumb::device::PLUMB_KERNEL_SET
