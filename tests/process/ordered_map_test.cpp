// SPDX-License-Identifier: Apache-2.0
#include "process/ordered_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace plumb::process {
namespace ordered_map_test {

void sleep_milliseconds(std::size_t count) {
  std::this_thread::sleep_for(std::chrono::milliseconds(count));
}

std::vector<std::size_t> up_to(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(OrderedMap, HandsResultsOnInOrderWithAnyNumberOfThreads) {
  for (const int threads : {-1, 1, 3, 100}) {
    std::vector<std::size_t> taken;
    ordered_map<std::size_t>(
        20, threads,
        [](std::size_t i) {
          sleep_milliseconds(i % 3);
          return 2 * i;
        },
        [&](std::size_t i, std::size_t&& result) {
          EXPECT_EQ(result, 2 * i);
          taken.push_back(i);
        });
    EXPECT_EQ(taken, up_to(20));
  }
  ordered_map<int>(0, 4, [](std::size_t) { return 1; }, [](std::size_t, int&&) { FAIL(); });
}

TEST(OrderedMap, EachThreadHasWorkOfItsOwn) {
  std::atomic<int> made = 0, calls = 0;
  OrderedMap<int> map(50, [&] {
    ++made;
    return [&, last = std::make_shared<int>(0)](std::size_t) {
      ++calls;
      return ++*last;
    };
  });
  map.run(4, [](std::size_t, int&&) {});
  EXPECT_LE(made, 4);
  EXPECT_EQ(calls, 50);
}

TEST(OrderedMap, AnExceptionEndsItAfterTheResultsThatAreThere) {
  std::vector<std::size_t> taken;
  const auto work = [](std::size_t i) {
    if (i == 2) {
      sleep_milliseconds(50);
      throw std::runtime_error("two");
    }
    sleep_milliseconds(i == 3 ? 100 : 0);
    return i;
  };
  const auto take = [&](std::size_t i, std::size_t&&) { taken.push_back(i); };
  EXPECT_THROW(ordered_map<std::size_t>(1000, 2, work, take), std::runtime_error);
  EXPECT_EQ(taken, (std::vector<std::size_t>{0, 1, 3}));
}

TEST(OrderedMap, AThreadThatCannotStartLeavesItsWorkToTheOthers) {
  std::vector<std::size_t> taken;
  std::atomic<int> made = 0;
  OrderedMap<std::size_t> map(20, [&] {
    return [number = made++](std::size_t i) {
      sleep_milliseconds(5);
      if (number % 2 == 0) throw CannotStart(std::make_error_code(std::errc::too_many_files_open));
      return i;
    };
  });
  map.run(4, [&](std::size_t i, std::size_t&&) { taken.push_back(i); });
  EXPECT_EQ(taken, up_to(20));
}

TEST(OrderedMap, IfNoThreadCanStartItIsAnError) {
  const auto work = [](std::size_t) -> int {
    throw CannotStart(std::make_error_code(std::errc::too_many_files_open));
  };
  EXPECT_THROW(ordered_map<int>(20, 4, work, [](std::size_t, int&&) { FAIL(); }), CannotStart);
}

TEST(OrderedMap, AnExceptionOfTheTakerIsThrownToo) {
  const auto work = [](std::size_t i) { return i; };
  const auto take = [](std::size_t i, std::size_t&&) {
    if (i == 3) throw std::runtime_error("three");
  };
  EXPECT_THROW(ordered_map<std::size_t>(20, 4, work, take), std::runtime_error);
}

}  // namespace ordered_map_test
}  // namespace plumb::process
