// SPDX-License-Identifier: Apache-2.0
//
// Errors of the host with its requests. Each is a policy in place of the right one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "decode/engine/step_inputs.h"
#include "decode/policies/request_policy.h"

namespace plumb::cases {

using device::decode::RequestPolicy;
using device::decode::StepPlan;

struct RejectedTokensCounted final : RequestPolicy {
  std::int64_t counted(std::int64_t tokens, std::int64_t) const override { return tokens; }
};
struct OneBlockMoreShared final : RequestPolicy {
  std::int64_t shared_blocks(std::int64_t whole) const override { return whole + 1; }
};
// A prefix hit counts one block of tokens too many as computed.
struct HitCountsABlockMore final : RequestPolicy {
  std::int64_t hit_tokens(const device::decode::Geometry& geometry,
                          std::int64_t tokens) const override {
    return tokens + geometry.pages[0];
  }
};
struct SharerNotCounted final : RequestPolicy {
  bool counts_sharer() const override { return false; }
};
struct GapNotFilled final : RequestPolicy {
  bool fills_gap(device::decode::Cache) const override { return false; }
};
struct DraftersGapNotFilled final : RequestPolicy {
  bool fills_drafters_gap() const override { return false; }
};
struct WindowEndsABlockEarly final : RequestPolicy {
  std::int64_t leaves_before(const device::decode::Geometry& geometry, device::decode::Cache cache,
                             std::int64_t seen) const override {
    return cache == device::decode::Cache::window ? seen + geometry.pages[0] : seen;
  }
};
struct LeftBlocksKept final : RequestPolicy {
  bool forgets_left_blocks() const override { return false; }
};
struct NothingGivenBack final : RequestPolicy {
  bool gives_back_at_end() const override { return false; }
};

// Number of rows that both this plan and the plan of the step before have.
inline std::size_t common_rows(const StepPlan& before, const StepPlan& plan) {
  return static_cast<std::size_t>(std::min(before.live_requests, plan.live_requests));
}

// Key ranges of a chunk continue after those of the previous chunk, although both use one
// workspace.
struct KeyOffsetsOfTheStep final : RequestPolicy {
  void revise(const device::decode::Geometry&, const StepPlan&, StepPlan& plan) const override {
    std::int32_t before = 0;
    std::size_t offset = 0;
    for (const auto& chunk : plan.prefill.chunks) {
      for (std::int64_t i = 0; i <= chunk.requests; ++i)
        plan.prefill.key_offsets[offset++] += before;
      before += static_cast<std::int32_t>(chunk.keys);
    }
  }
};

// Each length is rounded up to a whole number of blocks.
struct LengthsAreUpperBounds final : RequestPolicy {
  void revise(const device::decode::Geometry& geometry, const StepPlan&,
              StepPlan& plan) const override {
    const auto page = static_cast<std::int32_t>(geometry.pages[0]);
    for (std::size_t row = 0; row < static_cast<std::size_t>(plan.live_requests); ++row) {
      plan.seq_lens[row] = (plan.seq_lens[row] + page - 1) / page * page;
    }
  }
};
struct LengthsOneStepOld final : RequestPolicy {
  void revise(const device::decode::Geometry&, const StepPlan& before,
              StepPlan& plan) const override {
    std::copy_n(before.seq_lens.begin(), common_rows(before, plan), plan.seq_lens.begin());
  }
};
// Lengths are sent only if the number of tokens has changed. A prefix hit changes lengths alone.
struct LengthsOfAsManyTokens final : RequestPolicy {
  void revise(const device::decode::Geometry&, const StepPlan& before,
              StepPlan& plan) const override {
    if (before.live_tokens != plan.live_tokens) return;
    std::copy_n(before.state_lens.begin(), plan.live_tokens, plan.state_lens.begin());
  }
};
struct TablesStayInTheirRows final : RequestPolicy {
  void revise(const device::decode::Geometry& geometry, const StepPlan& before,
              StepPlan& plan) const override {
    for (std::size_t cache = 0; cache < device::decode::kCaches; ++cache) {
      const auto width = geometry.blocks_per_request(static_cast<device::decode::Cache>(cache));
      std::copy_n(before.block_tables[cache].begin(),
                  common_rows(before, plan) * static_cast<std::size_t>(width),
                  plan.block_tables[cache].begin());
    }
  }
};
// A table entry that had a block in the step before keeps it.
struct TablesKeepEarlierBlocks final : RequestPolicy {
  void revise(const device::decode::Geometry& geometry, const StepPlan& before,
              StepPlan& plan) const override {
    const auto width =
        static_cast<std::size_t>(geometry.blocks_per_request(device::decode::Cache::window));
    for (std::size_t i = 0; i < common_rows(before, plan) * width; ++i) {
      if (before.block_tables[0][i] != 0) plan.block_tables[0][i] = before.block_tables[0][i];
    }
  }
};
struct SlotsOfTheRowBefore final : RequestPolicy {
  void revise(const device::decode::Geometry&, const StepPlan&, StepPlan& plan) const override {
    const auto first = plan.slot_mapping[0].begin();
    std::rotate(first, first + (plan.live_tokens - 1), first + plan.live_tokens);
  }
};
// All tokens of a request have the position of the first one.
struct PositionsOfTheFirstToken final : RequestPolicy {
  void revise(const device::decode::Geometry&, const StepPlan&, StepPlan& plan) const override {
    for (std::size_t row = 0; row < static_cast<std::size_t>(plan.live_requests); ++row) {
      const auto first = plan.positions.begin() + plan.query_start_loc[row];
      std::fill(first, plan.positions.begin() + plan.query_start_loc[row + 1], *first);
    }
  }
};
struct DrafterGetsTheCurrentToken final : RequestPolicy {
  void revise(const device::decode::Geometry&, const StepPlan&, StepPlan& plan) const override {
    plan.next_token_keys = plan.token_keys;
  }
};
// A partial state goes to the slot of the token behind its own.
struct StateSlotsOneTokenLate final : RequestPolicy {
  void revise(const device::decode::Geometry&, const StepPlan&, StepPlan& plan) const override {
    auto& slots = plan.slot_mapping[static_cast<std::size_t>(device::decode::Cache::c4a_partial)];
    std::rotate(slots.begin(), slots.begin() + (plan.live_tokens - 1),
                slots.begin() + plan.live_tokens);
  }
};

}  // namespace plumb::cases
