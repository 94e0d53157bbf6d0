// SPDX-License-Identifier: Apache-2.0
//
// Tests the tile planner: plans checked by hand, and properties of every plan.
#include "reference/sparse_mla/tile_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "tests/support/mla_test_problem.h"

namespace plumb::tests {
namespace tile_plan_test {

using reference::PlannedSpan;
using reference::RequestBlocks;
using reference::Tile;
using reference::TilePlan;

TilePlan plan_of(const std::vector<std::int32_t>& blocks, std::int32_t parts,
                 std::int32_t overhead) {
  std::vector<RequestBlocks> requests;
  for (const std::int32_t count : blocks) requests.push_back({count, 0});
  return reference::make_tile_plan(requests, parts, overhead);
}

std::int32_t random_integer(std::uint64_t seed, std::uint64_t counter, std::int32_t most) {
  return static_cast<std::int32_t>(uniform(seed, counter) * (most + 1));
}

TEST(TilePlan, OneRequestOnOnePartIsWhole) {
  const TilePlan plan = plan_of({10}, 1, 5);
  EXPECT_EQ(plan.tiles, (std::vector<Tile>{{0, 0, 0, 10, 0, 0, 0}}));
  EXPECT_EQ(plan.num_splits, (std::vector<std::int32_t>{0, 1}));
}

// A request of 10 blocks with an overhead of 5 on 2 parts. Each part has a payload of 8 + 5, so the
// first takes 8 blocks and the second the rest.
TEST(TilePlan, ACutRequestIsSplitInBothParts) {
  const TilePlan plan = plan_of({10}, 2, 5);
  EXPECT_EQ(plan.tiles, (std::vector<Tile>{{0, 0, 0, 8, 0, 1, 1}, {0, 0, 8, 10, 1, 1, 1}}));
  EXPECT_EQ(plan.num_splits, (std::vector<std::int32_t>{0, 2}));
}

// Without overhead, 3 + 5 + 4 blocks on 3 parts are 4 blocks each. Request 1 is cut into 1 + 4
// blocks.
TEST(TilePlan, APartMayEndOneRequestAndBeginAnother) {
  const TilePlan plan = plan_of({3, 5, 4}, 3, 0);
  EXPECT_EQ(plan.tiles, (std::vector<Tile>{
                            {0, 1, 0, 1, 0, 0, 1}, {1, 1, 1, 5, 1, 1, 1}, {2, 2, 0, 4, 0, 0, 0}}));
  EXPECT_EQ(plan.num_splits, (std::vector<std::int32_t>{0, 1, 3, 4}));
}

TEST(TilePlan, PartsWithoutWorkBeginPastTheLastRequest) {
  const TilePlan plan = plan_of({1, 1}, 8, 5);
  for (std::size_t part = 2; part < 8; ++part) EXPECT_GE(plan.tiles[part].begin_req, 2) << part;
}

TEST(TilePlan, MainCandidatesHaveAtLeastOneBlock) {
  EXPECT_EQ(reference::request_blocks(0, false, 0, 64).total(), 1);
  EXPECT_EQ(reference::request_blocks(0, true, 1, 64).total(), 2);
  EXPECT_EQ(reference::request_blocks(64, true, 64, 64).total(), 2);
  EXPECT_EQ(reference::request_blocks(65, true, 0, 64).total(), 2);
  EXPECT_EQ(reference::request_blocks(65, false, 1000, 64).total(), 2);
  EXPECT_EQ(reference::request_blocks(10, true, 3, 4).total(), 4);
}

TEST(TilePlan, PartsFollowFromMultiprocessorsQueriesAndHeads) {
  EXPECT_EQ(reference::plan_parts(132, 1, 64), 132);
  EXPECT_EQ(reference::plan_parts(132, 2, 128), 33);
  EXPECT_EQ(reference::plan_parts(132, 1, 1), 132);
  EXPECT_EQ(reference::plan_parts(132, 1, 65), 66);
  EXPECT_EQ(reference::plan_parts(2, 3, 128), 1);
}

TEST(TilePlan, RandomPlansCoverEveryBlockOnceInSlotsOfTheirOwn) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const std::int32_t requests = 1 + random_integer(seed, 0, 40);
    const std::int32_t parts = 1 + random_integer(seed, 1, 160);
    const std::int32_t overhead = random_integer(seed, 2, 6);
    std::vector<RequestBlocks> blocks;
    for (std::int32_t r = 0; r < requests; ++r) {
      blocks.push_back({1 + random_integer(seed, 10 + r, 3), random_integer(seed, 100 + r, 128)});
    }
    const TilePlan plan = reference::make_tile_plan(blocks, parts, overhead);
    ASSERT_EQ(std::ssize(plan.tiles), parts);

    std::vector<std::vector<int>> covered;
    for (const RequestBlocks& request : blocks) covered.emplace_back(request.total(), 0);
    std::set<std::int32_t> slots;
    std::map<std::int32_t, std::int32_t> splits;
    for (const PlannedSpan& span : reference::planned_spans(plan, blocks)) {
      ASSERT_LT(span.begin_block, span.end_block) << seed;
      ASSERT_LE(span.end_block, blocks[span.request].total()) << seed;
      for (std::int32_t b = span.begin_block; b < span.end_block; ++b) ++covered[span.request][b];
      ++splits[span.request];
      ASSERT_LT(span.slot, requests + parts) << seed;
      ASSERT_TRUE(slots.insert(span.slot).second) << seed << ": slot " << span.slot << " twice";
      const std::int32_t count = plan.num_splits[span.request + 1] - plan.num_splits[span.request];
      ASSERT_EQ(span.split, count > 1) << seed;
      ASSERT_GE(span.slot, plan.num_splits[span.request]) << seed;
      ASSERT_LT(span.slot, plan.num_splits[span.request + 1]) << seed;
    }
    for (std::int32_t r = 0; r < requests; ++r) {
      for (const int times : covered[r]) ASSERT_EQ(times, 1) << seed << ": request " << r;
      ASSERT_EQ(splits[r], plan.num_splits[r + 1] - plan.num_splits[r]) << seed;
    }
  }
}

}  // namespace tile_plan_test
}  // namespace plumb::tests
