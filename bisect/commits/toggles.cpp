// SPDX-License-Identifier: Apache-2.0
#include "bisect/commits/toggles.h"

#include <fmt/format.h>

#include <numeric>

namespace plumb::bisect {

namespace {

// Delta debugging asks about n² combinations at worst; each that passes may be wrong.
std::int64_t most_goods_of_toggles(std::size_t toggles) {
  return static_cast<std::int64_t>(toggles * toggles + 3 * toggles + 1);
}

}  // namespace

ToggleSearch::ToggleSearch(const EnvironmentFile& file, Question run, std::int64_t repeat,
                           double timeout, Journal& journal, Progress& progress)
    : file_(file),
      judging_(std::move(run), timeout, most_goods_of_toggles(file.toggles.size()), repeat, journal,
               progress),
      all_(file.toggles.size()) {
  std::iota(all_.begin(), all_.end(), std::size_t{0});
  // Culprits need not fail in the same way.
  judging_.accept_any_failure();
}

const Judged& ToggleSearch::judge(const Switches& on, const std::string& why) {
  const auto known = judged_.find(on);
  if (known != judged_.end()) return known->second;
  const BuildEnvironment environment = combine(file_, on);
  const Judging::Asked asked{environment.name, environment.name, why, steps_left(on.size() + 1),
                             [&] { return subject_of(file_, environment); }};
  Judged judged = on == all_ ? judging_.measure(asked) : judging_.ask(asked);
  return judged_[on] = std::move(judged);
}

void ToggleSearch::judge_ends() {
  const Answer& on = judge(all_, "with all of them on it has to fail").result.answer;
  if (on.verdict == Verdict::good) {
    throw Undecided("with all toggles on it passes, so nothing is to be found (--all tries each)");
  }
  if (on.verdict == Verdict::cannot_say) {
    throw Undecided("with all toggles on it cannot say: " + on.reason);
  }
  const Answer& off = judge({}, "with all of them off it has to pass").result.answer;
  if (off.verdict == Verdict::bad) {
    throw Undecided("with all toggles off it fails as well: " + off.signature);
  }
  if (off.verdict == Verdict::cannot_say) {
    throw Undecided("with all toggles off it cannot say: " + off.reason);
  }
}

ToggleResult ToggleSearch::run() {
  judge_ends();
  ToggleResult result;
  result.culprits = find_culprits(all_.size(), [&](const Switches& on) {
    return judge(on, "a part of what fails").result.answer.verdict;
  });
  for (const Switches& group : result.culprits.groups) {
    result.failures.push_back(judged_.at(group).result.answer);
    judging_.decide(fmt::format("{} makes it fail", combine(file_, group).name));
  }
  result.all_on = judged_.at(all_).result.answer;
  const std::string difference =
      path_difference(judged_.at({}).result.answer.paths, result.all_on.paths);
  if (!difference.empty()) {
    result.warnings.push_back("all toggles on and all off did not run the same: " + difference);
  }
  for (const auto& [on, judged] : judged_) result.builds += judged.built;
  result.runs = judging_.runs();
  result.rate = judging_.rate();
  return result;
}

std::vector<std::pair<std::string, Judged>> ToggleSearch::judge_all() {
  std::vector<Switches> sets{all_, {}};
  for (const std::size_t i : all_) sets.push_back({i});
  std::vector<std::pair<std::string, Judged>> all;
  for (const Switches& on : sets) {
    all.emplace_back(on == all_ && on.size() > 1 ? "all toggles" : combine(file_, on).name,
                     judge(on, "all of them are asked"));
  }
  return all;
}

}  // namespace plumb::bisect
