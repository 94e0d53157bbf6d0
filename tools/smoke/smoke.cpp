// SPDX-License-Identifier: Apache-2.0
#include "tools/smoke/smoke.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/device.h"

namespace plumb::tools {

namespace {

std::string failure_block(const cases::CaseResult& result) {
  std::string text = fmt::format("FAIL  {}   {}\n", result.id, result.platform);
  if (!result.reason.empty()) text += fmt::format("      {}\n", result.reason);
  if (!result.failures.empty()) {
    for (const std::string& line : result.failures.front().lines) {
      text += fmt::format("      {}\n", line);
    }
    text += fmt::format("      {}\n", result.failures.front().context);
  }
  return text + fmt::format("      reproduce: plumb run --case {} --platform {}\n", result.id,
                            result.platform);
}

void count(const cases::CaseResult& result, SmokeSummary& summary) {
  using enum cases::Outcome;
  switch (result.outcome) {
    case passed:
    case known_bug: ++summary.passed; return;
    case skipped: ++summary.skipped; return;
    case failed:
    case untrusted: break;
  }
  ++summary.failed;
  summary.failures += failure_block(result);
}

}  // namespace

std::vector<SmokeTask> smoke_tasks(const std::vector<std::string>& patterns) {
  std::vector<SmokeTask> tasks;
  for (const cases::Case& one : cases::all_cases()) {
    if (one.tier() != cases::Tier::smoke) continue;
    const auto names = [&](const std::string& pattern) {
      return cases::matches(pattern, one.id());
    };
    if (!patterns.empty() && std::ranges::none_of(patterns, names)) continue;
    for (const std::string& platform : device::known_platforms()) {
      if (platform.starts_with("sim-")) tasks.push_back({one, platform});
    }
  }
  return tasks;
}

SmokeSummary run_smoke(const std::vector<SmokeTask>& tasks, cases::RunOptions options,
                       const std::function<void(std::size_t done)>& progress) {
  SmokeSummary summary;
  options.tier = cases::Tier::smoke;
  std::size_t done = 0;
  for (const SmokeTask& task : tasks) {
    progress(done++);
    options.platform = task.platform;
    count(cases::run_case(task.which, options), summary);
  }
  return summary;
}

}  // namespace plumb::tools
