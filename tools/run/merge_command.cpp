// SPDX-License-Identifier: Apache-2.0
//
// plumb merge: combines the reports of all shards of a run into one report.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/commands.h"
#include "tools/coverage.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/run/failure_groups.h"
#include "tools/run/report_reader.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

struct ReportOfPart {
  std::string path;
  RunReport report;
};

// Requires that both reports have the same version and commit of plumb, tier, seed and plug-in.
void check_alike(const ReportOfPart& a, const ReportOfPart& b) {
  const auto require = [&](const char* what, const std::string& first, const std::string& second) {
    if (first == second) return;
    throw UsageError(
        fmt::format("merge: {} has {} {}, and {} {}", a.path, what, first, b.path, second));
  };
  require("tier", a.report.tier, b.report.tier);
  require("seed", fmt::to_string(a.report.seed), fmt::to_string(b.report.seed));
  for (const char* name : {"plumb", "commit", "plugin_digest"}) {
    require(name, text_of(a.report.origin, name), text_of(b.report.origin, name));
  }
}

void check_whole(const ReportOfPart& one) {
  if (one.report.interruption) {
    throw UsageError(fmt::format("merge: {}: {}; plumb run --resume continues it", one.path,
                                 text_of(*one.report.interruption, one.report.all.size())));
  }
  const auto& share = one.report.share;
  if (share && share->numbers.size() != one.report.all.size()) {
    throw UsageError(fmt::format("merge: {} has {} of its {} cases", one.path,
                                 one.report.all.size(), share->numbers.size()));
  }
}

// Requires that the reports are all shards of one division, each once.
void check_shards(const std::vector<ReportOfPart>& reports, std::size_t total) {
  std::map<std::size_t, std::string> paths;
  for (const auto& [path, report] : reports) {
    if (!report.share || report.share->total != total) {
      throw UsageError(
          fmt::format("merge: {} is not a shard of {}, but another file is", path, total));
    }
    const auto [known, is_new] = paths.emplace(report.share->index, path);
    if (is_new) continue;
    throw UsageError(fmt::format("merge: {} and {} are both shard {} of {}", known->second, path,
                                 report.share->index + 1, total));
  }
  for (std::size_t i = 0; i < total; ++i) {
    if (!paths.contains(i)) {
      throw UsageError(fmt::format("merge: shard {} of {} is missing", i + 1, total));
    }
  }
}

// Cases in the order of the whole run. If the reports are not shards: in the order of the files.
std::vector<Finished> cases_of_all(std::vector<ReportOfPart>& reports) {
  std::map<std::size_t, Finished> by_number;
  std::set<std::pair<std::string, std::string>> seen;
  for (auto& [path, report] : reports) {
    for (std::size_t i = 0; i < report.all.size(); ++i) {
      Finished& one = report.all[i];
      if (!seen.emplace(one.result.id, one.result.platform).second) {
        throw UsageError(fmt::format("merge: {} has {} {}, like an earlier file", path,
                                     one.result.id, one.result.platform));
      }
      const std::size_t number = report.share ? report.share->numbers[i] : by_number.size();
      if (!by_number.emplace(number, std::move(one)).second) {
        throw UsageError(
            fmt::format("merge: {} has the number {} of an earlier file: the shards belong to "
                        "different selections",
                        path, number));
      }
    }
  }
  std::vector<Finished> all;
  for (auto& [number, one] : by_number) {
    if (number != all.size()) {
      throw UsageError(fmt::format(
          "merge: no file has case number {}: the shards belong to different selections",
          all.size()));
    }
    all.push_back(std::move(one));
  }
  return all;
}

// Origin of the whole run: texts that differ between files are joined with " | ".
RunOrigin origin_of_all(const std::vector<ReportOfPart>& reports) {
  RunOrigin origin;
  for (const auto& [path, report] : reports) {
    for (const auto& [name, text] : report.origin) {
      const auto known = std::ranges::find(origin, name, &RunOrigin::value_type::first);
      if (known == origin.end()) {
        origin.emplace_back(name, text);
      } else if ((" | " + known->second + " | ").find(" | " + text + " | ") == std::string::npos) {
        known->second += " | " + text;
      }
    }
  }
  return origin;
}

void print(const std::vector<Finished>& all, bool quiet) {
  const Style style = style_of(STDOUT_FILENO);
  std::map<std::string, std::string> shown;
  double seconds = 0;
  for (const Finished& one : all) {
    seconds += one.seconds;
    if (!is_failure(one)) continue;
    const auto [known, first] =
        shown.emplace(signature_of(one), one.result.id + " " + one.result.platform);
    put(first ? failure_text(one, style) : repeated_failure_text(one, known->second, style));
  }
  put(summary_text(all, seconds, style));
  if (quiet) return;
  put(coverage_text(all));
  put(features_text(all));
}

}  // namespace

int merge_command(const MergeArguments& arguments) {
  check_writable(arguments.json);
  if (!arguments.junit.empty()) check_writable(arguments.junit);
  std::vector<ReportOfPart> reports;
  for (const std::string& path : arguments.reports) {
    reports.push_back({path, read_run_report(path)});
    check_whole(reports.back());
    check_alike(reports.front(), reports.back());
  }
  const auto is_shard = [](const ReportOfPart& one) { return one.report.share.has_value(); };
  const auto shard = std::ranges::find_if(reports, is_shard);
  if (shard != reports.end()) check_shards(reports, shard->report.share->total);
  RunReport whole{.tier = reports.front().report.tier,
                  .seed = reports.front().report.seed,
                  .plugin = reports.front().report.plugin,
                  .origin = origin_of_all(reports)};
  for (const ReportOfPart& one : reports) whole.without_pictures += one.report.without_pictures;
  whole.all = cases_of_all(reports);
  write_file(arguments.json, to_json(whole));
  if (!arguments.junit.empty()) write_file(arguments.junit, to_junit(whole.all));
  print(whole.all, arguments.quiet);
  return proves_nothing(whole.all) ? 1 : exit_code(whole.all);
}

}  // namespace plumb::tools
