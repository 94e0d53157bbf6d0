// SPDX-License-Identifier: Apache-2.0
#include "tools/html/golden_page.h"

#include <fmt/format.h>

#include <utility>

#include "tools/html/run_page.h"

namespace plumb::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kGoldenWord = 300, kGoldenLine = 2000, kGoldenCases = 5000, kMostDrifts = 12,
                      kMostElements = 8, kMostColumns = 12, kGoldenLines = 20,
                      kMostNoScriptText = 300'000;

bool is_set(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

ordered_json statistics_in(const json& object, const char* name) {
  const json& all = json_object(object, name);
  if (all.empty()) return nullptr;
  ordered_json data = ordered_json::object();
  for (const char* member : {"norm", "mean", "least", "greatest", "non_finite"})
    data[member] = value_in(all, member);
  return data;
}

// [row, column, before, after, ulp]; numbers that JSON lacks are text.
ordered_json element_in(const json& one) {
  ordered_json data = ordered_json::array();
  for (const json& value : one) {
    if (data.size() == 5) break;
    data.push_back(value.is_number()   ? ordered_json(value)
                   : value.is_string() ? ordered_json(clipped(value.get<std::string>(), 40))
                                       : ordered_json(nullptr));
  }
  return data;
}

ordered_json before_and_after(const json& drift) {
  ordered_json data{{"was", statistics_in(drift, "was")},
                    {"is", statistics_in(drift, "is")},
                    {"largest", ordered_json::array()},
                    {"histogram", ordered_json::array()}};
  for (const json& one : json_array(drift, "largest")) {
    if (one.is_array() && data["largest"].size() < kMostElements)
      data["largest"].push_back(element_in(one));
  }
  for (const auto& [name, count] : json_object(drift, "histogram").items()) {
    if (count.is_number() && data["histogram"].size() < kMostColumns)
      data["histogram"].push_back({clipped(name, 40), count});
  }
  return data;
}

ordered_json moved_tensor(const json& drift) {
  ordered_json data{{"tensor", clipped(json_text(drift, "tensor"), kGoldenWord)},
                    {"rows_moved", value_in(drift, "rows_moved")},
                    {"rows", value_in(drift, "rows")},
                    {"moved_rows", clipped(json_text(drift, "moved_rows"), kGoldenWord)},
                    {"elements_moved", value_in(drift, "stored_elements_moved")},
                    {"elements", value_in(drift, "stored_elements")},
                    {"ulp", value_in(drift, "ulp")},
                    {"of_bound", value_in(drift, "of_bound")},
                    {"rejected", is_set(drift, "rejected")},
                    {"difference", value_in(drift, "difference")},
                    {"estimated", is_set(drift, "estimated")},
                    {"where", clipped(json_text(drift, "where"), kGoldenWord)}};
  for (const char* name : {"other", "columns"}) {
    if (const std::string text = json_text(drift, name); !text.empty())
      data[name] = clipped(text, kGoldenWord);
  }
  return data;
}

ordered_json different_case(const json& one, std::size_t& room) {
  ordered_json data{{"case", clipped(json_text(one, "case"), kGoldenWord)},
                    {"platform", clipped(json_text(one, "platform"), kGoldenWord)},
                    {"change", clipped(json_text(one, "change"), 40)},
                    {"drift", moved_tensors(one, room)}};
  if (const std::string cause = json_text(one, "because_of"); !cause.empty())
    data["because_of"] = clipped(cause, kGoldenWord);
  for (const json& line : json_array(one, "rejected")) {
    if (line.is_string() && data["rejected"].size() < kGoldenLines)
      data["rejected"].push_back(clipped(line.get<std::string>(), kGoldenLine));
  }
  return data;
}

}  // namespace

ordered_json moved_tensors(const json& object, std::size_t& room) {
  ordered_json all = ordered_json::array();
  for (const json& drift : json_array(object, "drift")) {
    if (all.size() == kMostDrifts) break;
    all.push_back(moved_tensor(drift));
    ordered_json values = before_and_after(drift);
    const std::size_t size = values.dump(-1, ' ', false, json::error_handler_t::replace).size();
    if (size > room) continue;
    room -= size;
    all.back().update(values);
  }
  return all;
}

ordered_json goldens_data(const ReadReport& report) {
  std::size_t room = kDriftBytes;
  ordered_json data{{"before", clipped(json_text(report.json, "before"), kGoldenWord)},
                    {"after", clipped(json_text(report.json, "after"), kGoldenWord)},
                    {"same", json_number(report.json, "same")},
                    {"different", report.json["cases"].size()},
                    {"because_of", ordered_json::array()},
                    {"results", ordered_json::array()},
                    {"cases", ordered_json::array()}};
  for (const auto& [name, count] : json_object(report.json, "because_of").items()) {
    if (count.is_number() && data["because_of"].size() < kGoldenLines)
      data["because_of"].push_back({clipped(name, kGoldenWord), count});
  }
  for (const auto& [name, digest] : json_object(report.json, "results").items()) {
    if (digest.is_string() && data["results"].size() < kGoldenLines)
      data["results"].push_back(
          {clipped(name, kGoldenWord), clipped(digest.get<std::string>(), kGoldenWord)});
  }
  for (const json& one : report.json["cases"]) {
    if (data["cases"].size() < kGoldenCases) data["cases"].push_back(different_case(one, room));
  }
  return data;
}

std::string goldens_as_text(const ordered_json& data) {
  std::string text;
  for (const ordered_json& one : data["cases"]) {
    if (text.size() > kMostNoScriptText) break;
    text += fmt::format("{}  {}  {}\n", one.value("change", ""), one.value("case", ""),
                        one.value("platform", ""));
    for (const ordered_json& drift : one["drift"]) {
      text += fmt::format("    {}: rows {}; {}\n", drift.value("tensor", ""),
                          drift.value("moved_rows", ""), drift.value("where", ""));
    }
  }
  return text.empty() ? "All cases have the same results.\n" : text;
}

}  // namespace plumb::tools
