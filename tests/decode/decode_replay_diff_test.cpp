// SPDX-License-Identifier: Apache-2.0
//
// Runs the same decode steps twice: right steps have no difference, and with a fault the first
// difference names its cause.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "decode/watch/replay_diff.h"
#include "faults/decode/decode_mutants.h"
#include "faults/decode/fault_runs.h"
#include "faults/decode/injections.h"

namespace plumb::cases {
namespace decode_replay_diff_test {

using device::decode::GraphMode;

DecodeRun run_of(const std::string& fault) {
  for (const DecodeFault& one : all_decode_faults()) {
    if (one.name == fault) return fault_runs({"sim-sm90"}, {&one}, 0).front();
  }
  throw std::invalid_argument("no fault " + fault);
}

const SecondRun& named(const std::vector<SecondRun>& runs, const std::string& name) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const SecondRun& run) { return run.name == name; });
  if (found == runs.end()) throw std::invalid_argument("no second run " + name);
  return *found;
}

std::optional<ReplayDifference> difference(const DecodeRun& run, const std::string& second) {
  const auto runs = second_runs(run.setup);
  return first_difference(run.setup, named(runs, second), run.schedule);
}

class EveryTraffic : public testing::TestWithParam<int> {};

// Order of threads, allocator and history of the engine do not change a bit.
TEST_P(EveryTraffic, IsTheSameTwice) {
  DecodeRun run{"", nullptr, {}, {}, ""};
  const int n = GetParam();
  constexpr GraphMode kModes[] = {GraphMode::full, GraphMode::breakable, GraphMode::piecewise,
                                  GraphMode::full_and_piecewise};
  constexpr Traffic kTraffic[] = {Traffic::random, Traffic::prompts, Traffic::there_and_back,
                                  Traffic::replace};
  run.setup.platform = n % 2 == 0 ? "sim-sm90" : "sim-gfx942";
  run.setup.mode = kModes[n % 4];
  run.setup.geometry = device::decode::small_geometry(4, n % 3, 16);
  run.setup.geometry.drafter = true;
  if (n == 4) run.setup.geometry = device::decode::small_v32_geometry(4, 0, 64, 48);
  run.schedule = {kTraffic[n % 4], static_cast<Lengths>(n), 3, 4, 5};
  for (const SecondRun& second : second_runs(run.setup)) {
    const auto found = first_difference(run.setup, second, run.schedule);
    EXPECT_FALSE(found) << second.name << ": " << text_of(*found);
  }
}

INSTANTIATE_TEST_SUITE_P(Decode, EveryTraffic, testing::Range(0, 5));

TEST(DecodeTwice, ARaceIsTheOpsOwn) {
  const auto found = difference(run_of("mhc_row_sums_of_wrong_lanes"), "threads in their order");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->from, ReplayDifference::From::the_op);
  EXPECT_EQ(found->op, "mhc_pre_broadcast");
  EXPECT_EQ(found->call, "layer 0 attention mix");
  EXPECT_EQ(found->step, 0);
  EXPECT_EQ(found->rows.front(), 16);
  EXPECT_NE(found->digests[0], found->digests[1]);
}

TEST(DecodeTwice, AnOpThatPromisesNothingIsSaidSo) {
  DecodeRun run = run_of("mhc_row_sums_of_wrong_lanes");
  Replacement by = decode_mutant("mhc_broadcast_row_sum_unguarded");
  by.simulated.numerics.deterministic = 0;
  run.setup.implementation = with_op_replaced(by);
  const auto found = difference(run, "threads in their order");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->from, ReplayDifference::From::an_op_that_may);
}

TEST(DecodeTwice, InputsThatAreOverwrittenAreNoOp) {
  const auto found = difference(run_of("staging_overwritten"), "streams as early as possible");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->from, ReplayDifference::From::its_inputs) << text_of(*found);
}

// The list that attention reads has been freed, and another buffer was allocated there.
TEST(DecodeTwice, MemoryThatWasGivenBackIsNoOp) {
  const auto found =
      difference(run_of("ragged_metadata_not_persistent"), "every step run eagerly on fresh state");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->op, "sparse_mla_decode");
  EXPECT_EQ(found->from, ReplayDifference::From::its_inputs) << text_of(*found);
}

TEST(DecodeTwice, APartOnOtherRowsIsNamed) {
  const auto found =
      difference(run_of("break_arguments_held_weakly"), "every step run eagerly on fresh state");
  ASSERT_TRUE(found);
  EXPECT_NE(text_of(*found).find("in the second run on"), std::string::npos) << text_of(*found);
}

}  // namespace decode_replay_diff_test
}  // namespace plumb::cases
