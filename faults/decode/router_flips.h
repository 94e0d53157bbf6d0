// SPDX-License-Identifier: Apache-2.0
//
// What a router chooses otherwise where its logits are less exact: no op is wrong, and still a few
// tokens go to other experts   [8.1, vLLM #42982].
#pragma once

#include <cstdint>

#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

struct RouterFlips {
  std::int64_t choices = 0, flips = 0;  // experts of live tokens, in all layers
};
// Both take the same steps eagerly. Routers of both read the same hidden states, as no result of a
// step depends on what its routers choose.
RouterFlips count_router_flips(const DecodeSetup& right, const DecodeSetup& less_exact,
                               const ScheduleShape& shape);

}  // namespace plumb::cases
