// SPDX-License-Identifier: Apache-2.0
//
// plumb golden diff lists the differences between stored results (goldens) of two platforms,
// revisions or files. plumb golden approve takes over the results of a reviewed file into the
// store. plumb golden show prints a file as text.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "golden/dependence.h"
#include "golden/regenerate.h"
#include "tools/commands.h"
#include "tools/golden/diff_operands.h"
#include "tools/golden/diff_report.h"
#include "tools/golden/golden_check.h"
#include "tools/golden/golden_text.h"
#include "tools/output.h"
#include "tools/run/installed_files.h"

namespace plumb::tools {

namespace {

using golden::CaseGolden;
using golden::Change;
using golden::GoldenFile;
using Entry = DiffOperand::Entry;

golden::Store store_of(const GoldenArguments& arguments) {
  return golden::Store(golden_folder_of(arguments));
}

std::set<std::string> platforms_of(const DiffOperand& side) {
  std::set<std::string> platforms;
  for (const Entry& entry : side.entries) platforms.insert(entry.platform);
  return platforms;
}

// Pairs files of one op, and of one platform if a side has several platforms. If one side has a
// single platform, files of other platforms on the other side are left out.
using Pairs = std::map<std::string, std::pair<const Entry*, const Entry*>>;
Pairs pairs_of(const DiffOperand& a, const DiffOperand& b) {
  const std::set<std::string> of_a = platforms_of(a), of_b = platforms_of(b);
  const bool by_op = of_a.size() == 1 && of_b.size() == 1;
  Pairs pairs;
  const auto key = [&](const Entry& entry) {
    return by_op ? entry.op : golden::file_name(entry.platform, entry.op);
  };
  const auto wanted = [&](const Entry& entry, const std::set<std::string>& other) {
    return by_op || other.size() > 1 || other.contains(entry.platform);
  };
  for (const Entry& entry : a.entries) {
    if (wanted(entry, of_b)) pairs[key(entry)].first = &entry;
  }
  for (const Entry& entry : b.entries) {
    if (wanted(entry, of_a)) pairs[key(entry)].second = &entry;
  }
  std::erase_if(pairs, [&](const auto& pair) {
    return (a.is_file && !pair.second.first) || (b.is_file && !pair.second.second);
  });
  return pairs;
}

Change change_of(const CaseGolden* had, const CaseGolden* has) {
  if (!had) return {.kind = Change::Fate::added, .id = has->id};
  if (!has) return {.kind = Change::Fate::removed, .id = had->id};
  return {.kind = Change::Fate::moved, .id = had->id, .drifts = golden::drift_between(*had, *has)};
}

void put_text(const DifferentCase& one) {
  put(golden::text_of(one.change));
  if (!one.because_of.empty()) put(fmt::format("      because of: {}\n", one.because_of));
}

// Files of the two sides; one may be null.
struct FilePair {
  const GoldenFile *had, *has;

  std::string platform() const {
    if (!had || !has || had->platform == has->platform) return (had ? had : has)->platform;
    return fmt::format("{}, {}", had->platform, has->platform);
  }
  bool platforms_differ() const { return had && has && had->platform != has->platform; }
  std::set<std::string> ids() const {
    std::set<std::string> ids;
    for (const GoldenFile* file : {had, has}) {
      if (!file) continue;
      for (const CaseGolden& golden : file->cases) ids.insert(golden.id);
    }
    return ids;
  }
};

void compare_case(const std::string& id, const FilePair& files, bool prints, GoldenDiff& diff) {
  const CaseGolden* had = files.had ? files.had->find(id) : nullptr;
  const CaseGolden* has = files.has ? files.has->find(id) : nullptr;
  if (had && has && golden::results_digest(*had) == golden::results_digest(*has)) {
    ++diff.same;
    return;
  }
  DifferentCase one{change_of(had, has), files.platform(), ""};
  if (files.platforms_differ() && had && has) {
    const std::string causes = golden::causes_of(*had, *has);
    one.because_of = causes.empty() ? "unknown" : causes;
  }
  if (prints) put_text(one);
  diff.cases.push_back(std::move(one));
}

void compare_pair(const std::pair<const Entry*, const Entry*>& pair, bool prints,
                  GoldenDiff& diff) {
  const auto& [had, has] = pair;
  std::optional<GoldenFile> before, after;
  if (had) before = had->load();
  if (had && has && had->digest == has->digest) {
    diff.same += before->cases.size();
    return;
  }
  if (has) after = has->load();
  const FilePair files{before ? &*before : nullptr, after ? &*after : nullptr};
  for (const std::string& id : files.ids()) compare_case(id, files, prints, diff);
}

void print_summary(const GoldenDiff& diff) {
  put(fmt::format("{} and {}: {} cases the same, {} different\n", diff.before, diff.after,
                  diff.same, diff.cases.size()));
  for (const auto& [cause, cases] : diff.causes()) put(fmt::format("{:>6}  {}\n", cases, cause));
  for (const auto& [file, digest] : diff.results)
    put(fmt::format("{}: results {}\n", file, digest));
}

}  // namespace

int golden_diff_command(const GoldenArguments& arguments) {
  check_diff_reports(arguments);
  const golden::Store store = store_of(arguments);
  const DiffOperand a = diff_operand(arguments.first, store),
                    b = diff_operand(arguments.second, store);
  const Pairs pairs = pairs_of(a, b);
  if (pairs.empty())
    throw UsageError(fmt::format("{} and {} have no op in common", a.name, b.name));
  GoldenDiff diff{.before = a.name, .after = b.name};
  const bool prints = prints_text(arguments);
  for (const auto& [key, pair] : pairs) compare_pair(pair, prints, diff);
  for (const DiffOperand* side : {&a, &b}) {
    if (!side->is_file) continue;
    diff.results[side->name] = golden::results_digest(side->entries.front().load());
  }
  if (prints) print_summary(diff);
  write_diff_reports(arguments, diff);
  return diff.cases.empty() ? 0 : 1;
}

int golden_show_command(const GoldenArguments& arguments) {
  write_text(read_golden_file(arguments.first), put);
  return 0;
}

int golden_approve_command(const GoldenArguments& arguments) {
  require_reason(arguments.reason);
  const golden::FolderLock lock(changed_golden_folder_of(arguments));
  golden::Store store = store_of(arguments);
  GoldenFile reviewed = read_golden_file(arguments.first);
  if (golden::results_digest(reviewed) != arguments.results) {
    throw UsageError(fmt::format("{} holds other results than those reviewed: {}", arguments.first,
                                 golden::results_digest(reviewed)));
  }
  golden::GoldenChanges difference;
  if (const auto stored = store.load(reviewed.platform, reviewed.op)) difference.next = *stored;
  GoldenFile& next = difference.next;
  next.platform = reviewed.platform;
  next.op = reviewed.op;
  next.simulated = reviewed.simulated;
  for (CaseGolden& golden : reviewed.cases) {
    const CaseGolden* had = next.find(golden.id);
    if (had && golden::results_digest(*had) == golden::results_digest(golden)) continue;
    difference.changes.push_back(change_of(had, &golden));
    put(golden::text_of(difference.changes.back()));
    std::erase_if(next.cases, [&](const CaseGolden& other) { return other.id == golden.id; });
    next.cases.insert(std::upper_bound(next.cases.begin(), next.cases.end(), golden,
                                       [](const auto& x, const auto& y) { return x.id < y.id; }),
                      golden);
  }
  if (!difference.changes.empty()) {
    next.history.push_back(
        golden::history_line(difference, {own_commit(), "plumb golden approve", arguments.reason}));
    store.replace({next});
  }
  put(fmt::format("{}: {} cases changed\n", golden::file_name(next.platform, next.op),
                  difference.changes.size()));
  return 0;
}

}  // namespace plumb::tools
