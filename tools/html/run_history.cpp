// SPDX-License-Identifier: Apache-2.0
#include "tools/html/run_history.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "tools/html/run_page.h"

namespace plumb::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kCasesListed = 300, kSeriesListed = 400, kMostNameBytes = 300;

using Cell = std::tuple<std::string, std::string, std::string>;  // op, scenario, platform
using Series = std::pair<std::string, std::string>;              // op, tensor

struct CaseState {
  std::string outcome;
  bool failed() const { return outcome == "failed" || outcome == "untrusted"; }
};

// The part of a report that is compared with other reports.
struct RunDigest {
  std::map<std::pair<std::string, std::string>, CaseState> cases;  // by case and platform
  std::map<Cell, int> coverage;
  std::map<Series, double> margins;
};

void note_margins(const json& one, const std::string& op, RunDigest& digest) {
  for (const json& tensor : json_array(one, "tensors")) {
    const std::string name = json_text(tensor, "tensor");
    if (name.empty() || !tensor.contains("margin") || !tensor["margin"].is_number()) continue;
    double& largest = digest.margins[{op, name}];
    largest = std::max(largest, json_number(tensor, "margin"));
  }
}

RunDigest digest_of(const ReadReport& report) {
  RunDigest digest;
  for (const json& one : report.json["cases"]) {
    const std::string id = json_text(one, "case"), platform = json_text(one, "platform");
    const std::string outcome = json_text(one, "outcome"), op = part_of_case(id, 0);
    digest.cases[{id, platform}] = {outcome};
    digest.coverage[{op, part_of_case(id, 2), platform}] += json_number(one, "comparisons") > 0;
    if (outcome == "passed") note_margins(one, op, digest);
  }
  return digest;
}

ordered_json summary_of(const ReadReport& report, const RunDigest& digest) {
  std::map<std::string, int> outcomes;
  for (const auto& [name, state] : digest.cases) ++outcomes[clipped(state.outcome, 40)];
  int compared = 0;
  for (const auto& [cell, count] : digest.coverage) compared += count;
  return {{"file", clipped(report.path, kMostNameBytes)},
          {"run", run_members(report.json)},
          {"cases", digest.cases.size()},
          {"compared", compared},
          {"outcomes", outcomes}};
}

// Margins of each tensor over all reports; null for a report in which no case of it passed.
ordered_json series_over(const std::vector<RunDigest>& digests) {
  ordered_json all = ordered_json::array();
  for (const auto& [name, last] : digests.back().margins) {
    ordered_json points = ordered_json::array();
    for (const RunDigest& digest : digests) {
      const auto found = digest.margins.find(name);
      points.push_back(found == digest.margins.end() ? ordered_json()
                                                     : ordered_json(found->second));
    }
    if (all.size() < kSeriesListed)
      all.push_back(
          {clipped(name.first, kMostNameBytes), clipped(name.second, kMostNameBytes), points});
  }
  return all;
}

ordered_json lost_cells(const RunDigest& before, const RunDigest& now) {
  ordered_json lost = ordered_json::array();
  for (const auto& [cell, count] : before.coverage) {
    const auto found = now.coverage.find(cell);
    const int left = found == now.coverage.end() ? 0 : found->second;
    if (left >= count || lost.size() == kSeriesListed) continue;
    lost.push_back({{"op", clipped(std::get<0>(cell), kMostNameBytes)},
                    {"scenario", clipped(std::get<1>(cell), kMostNameBytes)},
                    {"platform", clipped(std::get<2>(cell), kMostNameBytes)},
                    {"before", count},
                    {"now", left}});
  }
  return lost;
}

// Cases of `all` for which `chosen` returns true. `chosen` gets a case's state and its state in
// `other`, nullptr if it is not there.
ordered_json listed(const RunDigest& all, const RunDigest& other, const auto& chosen) {
  ordered_json cases = ordered_json::array();
  std::size_t count = 0;
  for (const auto& [name, state] : all.cases) {
    const auto found = other.cases.find(name);
    if (!chosen(state, found == other.cases.end() ? nullptr : &found->second)) continue;
    if (++count <= kCasesListed)
      cases.push_back({clipped(name.first, kMostNameBytes), clipped(name.second, kMostNameBytes)});
  }
  return {{"count", count}, {"cases", cases}};
}

}  // namespace

ordered_json run_history(const std::vector<ReadReport>& reports) {
  std::vector<RunDigest> digests;
  ordered_json history{{"reports", ordered_json::array()}};
  for (const ReadReport& report : reports) {
    digests.push_back(digest_of(report));
    history["reports"].push_back(summary_of(report, digests.back()));
  }
  const RunDigest& now = digests.back();
  const RunDigest& before = digests[digests.size() - 2];
  history["margins"] = series_over(digests);
  history["lost"] = lost_cells(before, now);
  using State = const CaseState*;
  history["newly_failed"] = listed(now, before, [](const CaseState& state, State earlier) {
    return state.failed() && (earlier == nullptr || !earlier->failed());
  });
  history["newly_passed"] = listed(now, before, [](const CaseState& state, State earlier) {
    return state.outcome == "passed" && earlier != nullptr && earlier->failed();
  });
  history["vanished"] =
      listed(before, now, [](const CaseState&, State later) { return later == nullptr; });
  history["added"] =
      listed(now, before, [](const CaseState&, State earlier) { return earlier == nullptr; });
  return history;
}

}  // namespace plumb::tools
