// SPDX-License-Identifier: Apache-2.0
//
// Runs as many random inputs of the fuzzer as a test has time for.
#include "tests/trace/fuzz_trace.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace plumb::trace {
namespace fuzz_trace_test {

TEST(TraceFuzzTest, RandomEditsAreJudgedOrRefused) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1500; ++i) {
    std::vector<std::uint8_t> edits(random() % 200);
    for (std::uint8_t& byte : edits) byte = static_cast<std::uint8_t>(random());
    fuzz_trace(edits);
  }
}

TEST(TraceFuzzTest, IntegersBeyondEverythingAreJudgedOrRefused) {
  EXPECT_GT(judge_hostile_integers(0, 7), 100);
}

}  // namespace fuzz_trace_test
}  // namespace plumb::trace
