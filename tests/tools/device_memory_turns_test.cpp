// SPDX-License-Identifier: Apache-2.0
//
// On a platform whose cases share memory, a case that lacked device memory runs again, alone.
#include "tools/device_memory_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace plumb::tools {
namespace device_memory_turns_test {

bool shared(const std::string& platform) { return platform == "card"; }

Finished finished_with(const char* platform, const char* kind) {
  Finished finished;
  finished.result.platform = platform;
  if (kind != nullptr) finished.result.failures.push_back({.kind = kind});
  return finished;
}

// How often a case with this first result runs, and whether the last result is returned.
struct Runs {
  int count = 0;
  bool last_returned = false;
};
Runs runs_of(const char* platform, const char* kind) {
  DeviceMemoryTurns turns(shared);
  Runs runs;
  const Finished finished = turns.run([&] {
    Finished one = ++runs.count == 1 ? finished_with(platform, kind) : finished_with(platform, {});
    one.seconds = runs.count;
    return one;
  });
  runs.last_returned = finished.seconds == runs.count;
  return runs;
}

TEST(DeviceMemoryTurns, ACaseThatLackedMemoryRunsOnceMore) {
  EXPECT_EQ(runs_of("card", "out_of_memory").count, 2);
  EXPECT_TRUE(runs_of("card", "out_of_memory").last_returned);
}

TEST(DeviceMemoryTurns, SoDoesACaseWithoutMemoryForItsTensors) {
  DeviceMemoryTurns turns(shared);
  int count = 0;
  turns.run([&] {
    Finished one = finished_with("card", nullptr);
    one.result.lacked_memory = ++count == 1;
    return one;
  });
  EXPECT_EQ(count, 2);
}

TEST(DeviceMemoryTurns, AnyOtherRunsOnce) {
  EXPECT_EQ(runs_of("card", nullptr).count, 1);
  EXPECT_EQ(runs_of("card", "out_of_bounds").count, 1);
  EXPECT_EQ(runs_of("simulated", "out_of_memory").count, 1);
}

TEST(DeviceMemoryTurns, TheSecondRunIsAlone) {
  DeviceMemoryTurns turns(shared);
  std::atomic<bool> started = false, other_done = false;
  std::thread other([&] {
    turns.run([&] {
      started = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      other_done = true;
      return finished_with("card", nullptr);
    });
  });
  while (!started) std::this_thread::yield();
  bool alone = false;
  int count = 0;
  turns.run([&] {
    alone = other_done;
    return ++count == 1 ? finished_with("card", "out_of_memory") : finished_with("card", nullptr);
  });
  other.join();
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(alone);
}

}  // namespace device_memory_turns_test
}  // namespace plumb::tools
