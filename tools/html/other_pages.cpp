// SPDX-License-Identifier: Apache-2.0
#include "tools/html/other_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/html/run_page.h"

namespace plumb::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMostWord = 300, kMostLine = 2000, kMostRuns = 2000, kMostCalls = 1000;
constexpr std::size_t kFindingsOfFault = 6, kMostSteps = 5000, kMostCallsOfStep = 4000;

bool is_true(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// Names of the detectors with findings, in the order of the findings.
ordered_json seen_by(const json& one) {
  ordered_json seen = ordered_json::array();
  for (const json& finding : json_array(one, "findings")) {
    const std::string name = clipped(json_text(finding, "detector"), 60);
    if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
  }
  return seen;
}

ordered_json watched_run(const json& one) {
  ordered_json data{{"findings", findings_in(one, kFindingsOfFault)}, {"seen", seen_by(one)}};
  for (const char* name :
       {"name", "platform", "mode", "schedule", "stands_for", "seen_by", "blind", "died"}) {
    if (const std::string text = json_text(one, name); !text.empty())
      data[name] = clipped(text, kMostLine);
  }
  if (const auto skipped = one.find("skipped"); skipped != one.end())
    data["skipped"] = clipped(json_text(one, "skipped"), kMostWord);
  for (const char* name : {"found", "blamed_first", "blind_saw_it", "within_numerics", "named"}) {
    if (one.contains(name)) data[name] = is_true(one, name);
  }
  data["steps"] = json_number(one, "steps");
  if (one.contains("broken") && one["broken"].is_array()) {
    for (const json& op : one["broken"]) {
      if (op.is_string()) data["broken"].push_back(clipped(op.get<std::string>(), kMostWord));
    }
  } else if (const std::string broken = json_text(one, "broken"); !broken.empty()) {
    data["broken"].push_back(clipped(broken, kMostWord));
  }
  if (const std::string text = json_text(json_object(one, "diagnosis"), "text"); !text.empty())
    data["diagnosis"] = clipped(text, kMostLine);
  return data;
}

ordered_json texts_in(const json& object, const char* name) {
  ordered_json texts = ordered_json::array();
  for (const json& text : json_array(object, name)) {
    if (text.is_string() && texts.size() < 40)
      texts.push_back(clipped(text.get<std::string>(), kMostLine));
  }
  return texts;
}

ordered_json wrong_call(const json& one) {
  ordered_json data{{"failures", texts_in(one, "failures")}};
  for (const char* name : {"call", "op", "name", "profile", "non_finite"}) {
    if (const std::string text = json_text(one, name); !text.empty())
      data[name] = clipped(text, kMostLine);
  }
  for (const char* name : {"rank", "step", "index", "layer", "replay", "rows", "rows_judged"}) {
    if (one.contains(name) && one[name].is_number()) data[name] = one[name];
  }
  return data;
}

ordered_json op_counts(const json& ops) {
  ordered_json rows = ordered_json::array();
  for (const auto& [op, count] : ops.items()) {
    if (!count.is_object() || rows.size() == kMostCalls) continue;
    rows.push_back({clipped(op, kMostWord), json_number(count, "calls"),
                    json_number(count, "passed"), json_number(count, "failed"),
                    json_number(count, "not_judged"), json_number(count, "margin")});
  }
  return rows;
}

ordered_json timeline_of(const json& report) {
  ordered_json steps = ordered_json::array();
  for (const json& step : json_array(report, "timeline")) {
    if (steps.size() == kMostSteps) break;
    steps.push_back({{"rank", json_number(step, "rank")},
                     {"step", json_number(step, "step")},
                     {"calls", json_text(step, "calls").substr(0, kMostCallsOfStep)}});
  }
  return steps;
}

}  // namespace

ordered_json findings_in(const json& object, std::size_t most) {
  ordered_json findings = ordered_json::array();
  for (const json& finding : json_array(object, "findings")) {
    if (findings.size() == most) break;
    findings.push_back({{"detector", clipped(json_text(finding, "detector"), 60)},
                        {"step", json_number(finding, "step")},
                        {"position", json_number(finding, "position")},
                        {"op", clipped(json_text(finding, "op"), kMostWord)},
                        {"call", clipped(json_text(finding, "call"), kMostWord)},
                        {"text", clipped(json_text(finding, "text"), kMostLine)}});
  }
  return findings;
}

ordered_json faults_data(const ReadReport& report) {
  ordered_json data{{"run", run_members(report.json)},
                    {"objections", texts_in(report.json, "objections")}};
  for (const char* list : {"faults", "elsewhere", "clean"}) {
    data[list] = ordered_json::array();
    for (const json& one : json_array(report.json, list)) {
      if (data[list].size() < kMostRuns && one.is_object()) data[list].push_back(watched_run(one));
    }
  }
  return data;
}

ordered_json judge_data(const ReadReport& report) {
  const json& all = report.json;
  ordered_json data{{"run", run_members(all)},
                    {"trace", clipped(json_text(all, "trace"), kMostWord)},
                    {"ops", op_counts(json_object(all, "ops"))},
                    {"timeline", timeline_of(all)},
                    {"wrong", ordered_json::array()}};
  const json& total = json_object(all, "total");
  for (const char* name : {"calls", "passed", "failed", "not_judged"})
    data["total"][name] = json_number(total, name);
  for (const json& one : all["wrong"]) {
    if (data["wrong"].size() < kMostCalls) data["wrong"].push_back(wrong_call(one));
  }
  for (const json& one : json_array(all, "not_judged")) {
    data["not_judged"].push_back({clipped(json_text(one, "op"), kMostWord),
                                  clipped(json_text(one, "why"), kMostWord),
                                  json_number(one, "calls")});
    if (data["not_judged"].size() == kMostCalls) break;
  }
  if (const json& first = json_object(all, "first_non_finite"); !first.empty())
    data["first_non_finite"] = wrong_call(first);
  return data;
}

std::string faults_as_text(const ordered_json& data) {
  std::string text;
  for (const ordered_json& line : data["objections"]) text += line.get<std::string>() + "\n";
  for (const ordered_json& one : data["faults"]) {
    if (one.value("found", true)) continue;
    text += fmt::format("missed: {} on {}\n", one.value("name", ""), one.value("platform", ""));
  }
  return text.empty() ? "Every fault was found, without a false alarm.\n" : text;
}

std::string judge_as_text(const ordered_json& data) {
  std::string text;
  for (const ordered_json& one : data["wrong"]) {
    text += fmt::format("wrong: call {} {}\n", one.value("call", ""), one.value("op", ""));
    for (const ordered_json& line : one["failures"])
      text += "    " + line.get<std::string>() + "\n";
    if (text.size() > 300'000) break;
  }
  return text.empty() ? "No call is wrong.\n" : text;
}

}  // namespace plumb::tools
