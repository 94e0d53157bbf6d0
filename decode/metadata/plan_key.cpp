// SPDX-License-Identifier: Apache-2.0
#include "decode/metadata/plan_key.h"

#include <algorithm>

namespace plumb::device::decode {

KeyedStep keyed_step(const Geometry& geometry, const StepPlan& plan) {
  KeyedStep step{.tokens = plan.attended, .heads = geometry.heads};
  for (std::size_t r = 0; r < plan.seq_lens.size(); ++r) {
    const std::int32_t queries = plan.query_start_loc[r + 1] - plan.query_start_loc[r];
    const auto most = static_cast<std::int32_t>(geometry.top_k) + std::max(queries, 1) - 1;
    step.max_query_len = std::max<std::int64_t>(step.max_query_len, queries);
    step.query_lens.push_back(queries);
    step.lengths.push_back(std::min(plan.seq_lens[r], most));
  }
  return step;
}

PlanKeyPolicy::Key PlanKeyPolicy::key(const KeyedStep& step) const {
  Key key{step.tokens, step.max_query_len, step.heads};
  for (const auto* list : {&step.query_lens, &step.lengths}) {
    key.push_back(static_cast<std::int64_t>(list->size()));
    key.insert(key.end(), list->begin(), list->end());
  }
  return key;
}

}  // namespace plumb::device::decode
