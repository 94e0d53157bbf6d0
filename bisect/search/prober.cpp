// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/prober.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "process/ordered_map.h"

namespace plumb::bisect {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string name_of(Seen seen) {
  switch (seen) {
    case Seen::same: return "fails";
    case Seen::otherwise: return "fails otherwise";
    case Seen::passes: return "passes";
    default: return "cannot say";
  }
}

Prober::Prober(ProberOptions options) : options_(std::move(options)), start_(seconds_now()) {}

void Prober::remember(const Candidate& candidate, Said said) {
  known_.insert_or_assign(candidate, std::move(said));
}

bool Prober::time_is_over() {
  if (options_.seconds > 0 && seconds_now() - start_ > options_.seconds) out_of_time_ = true;
  return out_of_time_;
}

// Asks about all candidates at once, each on its own thread.
void Prober::ask_all(const std::vector<Candidate>& candidates, const std::string& why) {
  options_.asking(why, std::max<int>(left_, static_cast<int>(candidates.size())));
  left_ -= static_cast<int>(candidates.size());
  process::ordered_map<Said>(
      candidates.size(), static_cast<int>(candidates.size()),
      [&](std::size_t i) { return options_.ask(candidates[i]); },
      [&](std::size_t i, Said&& said) {
        ++asked_;
        options_.heard(candidates[i], said, why);
        remember(candidates[i], std::move(said));
      });
}

std::optional<std::size_t> Prober::first_failing(const std::vector<Candidate>& candidates,
                                                 const std::string& why) {
  std::size_t settled = 0;  // number of leading candidates known not to fail
  while (settled < candidates.size()) {
    std::vector<Candidate> next;
    for (std::size_t i = settled; i < candidates.size(); ++i) {
      const Candidate& one = candidates[i];
      const auto known = known_.find(one);
      if (known != known_.end() && known->second.seen == Seen::same && next.empty()) return i;
      const bool open = known == known_.end() && options_.is_possible(one) &&
                        std::find(next.begin(), next.end(), one) == next.end();
      if (open) next.push_back(one);
      if (next.empty()) settled = i + 1;
      if (static_cast<int>(next.size()) == options_.jobs) break;
    }
    if (next.empty() || time_is_over()) return std::nullopt;
    ask_all(next, why);
  }
  return std::nullopt;
}

Said Prober::ask(const Candidate& candidate, const std::string& why) {
  if (!options_.is_possible(candidate)) return {Seen::cannot_say, "no such case", 0};
  first_failing({candidate}, why);
  const auto known = known_.find(candidate);
  return known == known_.end() ? Said{Seen::cannot_say, "the time is over", 0} : known->second;
}

}  // namespace plumb::bisect
