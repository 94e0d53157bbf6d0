// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "trace/ranks/rank_messages.h"
#include "trace/step_worker.h"

namespace plumb::trace {

int serve_ranks() {
  return serve_steps<RankRequest, RankAnswer>([](const RankRequest& request, RankAnswer& answer) {
    std::deque<OpenStep> open;
    std::vector<RankStep> ranks;
    for (const std::string& path : request.paths) {
      const OpenStep& one = open.emplace_back(path);
      ranks.push_back({one.step, one.bytes});
    }
    answer.report = check_ranks(ranks);
  });
}

}  // namespace plumb::trace
