// SPDX-License-Identifier: Apache-2.0
//
// When V3.2's tile plan has to be made anew: the key of the step that it was made for differs from
// this step's   [3.3].
#pragma once

#include <cstdint>
#include <vector>

#include "decode/engine/step_inputs.h"

namespace plumb::device::decode {

// A step as its key sees it.
struct KeyedStep {
  std::int64_t tokens = 0;  // that have metadata
  std::int64_t max_query_len = 0, heads = 0;
  std::vector<std::int32_t> query_lens;  // of requests, padding included
  // Of requests too. A token attends min(position + 1, topk) tokens, so nothing grows any more in
  // a request whose first query token sees topk: its length is cut to topk + query_len - 1, which
  // is topk for a single token.
  std::vector<std::int32_t> lengths;
};
KeyedStep keyed_step(const Geometry& geometry, const StepPlan& plan);

class PlanKeyPolicy {
 public:
  virtual ~PlanKeyPolicy() = default;
  using Key = std::vector<std::int64_t>;
  // With query_lens and lengths, how many tokens each row attends is settled: steps of one key have
  // one plan. AITER's own key has no query_lens and cuts lengths to topk, which is as good only
  // while every request has one query token.
  virtual Key key(const KeyedStep& step) const;
  // Who remembers the key. The plan's buffers are one, so there is one builder; with several, each
  // takes what another has written there for its own   [hazards B8].
  virtual std::int64_t builder(const StepPlan& /*plan*/) const { return 0; }
};

}  // namespace plumb::device::decode
