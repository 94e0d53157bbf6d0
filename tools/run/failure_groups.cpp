// SPDX-License-Identifier: Apache-2.0
#include "tools/run/failure_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "cases/judge/line_kind.h"
#include "cases/tensors/sort_by.h"
#include "tools/run/case_contrast.h"

namespace plumb::tools {

namespace {

using cases::Outcome;
using cases::without_numbers;

constexpr std::size_t kWidth = 100;
constexpr std::size_t kMostLines = 6;  // limit of lines with the cases of a group

bool is_cause(const std::string& diagnosis) { return diagnosis.starts_with("looks like: "); }

// Elements, norms and directions of one tensor are one kind: "out: wrong values". Bits that should
// repeat and do not are another: "out: replay differs from eager".
std::string kind_of(const Finished& failure) {
  const cases::CaseResult& result = failure.result;
  if (result.failures.empty() || result.failures.front().lines.empty()) return result.reason;
  const cases::Failure& first = result.failures.front();
  if (!failure.findings.empty()) {
    return fmt::format("{}: {}", name_of(failure.findings.front().detector),
                       failure.findings.front().op);
  }
  const std::string& line = first.lines.front();
  if (line.find(" differs from ") != std::string::npos) {
    const std::string kind = without_numbers(line);
    return kind.substr(0, kind.find(" in #"));
  }
  if (!first.reports.empty()) return first.reports.front().tensor + ": wrong values";
  return without_numbers(line);
}

// First fault named in a diagnosis. Other named faults look the same in this case but may not in
// the next one.
std::string cause_of(const Finished& failure) {
  const std::string& diagnosis = failure.result.diagnosis;
  if (!is_cause(diagnosis)) return "";
  return without_numbers(diagnosis.substr(0, diagnosis.find(" (")));
}

std::string case_lines(const std::vector<const Finished*>& failures) {
  std::map<std::string, std::vector<std::string>> platforms;
  std::vector<std::string> order;
  for (const Finished* one : failures) {
    auto& of_case = platforms[one->result.id];
    if (of_case.empty()) order.push_back(one->result.id);
    of_case.push_back(one->result.platform);
  }
  std::string text, line;
  std::size_t lines = 1, shown = 0;
  for (const std::string& id : order) {
    const std::string word = fmt::format("{} ({})", id, fmt::join(platforms[id], ", "));
    if (!line.empty() && line.size() + word.size() > kWidth) {
      if (++lines > kMostLines) {
        line += fmt::format(", and {} more", order.size() - shown);
        break;
      }
      text += "        " + line + ",\n";
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + word;
    ++shown;
  }
  return text + "        " + line + "\n";
}

// Compares the group's cases with the passed cases of its op. Rows that failed in another way are
// left out.
std::string contrast_of(const FailureGroup& group, const std::vector<Finished>& all,
                        const std::vector<Task>& tasks) {
  std::vector<JudgedCase> judged;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const cases::Case* which = tasks[i].which->of_op();
    if (which == nullptr || all[i].op != group.failures.front()->op) continue;
    const bool failed = std::ranges::find(group.failures, &all[i]) != group.failures.end();
    if (!failed && all[i].result.outcome != Outcome::passed) continue;
    judged.push_back({which, tasks[i].platform, failed});
  }
  return judged.size() > group.failures.size() ? case_contrast(judged) : "";
}

// Contrast statements of the group's cases, the most frequent first.
std::string statements_of(const FailureGroup& group) {
  constexpr std::size_t kMostStatements = 2;
  struct Statement {
    const Finished* first;
    std::string text;
    int cases = 0;
  };
  std::map<std::string, Statement> by_kind;
  for (const Finished* one : group.failures) {
    for (const std::string& line : one->contrast) {
      ++by_kind.try_emplace(without_numbers(line), Statement{one, line}).first->second.cases;
    }
  }
  std::vector<Statement> all;
  for (auto& [kind, statement] : by_kind) all.push_back(std::move(statement));
  cases::sort_by(all, [](const Statement& one) { return one.cases; }, std::greater<>());
  if (all.size() > kMostStatements) all.resize(kMostStatements);
  std::string text;
  for (const Statement& one : all) {
    text += fmt::format("        {} of {} cases, such as {}:\n          {}\n", one.cases,
                        group.failures.size(), one.first->result.id, one.text);
  }
  return text;
}

std::string group_text(const FailureGroup& group, const std::string& contrast) {
  const Finished& first = *group.failures.front();
  const std::string& diagnosis = first.result.diagnosis;
  std::string text =
      fmt::format("  {:4}  {}: {}\n", group.failures.size(), first.op, kind_of(first));
  if (is_cause(diagnosis)) text += "        " + diagnosis + "\n";
  if (!contrast.empty()) text += "        " + contrast + "\n";
  if (group.failures.size() > 1) text += statements_of(group);
  return text + case_lines(group.failures) + "        reproduce: " + first.reproduce + "\n";
}

}  // namespace

bool is_failure(const Finished& finished) {
  const Outcome outcome = finished.result.outcome;
  return outcome == Outcome::failed || outcome == Outcome::untrusted;
}

std::string signature_of(const Finished& failure) {
  return fmt::format("{} {} {} {}", failure.op, name_of(failure.result.outcome), kind_of(failure),
                     cause_of(failure));
}

std::vector<FailureGroup> failure_groups(const std::vector<Finished>& all) {
  std::vector<FailureGroup> groups;
  for (const Finished& one : all) {
    if (!is_failure(one)) continue;
    const std::string signature = signature_of(one);
    auto found = std::ranges::find(groups, signature, &FailureGroup::signature);
    if (found == groups.end()) found = groups.insert(found, {signature, {}});
    found->failures.push_back(&one);
  }
  return groups;
}

std::string repeated_failure_text(const Finished& failure, const std::string& first,
                                  const Style& style) {
  const bool failed = failure.result.outcome == Outcome::failed;
  const std::string word = failed ? style.paint("FAIL", "1;31") : style.paint("UNTRUSTED", "1;33");
  return fmt::format("{}  {}   {}   as {}\n", word, failure.result.id, failure.result.platform,
                     first);
}

std::string failure_summary(const std::vector<Finished>& all, const std::vector<Task>& tasks,
                            const Style& style) {
  const std::vector<FailureGroup> groups = failure_groups(all);
  if (groups.empty()) return "";
  const auto cases = std::ranges::count_if(all, is_failure);
  std::string text =
      fmt::format("\n{}: {} case{}", style.paint("failures", "1;31"), cases, cases == 1 ? "" : "s");
  text += groups.size() == 1 ? "\n" : fmt::format(" in {} groups that look alike\n", groups.size());
  for (const FailureGroup& group : groups) {
    text += group_text(group, contrast_of(group, all, tasks));
  }
  return text;
}

}  // namespace plumb::tools
