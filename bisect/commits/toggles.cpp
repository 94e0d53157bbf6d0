// SPDX-License-Identifier: Apache-2.0
#include "bisect/commits/toggles.h"

#include <fmt/format.h>

#include <numeric>

namespace plumb::bisect {

namespace {

// Upper limit of good answers: delta debugging asks about at most n² + 3n combinations, and one
// answer is about all toggles off.
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
  // Different culprits may fail in different ways.
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
  const Answer& on = judge(all_, "with all toggles on the case has to fail").result.answer;
  if (on.verdict == Verdict::good) {
    throw Undecided(
        "with all toggles on the case passes: there is nothing to search (--all tries each "
        "toggle)");
  }
  if (on.verdict == Verdict::cannot_say) {
    throw Undecided("with all toggles on the case could not run: " + on.reason);
  }
  const Answer& off = judge({}, "with all toggles off the case has to pass").result.answer;
  if (off.verdict == Verdict::bad) {
    throw Undecided("with all toggles off the case fails too: " + off.signature);
  }
  if (off.verdict == Verdict::cannot_say) {
    throw Undecided("with all toggles off the case could not run: " + off.reason);
  }
}

ToggleResult ToggleSearch::run() {
  judge_ends();
  ToggleResult result;
  result.culprits = find_culprits(all_.size(), [&](const Switches& on) {
    return judge(on, "part of a set that fails").result.answer.verdict;
  });
  for (const Switches& group : result.culprits.groups) {
    result.failures.push_back(judged_.at(group).result.answer);
    judging_.decide(fmt::format("{} makes the case fail", combine(file_, group).name));
  }
  result.all_on = judged_.at(all_).result.answer;
  const std::string difference =
      path_difference(judged_.at({}).result.answer.paths, result.all_on.paths);
  if (!difference.empty()) {
    result.warnings.push_back("all toggles on did other work than all off: " + difference);
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
                     judge(on, "--all judges each of them"));
  }
  return all;
}

}  // namespace plumb::bisect
