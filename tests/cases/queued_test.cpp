// SPDX-License-Identifier: Apache-2.0
//
// Cases of the scenario queued: each op has one, and a replay that does nothing is found.
// tests/tools/pending_calls_test.cpp has the defects of launchers that they find.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "faults/faults.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace queued_test {

std::vector<Case> queued_cases() {
  std::vector<Case> found;
  for (const Case& which : all_cases()) {
    if (which.scenario->mode == Scenario::Mode::queued && which.tier() < Tier::full) {
      found.push_back(which);
    }
  }
  return found;
}

TEST(QueuedCases, AreThereForEveryOpInTheDefaultTier) {
  std::set<std::string_view> ops;
  for (const Case& which : queued_cases()) ops.insert(which.op->name);
  EXPECT_EQ(ops.size(), all_ops().size());
}

// Only the graph for fewer rows is replayed. Some rows have none: no parameter gives their number,
// or others need as many.
TEST(QueuedCases, FailWithoutAReplayOfTheSmallerGraph) {
  std::set<std::string> pass;
  for (const Case& which : queued_cases()) {
    const CaseResult result = run_case(which, with_dead_replay(on("sim-sm90")));
    if (result.outcome != Outcome::failed) pass.insert(which.id());
  }
  const std::set<std::string> without_graph{
      "build_flashinfer_mixed_sparse_indices/c4a_mixed/queued",
      "c128a_decode_metadata/context_16k/queued",
      "get_mla_metadata_v1/v32_decode/queued",
      "mask_candidate_logits/v41_decode/queued",
      "select_candidate_blocks/v41_decode/queued",
      "unpack_seq/indexer_weights/queued"};
  EXPECT_EQ(pass, without_graph);
}

}  // namespace queued_test
}  // namespace plumb::cases
