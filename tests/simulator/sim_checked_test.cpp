// SPDX-License-Identifier: Apache-2.0
//
// The checked build of kernels finds races, accesses out of bounds and reads of uninitialised
// memory. For each of these there is a right kernel that passes.
#include "tests/support/sim_grid.h"

namespace plumb::device::sim_test {
namespace sim_checked_test {

constexpr Order kCheckedOrders[] = {Order::forward, Order::reverse, Order::random};

Launch checked(const std::string& kernel, const sim::LaunchShape& shape, int n = 0) {
  return {.kernel = kernel, .shape = shape, .n = n, .checked = true};
}

// Expects the fault in every thread order.
void expect_fault_in_orders(Launch launch, ErrorKind fault, const std::vector<std::string>& parts) {
  for (const Order order : kCheckedOrders) {
    launch.order = order;
    expect_fault(launch, fault, parts);
  }
}

void expect_legal(Launch launch) {
  for (const int wave_size : {32, 64})
    for (const Order order : kCheckedOrders) {
      launch.order = order;
      launch.wave_size = wave_size;
      EXPECT_NO_THROW(launch.run());
    }
}

TEST(SimChecked, CorrectKernelsPass) {
  expect_legal(checked("block_sum", blocks(7, 256), 10000));
  expect_legal(checked("present_barrier", blocks(1, 256), 256));
  expect_legal(checked("early_exit", blocks(1, 100), 70));
  expect_legal(checked("odd_and_even_lanes", blocks(1, 64)));
  expect_legal(checked("group_shuffles", blocks(1, 128), 16));
  expect_legal(checked("wide_values", blocks(1, 64)));
  expect_legal(checked("two_shared_arrays", blocks(1, 64, 256)));
  expect_legal(checked("constant_table", blocks(1, 64)));
  expect_legal(checked("struct_arguments", blocks(1, 64), 3));
}

TEST(SimChecked, GivesTheSameResultAsThePlainBuild) {
  Launch launch{.kernel = "block_sum", .shape = blocks(7, 256), .n = 10000};
  const auto plain = launch.run();
  launch.checked = true;
  EXPECT_EQ(plain, launch.run());
}

TEST(SimChecked, MissingBarrierIsARace) {
  expect_fault_in_orders(checked("missing_barrier", blocks(1, 64), 64), ErrorKind::race,
                         {"kernel missing_barrier", "part", "block (0, 0) thread ",
                          "nothing orders", "after " + line_of("barriers.cu", "the only one")});
}

TEST(SimChecked, DisabledBarrierIsARace) {
  Launch launch = checked("present_barrier", blocks(1, 64), 64);
  launch.disabled_barriers = {line_of("barriers.cu", "needed")};
  expect_fault_in_orders(launch, ErrorKind::race, {"kernel present_barrier", "part"});
}

TEST(SimChecked, MissingWaveSyncIsARace) {
  expect_fault_in_orders(
      checked("missing_wave_sync", blocks(1, 64)), ErrorKind::race,
      {"kernel missing_wave_sync", "part", "after " + line_of("waves.cu", "the only one")});
  expect_legal(checked("present_wave_sync", blocks(1, 64)));
}

TEST(SimChecked, WaveSyncOrdersOnlyTheLanesThatTakePart) {
  expect_legal(checked("lane_pairs", blocks(1, 64)));
  expect_fault_in_orders(checked("wave_sync_of_others", blocks(1, 64)), ErrorKind::race,
                         {"kernel wave_sync_of_others", "byte 8 of part", "lane 0)", "lane 2)"});
}

TEST(SimChecked, WaveSyncsOrderInChains) { expect_legal(checked("relay", blocks(1, 32))); }

TEST(SimChecked, ShuffleOrdersNoMemory) {
  expect_fault_in_orders(checked("shuffle_for_wave_sync", blocks(1, 32)), ErrorKind::race,
                         {"kernel shuffle_for_wave_sync", "part"});
}

TEST(SimChecked, OneValueFromTwoThreadsIsARace) {
  expect_fault_in_orders(checked("same_value", blocks(1, 2)), ErrorKind::race,
                         {"kernel same_value", "write of 4 bytes at byte 0 of allocation data",
                          "thread 0 ", "thread 1 "});
}

TEST(SimChecked, NothingOrdersTheBlocksOfALaunch) {
  expect_fault_in_orders(checked("block_race", blocks(2, 32)), ErrorKind::race,
                         {"kernel block_race", "block (0, 0)", "block (1, 0)", "allocation data"});
  expect_legal(checked("block_race", blocks(1, 32)));
}

TEST(SimChecked, AtomicsRaceWithPlainAccessesOnly) {
  expect_legal(checked("block_atomics", blocks(5, 100)));
  expect_legal(checked("dynamic_histogram", blocks(1, 8, 16), 4));
  expect_fault_in_orders(checked("mixed_atomics", blocks(1, 3)), ErrorKind::race,
                         {"kernel mixed_atomics", "atomic update", "allocation data"});
}

TEST(SimChecked, LateWriteRacesWithEarlierReaders) {
  expect_fault_in_orders(checked("read_then_write", blocks(1, 8)), ErrorKind::race,
                         {"kernel read_then_write", "allocation data"});
  expect_fault_in_orders(checked("many_readers", blocks(1, 128), 100), ErrorKind::race,
                         {"kernel many_readers", "byte 0 of allocation data"});
  Launch one_wave = checked("many_readers", blocks(1, 32), 100);
  EXPECT_NO_THROW(one_wave.run());
}

TEST(SimChecked, NeighbouringBytesDoNotRace) {
  expect_legal(checked("neighbouring_bytes", blocks(1, 256), 64));
}

TEST(SimChecked, StrayAccessIsOutOfBounds) {
  for (const int n : {4096, -1}) {
    const std::string place = "at byte " + std::to_string(4 * n) + " of allocation data";
    expect_fault(checked("stray_write", blocks(1, 1), n), ErrorKind::out_of_bounds,
                 {"kernel stray_write", "write of 4 bytes", place, "16384 bytes"});
    expect_fault(checked("stray_read", blocks(1, 1), n), ErrorKind::out_of_bounds,
                 {"kernel stray_read", "read of 4 bytes", place});
  }
  expect_fault(checked("stray_write", blocks(1, 1), 4096 + kGuard), ErrorKind::out_of_bounds,
               {"no memory of the device"});
  expect_legal(checked("stray_write", blocks(1, 1), 4095));
}

TEST(SimChecked, AVectorEndsWithItsAllocation) {
  Launch launch = checked("vector_past_the_end", blocks(1, 1), 4092);
  expect_legal(launch);
  launch.elements = 4094;
  expect_fault(launch, ErrorKind::out_of_bounds, {"read of 16 bytes"});
}

TEST(SimChecked, StraySharedAccessIsOutOfBounds) {
  for (const int n : {16, -1})
    expect_fault(checked("stray_shared_write", blocks(1, 1), n), ErrorKind::out_of_bounds,
                 {"kernel stray_shared_write", "shared memory", "part has bytes"});
  expect_legal(checked("stray_shared_write", blocks(1, 1), 15));
}

TEST(SimChecked, FreedMemoryIsRecognised) {
  Launch launch = checked("stray_write", blocks(1, 1), 3);
  launch.freed = true;
  expect_fault(launch, ErrorKind::use_after_free,
               {"kernel stray_write", "allocation data", "freed"});
}

TEST(SimChecked, SharedMemoryNeverWrittenMayNotBeRead) {
  expect_fault_in_orders(checked("uninitialized_shared", blocks(2, 16)),
                         ErrorKind::uninitialized_read,
                         {"kernel uninitialized_shared", "read of 4 bytes", "of part"});
  expect_legal(checked("uninitialized_shared", blocks(1, 8)));
}

TEST(SimChecked, FindsTheBarrierFaultsToo) {
  expect_fault_in_orders(checked("divergent_barrier", blocks(1, 64)), ErrorKind::divergent_barrier,
                         {line_of("barriers.cu", "divergent: thread 5"),
                          line_of("barriers.cu", "divergent: the others")});
  expect_fault_in_orders(checked("wave_after_exit", blocks(1, 32)), ErrorKind::exited_lane, {});
}

}  // namespace sim_checked_test
}  // namespace plumb::device::sim_test
