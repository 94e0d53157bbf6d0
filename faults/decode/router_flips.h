// SPDX-License-Identifier: Apache-2.0
//
// Counts the choices that change when a router's logits are less exact. No op is wrong, but a few
// tokens go to other experts [8.1, vLLM #42982].
#pragma once

#include <cstdint>

#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

struct RouterFlips {
  std::int64_t choices = 0, flips = 0;  // experts chosen for live tokens, in all layers
};
// Both setups take the same steps eagerly. Their routers read the same hidden states, because no
// result of a step depends on the chosen experts.
RouterFlips count_router_flips(const DecodeSetup& right, const DecodeSetup& less_exact,
                               const ScheduleShape& shape);

}  // namespace plumb::cases
