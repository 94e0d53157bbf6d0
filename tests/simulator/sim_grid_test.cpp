// SPDX-License-Identifier: Apache-2.0
//
// The simulated grid: which kernels must run and give the same bits in every thread order, and
// which must be refused with a message that names kernel, threads and source lines. The kernels are
// in tests/must_fail.
#include "tests/support/sim_grid.h"

#include <algorithm>
#include <thread>

#include "device/sim/grid/shared_memory.h"

namespace plumb::device::sim_test {
namespace sim_grid_test {

constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};

bool any_contains(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST(SimGrid, ReductionIsTheSameInEveryOrderAndForBothWaveSizes) {
  for (const int wave_size : {32, 64})
    for (const Order order : kOrders)
      for (const std::uint64_t seed : {1, 2, 3}) {
        const auto data = Launch{.kernel = "block_sum",
                                 .shape = blocks(7, 256),
                                 .n = 10000,
                                 .wave_size = wave_size,
                                 .order = order,
                                 .seed = seed}
                              .run();
        for (int b = 0; b < 7; ++b) {
          std::int32_t expected = 0;
          for (int i = b; i < 10000; i += 7) expected += i;
          EXPECT_EQ(data[b], expected) << "block " << b << ", wave size " << wave_size;
        }
      }
}

TEST(SimGrid, EveryBlockRunsOnceInEveryOrder) {
  for (const Order order : kOrders)
    for (const int columns : {1, 2, 3, 5, 64, 100, 1023}) {
      const auto data =
          Launch{.kernel = "count_blocks", .shape = {columns, 3, 2, 0}, .order = order}.run();
      for (int i = 0; i < 4096; ++i) EXPECT_EQ(data[i], i < 3 * columns ? 1 : 0);
    }
}

TEST(SimGrid, MissingBarrierMakesTheResultDependOnTheOrder) {
  Launch launch{.kernel = "missing_barrier", .shape = blocks(1, 64), .n = 64};
  const auto forward = launch.run();
  launch.order = Order::reverse;
  const auto reverse = launch.run();
  launch.order = Order::random;
  const auto random = launch.run();
  EXPECT_NE(forward, reverse);
  EXPECT_NE(forward, random);
  EXPECT_NE(reverse, random);
  EXPECT_EQ(random, launch.run());
  launch.seed = 2;
  EXPECT_NE(random, launch.run());
}

TEST(SimGrid, DisabledBarrierDoesNothing) {
  Launch launch{.kernel = "present_barrier", .shape = blocks(1, 64), .n = 64};
  const auto right = launch.run();
  const std::string needed = line_of("barriers.cu", "needed");
  launch.disabled_barriers = {needed};
  EXPECT_NE(launch.run(), right);
  launch.disabled_barriers = {needed + " present_barrier"};
  EXPECT_NE(launch.run(), right);
  launch.disabled_barriers = {needed + " another_kernel"};
  EXPECT_EQ(launch.run(), right);
}

TEST(SimGrid, DisabledWaveSyncDoesNothing) {
  Launch launch{.kernel = "present_wave_sync", .shape = blocks(1, 64)};
  const auto right = launch.run();
  launch.disabled_barriers = {line_of("waves.cu", "needed")};
  EXPECT_NE(launch.run(), right);
}

TEST(SimGrid, ExecutedBarriersAreListedUntilReset) {
  sim::reset_executed_barriers();
  Launch{.kernel = "present_barrier", .shape = blocks(1, 64), .n = 64}.run();
  Launch{.kernel = "present_wave_sync", .shape = blocks(1, 64)}.run();
  const auto sites = sim::executed_barriers();
  EXPECT_EQ(sites.size(), 4U);
  EXPECT_TRUE(any_contains(sites, line_of("barriers.cu", "needed") + " present_barrier"));
  EXPECT_TRUE(any_contains(sites, line_of("waves.cu", "needed") + " present_wave_sync"));
  sim::reset_executed_barriers();
  EXPECT_TRUE(sim::executed_barriers().empty());
}

TEST(SimGrid, ThreadsThatReturnedLeaveAllBarriers) {
  for (const Order order : kOrders) {
    const auto data =
        Launch{.kernel = "early_exit", .shape = blocks(2, 100), .n = 70, .order = order}.run();
    for (int t = 0; t < 100; ++t) EXPECT_EQ(data[t], t < 70 ? (t + 1) % 70 : 0);
  }
}

TEST(SimGrid, BarriersAtTwoLinesAreDivergent) {
  for (const Order order : kOrders)
    expect_fault({.kernel = "divergent_barrier", .shape = blocks(1, 64), .order = order},
                 ErrorKind::divergent_barrier,
                 {"kernel divergent_barrier", "block (0, 0)", "thread 5 ",
                  line_of("barriers.cu", "divergent: thread 5"),
                  line_of("barriers.cu", "divergent: the others")});
}

TEST(SimGrid, BarrierAgainstWaveOperationIsADeadlock) {
  for (const Order order : kOrders)
    expect_fault({.kernel = "barrier_against_wave", .shape = blocks(1, 32), .order = order},
                 ErrorKind::deadlock,
                 {"kernel barrier_against_wave", "block (0, 0)", "31 threads", "1 thread ",
                  line_of("barriers.cu", "deadlock: thread 5"),
                  line_of("barriers.cu", "deadlock: the others"), "for lanes 5"});
}

TEST(SimGrid, WaveOperationMayNotNameAnExitedLane) {
  for (const Order order : kOrders) {
    expect_fault({.kernel = "wave_after_exit", .shape = blocks(1, 32), .order = order},
                 ErrorKind::exited_lane,
                 {"kernel wave_after_exit", "names lanes 0,", "returned",
                  line_of("waves.cu", "lane 0 has returned")});
    expect_fault(
        {.kernel = "exit_in_wave", .shape = blocks(1, 32), .order = order}, ErrorKind::exited_lane,
        {"kernel exit_in_wave", "3", "returned", line_of("waves.cu", "lane 3 does not come")});
  }
}

TEST(SimGrid, WaveOperationMayNotNameALaneThatDoesNotExist) {
  expect_fault({.kernel = "lane_beyond_wave", .shape = blocks(1, 32)}, ErrorKind::exited_lane,
               {"kernel lane_beyond_wave", "lanes 32-63", "does not have"});
  expect_fault({.kernel = "lane_beyond_wave", .shape = blocks(1, 40), .wave_size = 64},
               ErrorKind::exited_lane, {"lanes 40-63"});
  EXPECT_NO_THROW(
      (Launch{.kernel = "lane_beyond_wave", .shape = blocks(1, 128), .wave_size = 64}.run()));
}

TEST(SimGrid, CallerHasToBeInItsMask) {
  expect_fault({.kernel = "caller_not_in_mask", .shape = blocks(1, 32)},
               ErrorKind::invalid_argument,
               {"kernel caller_not_in_mask", "thread 1 ", "waves.cu:"});
}

TEST(SimGrid, LanesThatMeetInDifferentOperationsAreDivergent) {
  for (const Order order : kOrders) {
    expect_fault({.kernel = "two_lines", .shape = blocks(1, 32), .order = order},
                 ErrorKind::divergent_barrier,
                 {"kernel two_lines", line_of("waves.cu", "two lines: lane 7"),
                  line_of("waves.cu", "two lines: the others")});
    expect_fault({.kernel = "two_kinds", .shape = blocks(1, 32), .order = order},
                 ErrorKind::divergent_barrier,
                 {"kernel two_kinds", "ballot at " + line_of("waves.cu", "two kinds: lane 7"),
                  "wave_sync at " + line_of("waves.cu", "two kinds: the others")});
    expect_fault({.kernel = "two_masks", .shape = blocks(1, 32), .order = order},
                 ErrorKind::divergent_barrier,
                 {"kernel two_masks", line_of("waves.cu", "two masks"), "lanes 0-7", "lanes 0-31"});
  }
}

TEST(SimGrid, WaveOperationWaitsForTheLanesOfItsMaskOnly) {
  for (const Order order : kOrders) {
    const auto data =
        Launch{
            .kernel = "odd_and_even_lanes", .shape = blocks(1, 64), .wave_size = 64, .order = order}
            .run();
    for (int t = 0; t < 64; ++t) EXPECT_EQ(data[t], t % 2 == 0 ? 32 * 31 : t ^ 2);
  }
}

TEST(SimGrid, LaneInTheNextOperationDoesNotDisturbTheOneBefore) {
  for (const Order order : kOrders) {
    const auto data = Launch{.kernel = "overtaking", .shape = blocks(1, 32), .order = order}.run();
    for (int t = 1; t < 32; ++t) EXPECT_EQ(data[t], t * 100);
  }
}

TEST(SimGrid, ShufflesStayWithinTheirWidth) {
  for (const int width : {1, 2, 4, 8, 16, 32, 64}) {
    const auto data =
        Launch{.kernel = "group_shuffles", .shape = blocks(1, 128), .n = width, .wave_size = 64}
            .run();
    for (int t = 0; t < 128; ++t) {
      const int lane = t % 64;
      const int group = lane / width * width;
      EXPECT_EQ(data[3 * t], group + 2 % width);
      EXPECT_EQ(data[3 * t + 1], lane + 1 < group + width ? lane + 1 : lane);
      EXPECT_EQ(data[3 * t + 2], (lane ^ 1) < group + width ? lane ^ 1 : lane);
    }
  }
}

TEST(SimGrid, ShuffleWidthIsAPowerOfTwoUpToTheWave) {
  for (const int width : {-1, 0, 3, 64})
    expect_fault({.kernel = "bad_width", .shape = blocks(1, 32), .n = width},
                 ErrorKind::invalid_argument, {"kernel bad_width", "waves.cu:"});
}

TEST(SimGrid, AVectorStartsAtAMultipleOfSixteenBytes) {
  for (const std::string kernel : {"misaligned_load", "misaligned_store"}) {
    for (const int n : {1, 2, 3}) {
      expect_fault({.kernel = kernel, .shape = blocks(1, 1), .n = n}, ErrorKind::invalid_argument,
                   {"kernel " + kernel, "memory.cu:", std::to_string(4 * n) + " bytes past"});
    }
    EXPECT_NO_THROW((Launch{.kernel = kernel, .shape = blocks(1, 1), .n = 4}.run())) << kernel;
  }
}

TEST(SimGrid, ShuffleFromAnUnnamedLaneGivesPoison) {
  const auto data = Launch{.kernel = "unnamed_source", .shape = blocks(1, 32)}.run();
  EXPECT_EQ(data[0], 0x7FF77FF7);
}

TEST(SimGrid, ShufflesCarryFourAndEightBytes) {
  const auto data = Launch{.kernel = "wide_values", .shape = blocks(1, 64)}.run();
  for (int t = 0; t < 64; ++t) EXPECT_EQ(data[t], 1);
}

TEST(SimGrid, BallotOfAPartialWaveHoldsItsLanesOnly) {
  const auto data = Launch{.kernel = "vote", .shape = blocks(1, 64 + 37), .wave_size = 64}.run();
  const std::uint64_t whole = 0x9249249249249249U;
  for (int t = 0; t < 64 + 37; ++t) {
    const std::uint64_t votes = t < 64 ? whole : whole & ((std::uint64_t{1} << 37) - 1);
    EXPECT_EQ(static_cast<std::uint32_t>(data[2 * t]), votes & 0xFFFFFFFFU);
    EXPECT_EQ(static_cast<std::uint32_t>(data[2 * t + 1]), votes >> 32);
  }
}

TEST(SimGrid, SharedArraysAreSharedByFunctionAndApart) {
  for (const Order order : kOrders) {
    const auto data =
        Launch{.kernel = "two_shared_arrays", .shape = blocks(3, 64, 256), .order = order}.run();
    for (int t = 0; t < 64; ++t) EXPECT_EQ(data[t], t + 1000 + 10000 * ((t + 2) % 64));
  }
}

TEST(SimGrid, SharedMemoryStartsAsPoisonInEveryBlock) {
  const auto data = Launch{.kernel = "uninitialized_shared", .shape = blocks(2, 16)}.run();
  for (int t = 0; t < 16; ++t) EXPECT_EQ(data[t], t < 8 ? 0 : 0x7FF77FF7);
  const auto as_float = std::bit_cast<float>(data[15]);
  EXPECT_NE(as_float, as_float);
}

TEST(SimGrid, SharedMemoryHasALimit) {
  const Launch fits{.kernel = "shared_too_large", .shape = blocks(1, 32, 9152)};
  EXPECT_NO_THROW(fits.run());
  expect_fault({.kernel = "shared_too_large", .shape = blocks(1, 32, 9153)},
               ErrorKind::launch_limits,
               {"kernel shared_too_large", "large", "40000", "9153", "49152"});
  expect_fault({.kernel = "nothing", .shape = blocks(1, 32, 49153)}, ErrorKind::launch_limits,
               {"kernel nothing", "49153"});
}

TEST(SimGrid, BlocksAndGridsHaveLimits) {
  for (const sim::LaunchShape& shape :
       {blocks(1, 0), blocks(1, 1025), blocks(0, 1), blocks(std::int64_t{1} << 31, 1),
        sim::LaunchShape{1, 0, 1, 0}, sim::LaunchShape{1, 65536, 1, 0}})
    expect_fault({.kernel = "nothing", .shape = shape}, ErrorKind::launch_limits,
                 {"kernel nothing"});
  EXPECT_NO_THROW((Launch{.kernel = "nothing", .shape = {2, 65535, 1, 0}}.run()));
}

TEST(SimGrid, AtomicsReturnTheOldValueAndLoseNothing) {
  for (const Order order : kOrders) {
    const auto data =
        Launch{.kernel = "block_atomics", .shape = blocks(5, 100), .order = order}.run();
    EXPECT_EQ(data[0], 500);
    EXPECT_EQ(data[1], 499);
    EXPECT_EQ(static_cast<std::uint32_t>(data[2]), 0x80000000U + 99);
    EXPECT_EQ(data[3], 5);
  }
  const auto bins = Launch{.kernel = "dynamic_histogram", .shape = blocks(1, 8, 16), .n = 4}.run();
  EXPECT_EQ(std::vector(bins.begin(), bins.begin() + 4), (std::vector{4, 4, 0, 0}));
}

TEST(SimGrid, ExceptionsOfAKernelReachTheCaller) {
  for (const Order order : kOrders) {
    const Launch launch{.kernel = "throwing", .shape = blocks(1, 256), .n = 100, .order = order};
    EXPECT_THROW(launch.run(), std::runtime_error);
    EXPECT_EQ((Launch{.kernel = "early_exit", .shape = blocks(1, 256), .n = 9}.run()[8]), 0);
  }
}

TEST(SimGrid, HostThreadsRunGridsSideBySide) {
  std::vector<std::int32_t> sums(4, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&sums, i] {
      for (int round = 0; round < 20; ++round)
        sums[i] += Launch{.kernel = "block_sum", .shape = blocks(1, 256), .n = 1000}.run()[0];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, std::vector(4, 20 * 999 * 500));
}

}  // namespace sim_grid_test
}  // namespace plumb::device::sim_test
