// SPDX-License-Identifier: Apache-2.0
#include "tools/run/last_failed.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace plumb::tools {

namespace {

using nlohmann::json;
using CaseOnPlatform = std::pair<std::string, std::string>;

std::string word(const json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

std::set<CaseOnPlatform> failed_in(const std::string& path) {
  const json report = json::parse(read_file(path), nullptr, false);
  const bool is_report = report.is_object() && report.contains("cases") &&
                         report["cases"].is_array() && report.contains("outcomes");
  if (!is_report)
    throw UsageError(fmt::format("--last-failed: {} is no report of plumb run", path));
  std::set<CaseOnPlatform> failed;
  for (const json& entry : report["cases"]) {
    if (!entry.is_object()) continue;
    const std::string outcome = word(entry, "outcome");
    if (outcome != "failed" && outcome != "untrusted") continue;
    failed.emplace(word(entry, "case"), word(entry, "platform"));
  }
  return failed;
}

}  // namespace

std::vector<Task> last_failed(const std::vector<Task>& tasks, const std::string& path) {
  if (path.empty()) throw UsageError("--last-failed reads the report that --json names, not \"\"");
  const std::set<CaseOnPlatform> failed = failed_in(path);
  std::vector<Task> left;
  for (const Task& task : tasks) {
    if (failed.contains({task.which->id(), task.platform})) left.push_back(task);
  }
  if (left.empty()) {
    throw UsageError(fmt::format("--last-failed: no selected case failed in {}", path));
  }
  return left;
}

}  // namespace plumb::tools
