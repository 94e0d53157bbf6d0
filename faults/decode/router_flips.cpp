// SPDX-License-Identifier: Apache-2.0
#include "faults/decode/router_flips.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace plumb::cases {

namespace {

using Experts = std::set<std::int32_t>;

void take(const ScheduledStep& scheduled, WatchedEngine& watched) {
  for (const std::uint64_t id : scheduled.finished) watched.engine.finish(id);
  for (const auto& [id, tokens] : scheduled.admitted) watched.engine.admit(id, tokens);
  watched.engine.step_eagerly(scheduled.batch);
  watched.device->synchronize();
}

// The experts of each live token, by the router's name.
std::map<std::string, std::vector<Experts>> choices(WatchedEngine& watched) {
  std::map<std::string, std::vector<Experts>> all;
  for (const auto& part : watched.engine.parts()) {
    for (const auto& call : watched.recorder->fetch(part)) {
      if (call->op != "grouped_topk" && call->op != "sqrt_softplus_topk") continue;
      const HostTensor& ids = call->tensors.at("ids");
      const std::int64_t live = std::min(ids.rows(), watched.engine.plan().live_tokens);
      const std::int64_t width = live == 0 ? 0 : ids.elements() / ids.rows();
      for (std::int64_t token = 0; token < live; ++token) {
        const auto* row = ids.row<std::int32_t>(token);
        all[call->place.name].emplace_back(row, row + width);
      }
    }
  }
  return all;
}

void add_flips(const std::vector<Experts>& right, const std::vector<Experts>& other,
               RouterFlips& flips) {
  for (std::size_t token = 0; token < right.size(); ++token) {
    flips.choices += std::ssize(right[token]);
    flips.flips += std::count_if(right[token].begin(), right[token].end(),
                                 [&](std::int32_t id) { return !other.at(token).contains(id); });
  }
}

}  // namespace

RouterFlips count_router_flips(const DecodeSetup& right, const DecodeSetup& less_exact,
                               const ScheduleShape& shape) {
  WatchedEngine exact(right, CallRecorder::Kept::rows), other(less_exact, CallRecorder::Kept::rows);
  RouterFlips flips;
  for (const ScheduledStep& scheduled : make_schedule(shape, right.geometry)) {
    take(scheduled, exact);
    take(scheduled, other);
    const auto wanted = choices(exact);
    const auto got = choices(other);
    for (const auto& [router, tokens] : wanted) add_flips(tokens, got.at(router), flips);
  }
  return flips;
}

}  // namespace plumb::cases
