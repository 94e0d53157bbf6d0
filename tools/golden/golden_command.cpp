// SPDX-License-Identifier: Apache-2.0
//
// plumb golden regen, check and approve: compare stored results with those computed now, and
// replace them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>

#include "device/plain_line.h"
#include "golden/regenerate.h"
#include "process/ordered_map.h"
#include "tools/commands.h"
#include "tools/golden/diff_report.h"
#include "tools/golden/golden_check.h"
#include "tools/golden/plugin_golden.h"
#include "tools/golden/step_golden.h"
#include "tools/output.h"
#include "tools/plugin.h"
#include "tools/run/installed_files.h"

namespace plumb::tools {

namespace {

using golden::Agreement;
using golden::Change;
using golden::GoldenChanges;
using golden::GoldenFile;

// Results of work(0) .. work(count - 1), computed in parallel if `side_by_side`, which is false on
// a real device.
template <class Result>
std::vector<Result> results_of(std::size_t count, bool side_by_side,
                               const std::function<Result(std::size_t)>& work) {
  const unsigned jobs = side_by_side ? std::max(1U, std::thread::hardware_concurrency()) : 1;
  std::vector<Result> all;
  process::ordered_map<Result>(
      count, static_cast<int>(jobs), work,
      [&](std::size_t, Result&& result) { all.push_back(std::move(result)); });
  return all;
}

bool has_golden(const cases::AnyCase& which) {
  const cases::Case* of_op = which.of_op();
  return of_op ? golden::wants_golden(*of_op) : wants_golden(*which.of_steps());
}

// Cases with a golden, grouped by op, in the order of the ops.
std::vector<std::vector<cases::AnyCase>> by_op(const std::vector<cases::AnyCase>& cases) {
  std::vector<std::vector<cases::AnyCase>> groups;
  for (const cases::AnyCase& which : cases) {
    if (!has_golden(which)) continue;
    if (groups.empty() || groups.back().front().op() != which.op()) groups.emplace_back();
    groups.back().push_back(which);
  }
  return groups;
}

Selection every_tier(Selection selection) {
  if (selection.tier.empty()) selection.tier = "full";
  return selection;
}

// Of a plug-in, the cases of the ops that it has.
SelectedAny selected_cases(const GoldenArguments& arguments) {
  const std::string& plugin = arguments.selection.plugin;
  SelectedAny selected =
      select_any(every_tier(arguments.selection),
                 plugin.empty() ? CaseKinds::ops_and_decode_steps : CaseKinds::ops);
  for (const std::string& platform : selected.platforms) {
    const std::string why = device::why_unavailable(platform);
    if (!why.empty()) throw UsageError(platform + ": " + why);
  }
  if (!arguments.goldens && !plugin.empty()) {
    throw UsageError("--plugin needs --goldens FOLDER: a store for the plug-in's results");
  }
  if (!arguments.goldens && !arguments.selection.case_files.empty()) {
    throw UsageError("--cases needs --goldens FOLDER: a store for the results of your rows");
  }
  if (!plugin.empty()) {
    constexpr double kIntroduction = 300;  // seconds for the plug-in to introduce itself
    const PluginInfo info = probe_plugin(plugin, kIntroduction);
    std::erase_if(selected.cases,
                  [&](const cases::AnyCase& which) { return !info.offers(which.op()); });
  }
  if (by_op(selected.cases).empty()) throw UsageError("no case with a golden is selected");
  return selected;
}

// Cases of the op that may have a golden: those of this build, and stored ones of recorded rows,
// whose files may be anywhere.
std::vector<std::string> known_ids(const std::string& op, const GoldenFile& stored) {
  std::vector<std::string> ids;
  for (const cases::AnyCase& which : cases::cases_of_all_kinds({}, {op})) {
    if (which.op() == op && has_golden(which)) ids.push_back(which.id());
  }
  for (const golden::CaseGolden& one : stored.cases) {
    if (one.id.starts_with(op + "/recorded_")) ids.push_back(one.id);
  }
  return ids;
}

GoldenFile stored_or_empty(const golden::Store& store, const std::string& platform,
                           const std::string& op) {
  if (auto stored = store.load(platform, op)) return *stored;
  GoldenFile file;
  file.platform = platform;
  file.op = op;
  file.simulated = device::open_device(platform)->properties().simulated;
  return file;
}

// Counts of changes by kind, and of changes that the reference rejects.
struct ChangeTally {
  std::size_t cases = 0, changed = 0, rejected = 0, sketched = 0;
  void add(const GoldenChanges& difference) {
    cases += difference.next.cases.size();
    changed += difference.changes.size();
    sketched += static_cast<std::size_t>(difference.sketched);
    for (const Change& change : difference.changes) rejected += !change.rejected.empty();
  }
};

ChangeTally print(const std::vector<GoldenChanges>& differences, bool prints) {
  ChangeTally tally;
  for (const GoldenChanges& difference : differences) {
    tally.add(difference);
    if (!prints) continue;
    for (const Change& change : difference.changes) put(golden::text_of(change));
  }
  return tally;
}

bool runs_side_by_side(const std::string& platform, const std::string& plugin) {
  return !is_real(platform) && plugin.empty();
}

// The differences of the cases of one op, or of decode steps.
GoldenChanges difference_of(const GoldenFile& stored, const std::vector<cases::AnyCase>& wanted,
                            const std::string& plugin, const golden::Author& author) {
  const std::vector<std::string> known = known_ids(stored.op, stored);
  std::vector<golden::Compute> all;
  for (const cases::AnyCase& which : wanted) {
    const cases::RunOptions options{.platform = stored.platform};
    if (!plugin.empty()) {
      all.push_back(compute_plugin(*which.of_op(), stored.platform, plugin));
    } else if (const cases::StepCase* const steps = which.of_steps()) {
      all.push_back(compute_steps(*steps, options));
    } else {
      all.emplace_back([&which, options] { return golden::result_of(*which.of_op(), options); });
    }
  }
  return golden::difference_of(stored, all, known, author);
}

std::vector<GoldenChanges> differences_of(const SelectedAny& selected, const golden::Store& store,
                                          const std::string& plugin, const golden::Author& author) {
  const std::string& platform = selected.platforms.front();
  const auto groups = by_op(selected.cases);
  const bool side_by_side = runs_side_by_side(platform, plugin);
  return results_of<GoldenChanges>(groups.size(), side_by_side, [&](std::size_t i) {
    const std::string op(groups[i].front().op());
    return difference_of(stored_or_empty(store, platform, op), groups[i], plugin, author);
  });
}

// The differences between the store and new results.
GoldenDiff diff_of(const std::vector<GoldenChanges>& differences, const std::string& folder,
                   const std::string& platform) {
  GoldenDiff diff{.before = folder + "/" + platform, .after = "computed now"};
  for (const GoldenChanges& difference : differences) {
    diff.same += static_cast<std::size_t>(difference.unchanged);
    for (const Change& change : difference.changes) diff.cases.push_back({change, platform, ""});
  }
  return diff;
}

void write(golden::Store& store, const std::vector<GoldenChanges>& differences) {
  std::vector<GoldenFile> changed;
  for (const GoldenChanges& difference : differences) {
    if (!difference.empty()) changed.push_back(difference.next);
  }
  if (!changed.empty()) store.replace(changed);
}

}  // namespace

std::string golden_folder_of(const GoldenArguments& arguments) {
  const std::string folder = arguments.goldens ? *arguments.goldens : own_goldens();
  if (arguments.goldens && folder.empty()) throw UsageError("--goldens names no folder");
  if (folder.empty()) {
    throw UsageError("no goldens where this plumb was built; --goldens names a store");
  }
  return folder;
}

std::string changed_golden_folder_of(const GoldenArguments& arguments) {
  const std::string folder = golden_folder_of(arguments);
  if (!arguments.goldens && !installed_files().empty()) {
    throw UsageError(folder +
                     ": the goldens of an installed plumb stay as they are; --goldens names"
                     " a store of your own");
  }
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    there = there.parent_path();
  }
  if (access(there.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("cannot write into {}: {}", there.string(), std::strerror(errno)));
  }
  return folder;
}

void require_reason(const std::string& reason) {
  if (reason.find_first_not_of(" \t\n") == std::string::npos) {
    throw UsageError("--reason is required: why results may change, in one line");
  }
  if (reason.size() > 1000 || reason != device::plain_line(reason)) {
    throw UsageError("--reason is one line of at most 1000 bytes");
  }
}

// As golden::commit_of writes it: a whole hash, with "+" behind it for changed sources.
void check_commit(std::string_view commit) {
  if (commit.ends_with('+')) commit.remove_suffix(1);
  if (commit.size() != 40 ||
      commit.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    throw UsageError("--commit is a hash of 40 hexadecimal digits, with \"+\" for changed sources");
  }
}

int golden_regen_command(const GoldenArguments& arguments) {
  if (!arguments.dry_run) require_reason(arguments.reason);
  if (!arguments.commit.empty()) check_commit(arguments.commit);
  if (arguments.selection.platforms.size() != 1 || arguments.selection.platforms[0] == "all") {
    throw UsageError("goldens of one platform at a time: --platform sim-sm90");
  }
  check_diff_reports(arguments);
  const SelectedAny selected = selected_cases(arguments);
  const std::string folder =
      arguments.dry_run ? golden_folder_of(arguments) : changed_golden_folder_of(arguments);
  std::optional<golden::FolderLock> lock;
  if (!arguments.dry_run) lock.emplace(folder);
  golden::Store store(folder);
  const std::string& platform = selected.platforms.front();
  const std::string commit = arguments.commit.empty() ? own_commit() : arguments.commit;
  const golden::Author author{commit, "plumb golden regen --platform " + platform, arguments.reason,
                              arguments.sketches};
  const std::vector<GoldenChanges> differences =
      differences_of(selected, store, arguments.selection.plugin, author);
  const bool prints = prints_text(arguments);
  const ChangeTally tally = print(differences, prints);
  write_diff_reports(arguments, diff_of(differences, folder, platform));
  if (tally.rejected > 0) {
    if (prints)
      put(fmt::format("{}: the reference rejects {} of {} changes; nothing is written\n", platform,
                      tally.rejected, tally.changed));
    return 1;
  }
  if (!arguments.dry_run) write(store, differences);
  if (prints)
    put(fmt::format(
        "{}: {} cases, {} of them changed{}{}\n", platform, tally.cases, tally.changed,
        tally.sketched == 0 ? "" : fmt::format(", {} got sketches or values", tally.sketched),
        tally.changed + tally.sketched == 0 ? ""
        : arguments.dry_run                 ? "; nothing is written"
                                            : "; written to " + store.folder()));
  return 0;
}

namespace {

// Counts of a platform's cases by the result of the comparison.
struct Checked {
  std::size_t cases = 0, same = 0, drifted = 0, near = 0, failed = 0, without = 0;
};

void add(const cases::AnyCase& which, const std::string& platform,
         const golden::GoldenComparison& comparison, Checked& checked) {
  ++checked.cases;
  checked.same += comparison.agreement == Agreement::same;
  checked.drifted += comparison.agreement == Agreement::drifted;
  checked.near += comparison.agreement == Agreement::near_bound;
  checked.failed += comparison.agreement == Agreement::failed;
  checked.without += comparison.agreement == Agreement::not_asked;
  if (comparison.agreement == Agreement::same || comparison.agreement == Agreement::not_asked) {
    return;
  }
  const std::string_view word = comparison.agreement == Agreement::failed ? "FAIL" : "drift";
  put(fmt::format("{}  {}   {}\n", word, which.id(), platform));
  for (const std::string& line : comparison.lines) put("      " + line + "\n");
  if (comparison.agreement == Agreement::failed) return;
  put(fmt::format("      within the bounds; {}\n", comparison.toolchain));
  for (const golden::TensorDrift& drift : comparison.drifts) put("      " + text_of(drift) + "\n");
}

// Lists files and cases of the store that this build does not have.
std::size_t check_orphans(const golden::Store& store, const std::string& platform) {
  std::vector<std::string> orphans;
  for (const std::string& name : store.strays()) {
    if (name.starts_with(platform + "/")) orphans.push_back(name + ": not in the manifest");
  }
  for (const auto& [name, digest] : store.manifest()) {
    if (!name.starts_with(platform + "/")) continue;
    const std::string op = name.substr(platform.size() + 1, name.size() - platform.size() - 4);
    const auto file = store.load(platform, op);
    const std::vector<std::string> known = known_ids(op, *file);
    for (const golden::CaseGolden& golden : file->cases) {
      if (std::find(known.begin(), known.end(), golden.id) == known.end()) {
        orphans.push_back(golden.id + ": a golden without a case");
      }
    }
  }
  for (const std::string& orphan : orphans) put(fmt::format("FAIL  {}   {}\n", orphan, platform));
  return orphans.size();
}

bool names_cases(const Selection& selection) {
  return !selection.patterns.empty() || !selection.ops.empty() || !selection.tier.empty();
}

// Returns the number of failures on one platform.
std::size_t check_platform(const SelectedAny& selected, const std::string& platform,
                           const GoldenArguments& arguments, GoldenChecker& checker) {
  std::vector<const cases::AnyCase*> wanted;
  for (const cases::AnyCase& which : selected.cases) {
    if (has_golden(which)) wanted.push_back(&which);
  }
  const std::string& plugin = arguments.selection.plugin;
  const auto comparisons = results_of<golden::GoldenComparison>(
      wanted.size(), runs_side_by_side(platform, plugin), [&](std::size_t i) {
        const cases::StepCase* const steps = wanted[i]->of_steps();
        if (!plugin.empty()) {
          return check_plugin(*wanted[i]->of_op(), platform, plugin, arguments.exact, checker);
        }
        const cases::RunOptions options{.platform = platform};
        return steps ? checker.check(*steps, options, arguments.exact)
                     : checker.check(*wanted[i]->of_op(), options, arguments.exact);
      });
  Checked checked;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    add(*wanted[i], platform, comparisons[i], checked);
  if (!names_cases(arguments.selection)) {
    checked.failed += check_orphans(checker.store(), platform);
  }
  put(fmt::format(
      "{}: {} cases: {} the same bits, {} drifted, {} of these near a bound; {} failures{}\n",
      platform, checked.cases, checked.same, checked.drifted + checked.near, checked.near,
      checked.failed,
      checked.without == 0 ? ""
                           : fmt::format("; {} compared nothing: not supported, or no promise of "
                                         "equal bits",
                                         checked.without)));
  return checked.failed;
}

}  // namespace

int golden_check_command(const GoldenArguments& arguments) {
  const SelectedAny selected = selected_cases(arguments);
  GoldenChecker checker(golden_folder_of(arguments),
                        regen_options(arguments.selection, arguments.goldens));
  std::size_t failures = 0;
  for (const std::string& platform : selected.platforms) {
    if (!checker.store().has(platform)) {
      throw UsageError(
          fmt::format("{}: has no goldens for {}", checker.store().folder(), platform));
    }
    failures += check_platform(selected, platform, arguments, checker);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace plumb::tools
