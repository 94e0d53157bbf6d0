// SPDX-License-Identifier: Apache-2.0
//
// plumb golden diff and approve.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "golden/dependence.h"
#include "golden/git.h"
#include "golden/regenerate.h"
#include "tools/commands.h"
#include "tools/golden/diff_operands.h"
#include "tools/golden/golden_check.h"
#include "tools/output.h"

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

// Files that belong together: of one op, and where a side has several platforms, of one platform.
// One side of a file takes of the other only what it has.
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

// Cases by what came of them.
struct CauseTally {
  std::size_t same = 0, different = 0;
  std::map<std::string, std::size_t> causes;
};

Change change_of(const CaseGolden* had, const CaseGolden* has) {
  if (!had) return {.kind = Change::Fate::added, .id = has->id};
  if (!has) return {.kind = Change::Fate::removed, .id = had->id};
  return {.kind = Change::Fate::moved, .id = had->id, .drifts = golden::drift_between(*had, *has)};
}

void compare_case(const CaseGolden* had, const CaseGolden* has, bool platforms_differ,
                  CauseTally& tally) {
  if (had && has && golden::results_digest(*had) == golden::results_digest(*has)) {
    ++tally.same;
    return;
  }
  ++tally.different;
  put(golden::text_of(change_of(had, has)));
  if (!platforms_differ || !had || !has) return;
  const std::string causes = golden::causes_of(*had, *has);
  put(fmt::format("      because of: {}\n", causes.empty() ? "unknown" : causes));
  ++tally.causes[causes.empty() ? "unknown" : causes];
}

void compare_files(const GoldenFile& a, const GoldenFile& b, bool platforms_differ,
                   CauseTally& tally) {
  std::set<std::string> ids;
  for (const GoldenFile* file : {&a, &b}) {
    for (const CaseGolden& golden : file->cases) ids.insert(golden.id);
  }
  for (const std::string& id : ids) compare_case(a.find(id), b.find(id), platforms_differ, tally);
}

void print_summary(const DiffOperand& a, const DiffOperand& b, const CauseTally& tally) {
  put(fmt::format("{} and {}: {} cases the same, {} different\n", a.name, b.name, tally.same,
                  tally.different));
  for (const auto& [cause, cases] : tally.causes) put(fmt::format("{:>6}  {}\n", cases, cause));
  for (const DiffOperand* side : {&a, &b}) {
    if (!side->is_file) continue;
    put(fmt::format("{}: results {}\n", side->name,
                    golden::results_digest(side->entries.front().load())));
  }
}

}  // namespace

int golden_diff_command(const GoldenArguments& arguments) {
  const golden::Store store = store_of(arguments);
  const DiffOperand a = diff_operand(arguments.first, store),
                    b = diff_operand(arguments.second, store);
  const Pairs pairs = pairs_of(a, b);
  if (pairs.empty())
    throw UsageError(fmt::format("{} and {} have no op in common", a.name, b.name));
  CauseTally tally;
  for (const auto& [key, pair] : pairs) {
    const auto& [had, has] = pair;
    const GoldenFile none;
    const GoldenFile before = had ? had->load() : none;
    if (had && has && had->digest == has->digest) {
      tally.same += before.cases.size();
      continue;
    }
    compare_files(before, has ? has->load() : none, had && has && had->platform != has->platform,
                  tally);
  }
  print_summary(a, b, tally);
  return tally.different == 0 ? 0 : 1;
}

int golden_approve_command(const GoldenArguments& arguments) {
  require_reason(arguments.reason);
  const golden::FolderLock lock(golden_folder_of(arguments));
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
    next.history.push_back(golden::history_line(
        difference, {golden::commit_of(PLUMB_SOURCE), "plumb golden approve", arguments.reason}));
    store.replace({next});
  }
  put(fmt::format("{}: {} cases changed\n", golden::file_name(next.platform, next.op),
                  difference.changes.size()));
  return 0;
}

}  // namespace plumb::tools
