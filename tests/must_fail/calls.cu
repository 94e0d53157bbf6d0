// SPDX-License-Identifier: Apache-2.0
//
// Finds test kernels by name, in the plain and in the checked build.
#include <stdexcept>
#include <string>

#include "tests/must_fail/kernels.h"

#define PLUMB_TEST_KERNEL(kernel) {#kernel, &call_of<kernel>}

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

struct Entry {
  std::string_view name;
  sim::KernelCall (*call)(const char* name, const sim::LaunchShape& shape, std::int32_t* data,
                          int n);
};

template <TestKernel* kernel>
sim::KernelCall call_of(const char* name, const sim::LaunchShape& shape, std::int32_t* data,
                        int n) {
  return make_call<kernel>(name, shape, data, n);
}

constexpr Entry kEntries[] = {
    PLUMB_TEST_KERNEL(missing_barrier),
    PLUMB_TEST_KERNEL(present_barrier),
    PLUMB_TEST_KERNEL(divergent_barrier),
    PLUMB_TEST_KERNEL(barrier_against_wave),
    PLUMB_TEST_KERNEL(early_exit),
    PLUMB_TEST_KERNEL(many_barriers),
    PLUMB_TEST_KERNEL(count_blocks),
    PLUMB_TEST_KERNEL(nothing),
    PLUMB_TEST_KERNEL(throwing),
    PLUMB_TEST_KERNEL(block_sum),
    PLUMB_TEST_KERNEL(wave_after_exit),
    PLUMB_TEST_KERNEL(exit_in_wave),
    PLUMB_TEST_KERNEL(lane_beyond_wave),
    PLUMB_TEST_KERNEL(caller_not_in_mask),
    PLUMB_TEST_KERNEL(two_lines),
    PLUMB_TEST_KERNEL(two_kinds),
    PLUMB_TEST_KERNEL(two_masks),
    PLUMB_TEST_KERNEL(odd_and_even_lanes),
    PLUMB_TEST_KERNEL(overtaking),
    PLUMB_TEST_KERNEL(group_shuffles),
    PLUMB_TEST_KERNEL(unnamed_source),
    PLUMB_TEST_KERNEL(bad_width),
    PLUMB_TEST_KERNEL(wide_values),
    PLUMB_TEST_KERNEL(vote),
    PLUMB_TEST_KERNEL(lane_pairs),
    PLUMB_TEST_KERNEL(missing_wave_sync),
    PLUMB_TEST_KERNEL(present_wave_sync),
    PLUMB_TEST_KERNEL(wave_sync_of_others),
    PLUMB_TEST_KERNEL(shuffle_for_wave_sync),
    PLUMB_TEST_KERNEL(relay),
    PLUMB_TEST_KERNEL(misaligned_load),
    PLUMB_TEST_KERNEL(misaligned_store),
    PLUMB_TEST_KERNEL(vector_past_the_end),
    PLUMB_TEST_KERNEL(stray_write),
    PLUMB_TEST_KERNEL(stray_read),
    PLUMB_TEST_KERNEL(stray_shared_write),
    PLUMB_TEST_KERNEL(uninitialized_shared),
    PLUMB_TEST_KERNEL(shared_too_large),
    PLUMB_TEST_KERNEL(two_shared_arrays),
    PLUMB_TEST_KERNEL(dynamic_histogram),
    PLUMB_TEST_KERNEL(same_value),
    PLUMB_TEST_KERNEL(block_race),
    PLUMB_TEST_KERNEL(block_atomics),
    PLUMB_TEST_KERNEL(mixed_atomics),
    PLUMB_TEST_KERNEL(neighbouring_bytes),
    PLUMB_TEST_KERNEL(read_then_write),
    PLUMB_TEST_KERNEL(many_readers),
    PLUMB_TEST_KERNEL(constant_table),
    PLUMB_TEST_KERNEL(struct_arguments),
};

}  // namespace

sim::KernelCall test_call(std::string_view kernel, const sim::LaunchShape& shape,
                          std::int32_t* data, int n) {
  for (const Entry& entry : kEntries)
    if (entry.name == kernel) return entry.call(entry.name.data(), shape, data, n);
  throw std::invalid_argument("no test kernel " + std::string(kernel));
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
