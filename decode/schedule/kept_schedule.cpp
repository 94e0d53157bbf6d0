// SPDX-License-Identifier: Apache-2.0
#include "decode/schedule/kept_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace plumb::cases {

namespace {

using device::decode::Scheduled;

std::int64_t advance_of(const Scheduled& one) {
  return one.accepted == Scheduled::kAll ? one.tokens : one.accepted;
}

class Keeper {
 public:
  explicit Keeper(const KeepList& requests) : requests_(requests) {}

  void leave_out(const ScheduledStep& step) {
    note_changes(step);
    for (const Scheduled& one : step.batch) {
      const auto newcomer = find_newcomer(one.request);
      if (newcomer != admitted_.end()) newcomer->second += advance_of(one);
    }
  }

  ScheduledStep keep(const ScheduledStep& step) {
    note_changes(step);
    ScheduledStep kept{.dummy_tokens = step.dummy_tokens, .recapture = step.recapture};
    kept.finished = std::exchange(finished_, {});
    for (const std::uint64_t id : kept.finished) computed_.erase(id);
    admit(kept);
    for (const Scheduled& one : step.batch) {
      if (!keeps(one.request)) continue;
      kept.batch.push_back(one);
      computed_[one.request] += advance_of(one);
    }
    return kept;
  }

 private:
  bool keeps(std::uint64_t id) const { return requests_.keeps(static_cast<std::int64_t>(id)); }

  using Newcomers = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  Newcomers::iterator find_newcomer(std::uint64_t id) {
    return std::find_if(admitted_.begin(), admitted_.end(),
                        [&](const auto& one) { return one.first == id; });
  }

  void note_changes(const ScheduledStep& step) {
    for (const std::uint64_t id : step.finished) {
      if (keeps(id)) note_end(id);
    }
    for (const SharedPrefix& one : step.shared) {
      if (keeps(one.request)) shared_.push_back(one);
    }
    for (const auto& one : step.admitted) {
      if (keeps(one.first)) admitted_.push_back(one);
    }
  }

  // A request that came and went in omitted steps never exists.
  void note_end(std::uint64_t id) {
    if (computed_.contains(id)) return finished_.push_back(id);
    std::erase_if(admitted_, [&](const auto& one) { return one.first == id; });
    std::erase_if(shared_, [&](const SharedPrefix& one) { return one.request == id; });
  }

  // If the other request does not exist or has fewer tokens, the new request gets its own blocks
  // for the prefix.
  void admit(ScheduledStep& kept) {
    for (const SharedPrefix& one : std::exchange(shared_, {})) {
      const auto other = computed_.find(one.other);
      if (other != computed_.end() && other->second >= one.tokens) {
        kept.shared.push_back(one);
      } else {
        admitted_.emplace_back(one.request, one.tokens);
      }
    }
    for (const SharedPrefix& one : kept.shared) computed_[one.request] = one.tokens;
    kept.admitted = std::exchange(admitted_, {});
    for (const auto& [id, tokens] : kept.admitted) computed_[id] = tokens;
  }

  const KeepList& requests_;
  std::map<std::uint64_t, std::int64_t> computed_;  // tokens of the requests that exist
  // Changes since the latest kept step.
  std::vector<std::uint64_t> finished_;
  Newcomers admitted_;
  std::vector<SharedPrefix> shared_;
};

}  // namespace

std::vector<ScheduledStep> kept_part(const std::vector<ScheduledStep>& schedule,
                                     const KeepList& requests, const KeepList& steps) {
  if (requests.keeps_all() && steps.keeps_all()) return schedule;
  Keeper keeper(requests);
  std::vector<ScheduledStep> kept;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (steps.keeps(static_cast<std::int64_t>(i))) {
      kept.push_back(keeper.keep(schedule[i]));
    } else {
      keeper.leave_out(schedule[i]);
    }
  }
  return kept;
}

std::int64_t requests_of(const std::vector<ScheduledStep>& schedule) {
  std::set<std::uint64_t> ids;
  for (const ScheduledStep& step : schedule) {
    for (const Scheduled& one : step.batch) ids.insert(one.request);
  }
  return std::ssize(ids);
}

}  // namespace plumb::cases
