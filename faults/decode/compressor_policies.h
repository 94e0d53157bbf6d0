// SPDX-License-Identifier: Apache-2.0
//
// Errors of the host with the compressor: its partial states, their blocks, and the slots and calls
// of the compressed states. Each is a policy in place of the right one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "decode/engine/step_inputs.h"
#include "decode/policies/compressor_policies.h"
#include "decode/policies/inputs_policy.h"
#include "decode/policies/request_policy.h"

namespace plumb::cases {

inline std::vector<std::int64_t>& partial_slots(device::decode::StepPlan& plan) {
  return plan.slot_mapping[static_cast<std::size_t>(device::decode::Cache::c4a_partial)];
}

// Partial states go to a ring that belongs to the row of the batch.
struct PartialStatesByBatchRow final : device::decode::RequestPolicy {
  void revise(const device::decode::Geometry& geometry, const device::decode::StepPlan&,
              device::decode::StepPlan& plan) const override {
    const auto page = geometry.pages[static_cast<std::size_t>(device::decode::Cache::c4a_partial)];
    for (std::size_t i = 0; i < static_cast<std::size_t>(plan.live_tokens); ++i) {
      partial_slots(plan)[i] = (1 + plan.token_to_req[i]) * page + plan.positions[i] % page;
    }
  }
};
// A position that was saved in the step before counts as saved, although its token was rejected.
struct RejectedStatesKept final : device::decode::RequestPolicy {
  void revise(const device::decode::Geometry&, const device::decode::StepPlan& before,
              device::decode::StepPlan& plan) const override {
    const auto& saved =
        before.slot_mapping[static_cast<std::size_t>(device::decode::Cache::c4a_partial)];
    for (std::int64_t& slot : partial_slots(plan)) {
      if (std::ranges::find(saved, slot) != saved.end()) slot = -1;
    }
  }
};
// A prefix hit allocates blocks of partial states and does not fill them.
struct PartialGapNotFilled final : device::decode::RequestPolicy {
  bool fills_gap(device::decode::Cache cache) const override {
    return cache == device::decode::Cache::window;
  }
};
struct PartialWindowEndsABlockEarly final : device::decode::RequestPolicy {
  std::int64_t leaves_before(const device::decode::Geometry& geometry, device::decode::Cache cache,
                             std::int64_t seen) const override {
    const bool is_partial = cache == device::decode::Cache::c4a_partial;
    return seen + (is_partial ? geometry.pages[static_cast<std::size_t>(cache)] : 0);
  }
};
// Rows of requests are sent 12 times and then no more. Captures and new requests are sends too.
struct TokenToReqKept final : device::decode::InputsPolicy {
  bool sends_token_to_req(std::int64_t sent) const override { return sent < 12; }
};

struct SlotsOfTheTokensOnly final : device::decode::CompressorPolicy {
  std::int64_t written_slots(std::int64_t tokens, std::int64_t) const override { return tokens; }
};
// Leaves out the compression if each request that ends a group in this step ends it with its last
// token. The right test of a host counts these requests too.
struct GateAtTheLastToken final : device::decode::CompressorPolicy {
  bool compresses(device::decode::Attention kind,
                  const device::decode::StepPlan& plan) const override {
    const std::int64_t ratio =
        kind == device::decode::Attention::c4a ? device::decode::kC4a : device::decode::kC128a;
    bool at_the_end = false;
    for (std::size_t row = 0; row < static_cast<std::size_t>(plan.live_requests); ++row) {
      const std::int64_t tokens = plan.query_start_loc[row + 1] - plan.query_start_loc[row];
      const std::int64_t end = (plan.seq_lens[row] - tokens) % ratio + tokens;
      if (end > ratio) return true;
      at_the_end = at_the_end || end == ratio;
    }
    return !at_the_end;
  }
};
struct CompressedBeforeSaved final : device::decode::CompressorPolicy {
  bool saves_first() const override { return false; }
};

}  // namespace plumb::cases
