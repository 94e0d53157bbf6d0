// SPDX-License-Identifier: Apache-2.0
#include "tools/judge/rank_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/judge/judge_report.h"

namespace plumb::tools {

namespace {

constexpr std::size_t kListedFindings = 1000;

std::string difference_of(const trace::RankFinding& finding) {
  const std::string from = finding.collective.empty()
                               ? fmt::format("differs from that of rank {}", finding.other)
                               : fmt::format("is not the {} of the parts", finding.collective);
  const std::string count =
      finding.of_elements == 0
          ? ""
          : fmt::format("{} of {} elements, the first at ", finding.elements, finding.of_elements);
  return fmt::format("{} of rank {} {}: {}{}", finding.tensor, finding.call.rank, from, count,
                     finding.first);
}

nlohmann::ordered_json json_of_finding(const trace::RankFinding& finding) {
  nlohmann::ordered_json json{{"call", call_id(finding.call)}, {"tensor", finding.tensor}};
  if (finding.collective.empty()) {
    json["other_rank"] = finding.other;
  } else {
    json["collective"] = finding.collective;
  }
  json["elements"] = finding.elements;
  json["of_elements"] = finding.of_elements;
  json["first"] = finding.first;
  return json;
}

}  // namespace

void RankSummary::add(trace::RankReport report) {
  if (report.checked == 0 && report.not_compared.empty()) return;
  steps_.insert_or_assign(report.step, std::move(report));
}

RankSummary::Counts RankSummary::counts() const {
  Counts all;
  for (const auto& [number, step] : steps_) {
    all.checked += step.checked;
    all.wrong += step.wrong;
    for (const auto& [why, comparisons] : step.not_compared) all.not_compared[why] += comparisons;
  }
  return all;
}

const trace::RankFinding* RankSummary::first() const {
  for (const auto& [number, step] : steps_) {
    if (!step.found.empty()) return &step.found.front();
  }
  return nullptr;
}

std::string RankSummary::failure_text(const Style& style) const {
  const trace::RankFinding* const found = first();
  if (found == nullptr) return "";
  return style.paint("FIRST DIFFERENCE BETWEEN RANKS", "31;1") +
         fmt::format("  {}\n      {}\n", place_of(found->call), difference_of(*found));
}

std::string RankSummary::text() const {
  if (steps_.empty()) return "";
  const Counts all = counts();
  std::string text = "ranks: nothing was compared with other ranks\n";
  if (all.checked > 0) {
    text = fmt::format("ranks: {} tensors were compared with other ranks, {}\n", all.checked,
                       all.wrong == 0 ? "all right" : fmt::format("{} wrong", all.wrong));
  }
  for (const auto& [why, comparisons] : all.not_compared) {
    text += fmt::format("       {} not compared: {}\n", comparisons, why);
  }
  return text;
}

nlohmann::ordered_json RankSummary::json() const {
  const Counts all = counts();
  nlohmann::ordered_json json{{"checked", all.checked},
                              {"wrong", all.wrong},
                              {"not_compared", all.not_compared},
                              {"found", nlohmann::ordered_json::array()}};
  for (const auto& [number, step] : steps_) {
    for (const trace::RankFinding& finding : step.found) {
      if (json["found"].size() < kListedFindings) json["found"].push_back(json_of_finding(finding));
    }
  }
  return json;
}

std::string RankSummary::junit() const {
  if (steps_.empty()) return "";
  const trace::RankFinding* const found = first();
  if (found == nullptr) return "    <testcase name=\"ranks\" classname=\"trace\"/>\n";
  return fmt::format(
      "    <testcase name=\"ranks\" classname=\"trace\">\n      <failure message=\"{}\">{}"
      "</failure>\n    </testcase>\n",
      escape_xml(place_of(found->call)), escape_xml(failure_text({.color = false})));
}

}  // namespace plumb::tools
