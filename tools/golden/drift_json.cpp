// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/drift_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "tools/run/report_number.h"

namespace plumb::tools {

namespace {

using golden::kHistogram;
using golden::MovedElement;
using golden::TensorDrift;
using golden::TensorStatistics;
using nlohmann::ordered_json;

ordered_json statistics_to_json(const TensorStatistics& all) {
  return {{"norm", all.norm},
          {"mean", all.mean},
          {"least", all.least},
          {"least_at", all.least_at},
          {"greatest", all.greatest},
          {"greatest_at", all.greatest_at},
          {"non_finite", all.non_finite}};
}

TensorStatistics statistics_from_json(const ordered_json& json) {
  TensorStatistics all;
  json.at("norm").get_to(all.norm);
  json.at("mean").get_to(all.mean);
  json.at("least").get_to(all.least);
  json.at("least_at").get_to(all.least_at);
  json.at("greatest").get_to(all.greatest);
  json.at("greatest_at").get_to(all.greatest_at);
  json.at("non_finite").get_to(all.non_finite);
  return all;
}

// {"1": 800, "2": 12}
ordered_json histogram_to_json(const TensorDrift& drift) {
  ordered_json json = ordered_json::object();
  for (std::size_t i = 0; i < kHistogram.size(); ++i) {
    if (drift.histogram[i] > 0) json[std::string(kHistogram[i])] = drift.histogram[i];
  }
  return json;
}

void histogram_from_json(const ordered_json& json, TensorDrift& drift) {
  for (const auto& [name, count] : json.items()) {
    const auto column = std::find(kHistogram.begin(), kHistogram.end(), name);
    if (column == kHistogram.end()) throw std::invalid_argument("no column of the histogram");
    count.get_to(drift.histogram[static_cast<std::size_t>(column - kHistogram.begin())]);
  }
}

// [row, column, before, after, ulp]
ordered_json element_to_json(const MovedElement& one) {
  return {one.row, one.column, report_number(one.was), report_number(one.is),
          report_number(one.ulp)};
}

MovedElement element_from_json(const ordered_json& json) {
  return {json.at(0).get<std::int64_t>(), json.at(1).get<std::int64_t>(),
          number_of_report(json.at(2)), number_of_report(json.at(3)), number_of_report(json.at(4))};
}

template <class Value>
void get_if_there(const ordered_json& json, const char* name, Value& value) {
  if (const auto found = json.find(name); found != json.end()) found->get_to(value);
}

void add_norms(const TensorDrift& drift, ordered_json& json) {
  if (drift.was) json["was"] = statistics_to_json(*drift.was);
  if (drift.is) json["is"] = statistics_to_json(*drift.is);
  if (drift.difference < 0) return;
  json["difference"] = drift.difference;
  json["estimated"] = drift.estimated;
  if (!drift.columns.empty()) json["columns"] = drift.columns;
}

}  // namespace

ordered_json drift_to_json(const TensorDrift& drift) {
  ordered_json json{{"tensor", drift.tensor},
                    {"rows_moved", drift.rows_moved},
                    {"rows", drift.rows},
                    {"moved_rows", drift.moved_rows},
                    {"stored_elements", drift.elements},
                    {"stored_elements_moved", drift.elements_moved},
                    {"ulp", report_number(drift.ulp)},
                    {"histogram", histogram_to_json(drift)},
                    {"where", drift.where},
                    {"largest", ordered_json::array()}};
  for (const MovedElement& one : drift.largest) json["largest"].push_back(element_to_json(one));
  add_norms(drift, json);
  if (drift.rejected) {
    json["rejected"] = true;
  } else if (drift.of_bound >= 0) {
    json["of_bound"] = report_number(drift.of_bound);
  }
  if (!drift.other.empty()) json["other"] = drift.other;
  if (drift.of_calls) json["of_calls"] = true;
  return json;
}

TensorDrift drift_from_json(const ordered_json& json) {
  TensorDrift drift;
  json.at("tensor").get_to(drift.tensor);
  json.at("rows_moved").get_to(drift.rows_moved);
  json.at("rows").get_to(drift.rows);
  json.at("stored_elements_moved").get_to(drift.elements_moved);
  drift.ulp = number_of_report(json.at("ulp"));
  json.at("where").get_to(drift.where);
  get_if_there(json, "moved_rows", drift.moved_rows);
  get_if_there(json, "stored_elements", drift.elements);
  if (json.contains("histogram")) histogram_from_json(json["histogram"], drift);
  if (json.contains("largest")) {
    for (const ordered_json& one : json["largest"]) drift.largest.push_back(element_from_json(one));
  }
  if (json.contains("was")) drift.was = statistics_from_json(json["was"]);
  if (json.contains("is")) drift.is = statistics_from_json(json["is"]);
  get_if_there(json, "difference", drift.difference);
  get_if_there(json, "estimated", drift.estimated);
  get_if_there(json, "columns", drift.columns);
  if (json.contains("of_bound")) drift.of_bound = number_of_report(json["of_bound"]);
  get_if_there(json, "rejected", drift.rejected);
  get_if_there(json, "other", drift.other);
  get_if_there(json, "of_calls", drift.of_calls);
  return drift;
}

}  // namespace plumb::tools
