// SPDX-License-Identifier: Apache-2.0
//
// Cache contents of a new request: computed in one engine and copied to the others.
#include "decode/schedule/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

namespace plumb::cases {
namespace environment_test {

using device::decode::CacheView;

constexpr std::uint64_t kId = 1;
constexpr std::int64_t kTokens = 200;

using CacheBytes = std::vector<std::uint8_t>;

CacheBytes block_of(const WatchedEngine& watched, const CacheView& cache, std::int64_t block) {
  CacheBytes bytes(static_cast<std::size_t>(cache.block_bytes));
  watched.device->synchronize();
  watched.device->copy(bytes.data(), cache.data + block * cache.block_bytes, bytes.size(),
                       watched.engine.stream());
  return bytes;
}

// Whether all blocks of the request have equal contents in `one` and `other`.
bool hold_the_same(const WatchedEngine& one, const WatchedEngine& other, std::size_t cache) {
  const CacheView here = one.engine.caches().at(cache), there = other.engine.caches().at(cache);
  const auto& blocks = one.engine.request(kId).blocks[static_cast<int>(here.cache)];
  EXPECT_FALSE(blocks.empty()) << here.name;
  EXPECT_EQ(blocks, other.engine.request(kId).blocks[static_cast<int>(here.cache)]);
  return std::all_of(blocks.begin(), blocks.end(), [&](std::int32_t block) {
    return block_of(one, here, block) == block_of(other, there, block);
  });
}

TEST(StepEnvironment, CachesOfNewRequestsAreCopied) {
  for (const auto& geometry : {device::decode::small_geometry(4, 0, 48),
                               device::decode::small_v32_geometry(4, 0, 64, 48)}) {
    DecodeSetup setup;
    setup.geometry = geometry;
    setup.geometry.max_context = 384;
    WatchedEngine computes(setup), copies(setup), untouched(setup);
    ScheduledStep step;
    step.admitted = {{kId, kTokens}};
    let_requests_change(step, computes.engine);
    let_requests_change(step, computes, copies);
    untouched.engine.admit_without_fill(kId, kTokens);
    EXPECT_EQ(copies.engine.request(kId).computed, kTokens);
    for (std::size_t cache = 0; cache < computes.engine.caches().size(); ++cache) {
      EXPECT_TRUE(hold_the_same(computes, copies, cache)) << cache;
      EXPECT_FALSE(hold_the_same(computes, untouched, cache)) << cache << ": nothing was written";
    }
  }
}

// After a prefix hit, blocks of the windows that the other request has given back are filled again
// by the engine that computes, and copied by the engine that does not: those of the attention, and
// one of the partial states that C4A compresses next. Blocks of compressed states are shared.
TEST(StepEnvironment, AWindowThatAPrefixHitDoesNotFindIsFilledAgain) {
  constexpr std::uint64_t kOther = 2;
  constexpr std::int64_t kPrefix = 128;
  DecodeSetup setup;
  setup.geometry.frees_window = true;
  WatchedEngine computes(setup), copies(setup), untouched(setup);
  const ScheduledStep first{.admitted = {{kOther, kTokens}}};
  const ScheduledStep hit{.shared = {{kId, kOther, kPrefix}}};
  let_requests_change(first, computes.engine);
  for (WatchedEngine* watched : {&copies, &untouched})
    let_requests_change(first, computes, *watched);
  let_requests_change(hit, computes.engine);
  let_requests_change(hit, computes, copies);
  using device::decode::Cache;
  const auto gaps = untouched.engine.admit_behind_without_fill(kId, kOther, kPrefix);
  EXPECT_EQ(gaps[Cache::window].begin, 112);
  EXPECT_EQ(gaps[Cache::c4a_partial].begin, 124);
  EXPECT_EQ(gaps.begin(), 112);
  EXPECT_EQ(gaps.end(), kPrefix);
  const auto &here = computes.engine.request(kId), &there = computes.engine.request(kOther);
  EXPECT_TRUE(std::ranges::equal(here.blocks[1], std::span(there.blocks[1]).first(8)));
  const auto caches = computes.engine.caches();
  for (std::size_t cache = 0; cache < caches.size(); ++cache) {
    const auto& gap = gaps[caches[cache].cache];
    if (gap.begin == gap.end) continue;
    EXPECT_TRUE(hold_the_same(computes, copies, cache)) << cache;
    EXPECT_FALSE(hold_the_same(computes, untouched, cache)) << cache << ": nothing was written";
  }
}

}  // namespace environment_test
}  // namespace plumb::cases
