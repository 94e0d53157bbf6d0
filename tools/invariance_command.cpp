// SPDX-License-Identifier: Apache-2.0
//
// plumb invariance: measures whether a row's bits depend on the batch around it. This is a report
// and not a verdict: the exit code is 0.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cases/studies/invariance.h"
#include "cases/tables/contract.h"
#include "device/device.h"
#include "device/remote/connection.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"

namespace plumb::tools {

namespace {

using cases::BatchDifference;
using cases::InvarianceResult;
using nlohmann::ordered_json;

std::vector<std::int64_t> parse_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at <= end;) {
    std::int64_t size = 0;
    const auto [stop, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > 65536 || (stop != end && *stop != ',')) {
      throw UsageError(fmt::format("--sizes is a list of 1 .. 65536 as 1,2,16, not \"{}\"", text));
    }
    sizes.push_back(size);
    at = stop + 1;
  }
  return sizes;
}

// One case per row. Unless the command line names cases, only rows that have a concurrent case
// before the full tier are taken, as representatives of their op.
std::vector<cases::Case> chosen_rows(const std::vector<cases::Case>& selected, bool named) {
  std::vector<cases::Case> rows;
  std::set<std::string> seen;
  for (const cases::Case& which : selected) {
    if (!named && which.row.concurrent == cases::Tier::full) continue;
    if (seen.insert(fmt::format("{}/{}", which.op->name, which.row.name)).second) {
      rows.push_back(which);
    }
  }
  return rows;
}

std::string text_of(const BatchDifference& difference) {
  return fmt::format("size {}, {}: {} {} {:.9g}, alone {:.9g}, {:.0f} ulp; {} elements differ",
                     difference.size, difference.last ? "last" : "first", difference.tensor,
                     difference.coordinates, difference.in_batch, difference.alone, difference.ulp,
                     difference.elements);
}

std::string text_of(const InvarianceResult& result) {
  std::string verdict;
  if (!result.not_measured.empty()) {
    verdict = "not measured: " + result.not_measured;
  } else if (result.differs.empty()) {
    verdict = fmt::format("invariant in {}", result.batch);
  } else {
    verdict = fmt::format("differs in {} of {} sizes of {}; first {}", result.differs.size(),
                          result.sizes.size(), result.batch, text_of(result.differs.front()));
  }
  return fmt::format("{:<66}{:<12}{}\n", result.op + "/" + result.row, result.platform, verdict);
}

ordered_json to_json(const InvarianceResult& result) {
  ordered_json json{{"op", result.op},
                    {"row", result.row},
                    {"platform", result.platform},
                    {"invariant", result.not_measured.empty() && result.differs.empty()}};
  if (!result.not_measured.empty()) {
    json["not_measured"] = result.not_measured;
    return json;
  }
  json["batch"] = result.batch;
  json["sizes"] = result.sizes;
  json["differs"] = ordered_json::array();
  for (const BatchDifference& d : result.differs) {
    json["differs"].push_back({{"size", d.size},
                               {"position", d.last ? "last" : "first"},
                               {"tensor", d.tensor},
                               {"at", d.coordinates},
                               {"ulp", d.ulp},
                               {"elements", d.elements}});
  }
  return json;
}

std::string summary_of(const std::vector<InvarianceResult>& all) {
  const auto count = [&](const auto& is) { return std::count_if(all.begin(), all.end(), is); };
  const auto measured = [](const InvarianceResult& r) { return r.not_measured.empty(); };
  return fmt::format("\n{} invariant, {} not, {} not measured\n",
                     count([&](const auto& r) { return measured(r) && r.differs.empty(); }),
                     count([&](const auto& r) { return measured(r) && !r.differs.empty(); }),
                     count([&](const auto& r) { return !measured(r); }));
}

constexpr double kPluginTimeout = 300;  // limit in seconds for the plug-in to introduce itself

// Measures the row under the contract of the plug-in, if there is one.
InvarianceResult measure(const cases::Case& any, const std::string& platform,
                         const std::string& plugin, const std::vector<std::int64_t>& sizes) {
  cases::RunOptions options;
  options.platform = platform;
  try {
    if (!plugin.empty()) options = with_plugin_process(std::move(options), plugin);
    const cases::Case which = cases::under_contract(options.implementation(platform, false), any);
    return cases::measure_invariance(*which.op, which.row, sizes, options);
  } catch (const device::remote::Died& death) {
    end_plugin_processes();
    return {.op = std::string(any.op->name),
            .row = any.row.name,
            .platform = platform,
            .not_measured = fmt::format("crash: {}", death.what())};
  }
}

}  // namespace

int invariance_command(const InvarianceArguments& arguments) {
  std::vector<std::int64_t> asked;
  if (!arguments.sizes.empty()) asked = parse_sizes(arguments.sizes);
  if (!arguments.json.empty()) check_writable(arguments.json);
  const Selected selected = select(arguments.selection);
  const std::string& plugin = arguments.selection.plugin;
  std::optional<PluginInfo> info;
  if (!plugin.empty()) info = probe_plugin(plugin, kPluginTimeout);
  std::vector<InvarianceResult> all;
  for (const cases::Case& which :
       chosen_rows(selected.cases, !arguments.selection.patterns.empty())) {
    if (info && !info->offers(which.op->name)) continue;
    for (const std::string& platform : selected.platforms) {
      const std::string why = device::why_unavailable(platform);
      if (!why.empty()) throw NotInThisBuild(fmt::format("{}: {}", platform, why));
      const auto sizes =
          asked.empty() ? cases::default_batch_sizes(device::open_device(platform)->properties())
                        : asked;
      all.push_back(measure(which, platform, plugin, sizes));
      put(text_of(all.back()));
    }
  }
  if (info && all.empty()) throw UsageError(info->text() + ": has no op of a selected case");
  if (all.empty())
    throw UsageError("no selected row is measured by default: name a row with --case");
  put(summary_of(all));
  if (arguments.json.empty()) return 0;
  ordered_json json = ordered_json::array();
  for (const InvarianceResult& result : all) json.push_back(to_json(result));
  write_file(arguments.json, json.dump(1) + "\n");
  return 0;
}

}  // namespace plumb::tools
