// SPDX-License-Identifier: Apache-2.0
#include "tools/run/report_reader.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/golden/drift_json.h"
#include "tools/run/report_number.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostBytesOfReport = std::size_t{1} << 28;

// The enumerator with this name, among the first `count`.
template <class Enum>
Enum named(const ordered_json& json, int count) {
  const auto text = json.get<std::string>();
  for (int i = 0; i < count; ++i) {
    if (name_of(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  throw std::invalid_argument(fmt::format("\"{}\" is not known here", text));
}

// Reads an optional member.
template <class Value>
void read_if_there(const ordered_json& json, const char* name, Value& value) {
  if (const auto found = json.find(name); found != json.end()) found->get_to(value);
}
const ordered_json& list_in(const ordered_json& json, const char* name) {
  static const ordered_json none = ordered_json::array();
  const auto found = json.find(name);
  if (found == json.end()) return none;
  if (!found->is_array()) throw std::invalid_argument(fmt::format("{} is not a list", name));
  return *found;
}

cases::Mismatch mismatch_in(const ordered_json& json) {
  cases::Mismatch mismatch;
  json.at("at").get_to(mismatch.coordinates);
  mismatch.expected = number_of_report(json.at("expected"));
  mismatch.got = number_of_report(json.at("got"));
  mismatch.bound = number_of_report(json.at("bound"));
  if (json.contains("ratio")) mismatch.ratio = number_of_report(json.at("ratio"));
  return mismatch;
}

cases::TensorReport tensor_report_in(const ordered_json& json) {
  cases::TensorReport report;
  json.at("tensor").get_to(report.tensor);
  json.at("rows_compared").get_to(report.rows_compared);
  json.at("wrong_rows").get_to(report.wrong_rows);
  json.at("wrong_elements").get_to(report.wrong_elements);
  report.margin = number_of_report(json.at("margin"));
  json.at("flips").get_to(report.flips);
  json.at("pattern").get_to(report.pattern);
  if (const auto worst = json.find("worst"); worst != json.end()) {
    report.worst = mismatch_in(*worst);
  }
  return report;
}

cases::Failure failure_in(const ordered_json& json) {
  cases::Failure failure;
  json.at("context").get_to(failure.context);
  json.at("lines").get_to(failure.lines);
  read_if_there(json, "kind", failure.kind);
  for (const ordered_json& one : list_in(json, "tensors")) {
    failure.reports.push_back(tensor_report_in(one));
  }
  return failure;
}

cases::TensorSummary tensor_in(const ordered_json& json) {
  cases::TensorSummary tensor;
  json.at("tensor").get_to(tensor.tensor);
  json.at("elements_compared").get_to(tensor.elements_compared);
  tensor.margin = number_of_report(json.at("margin"));
  tensor.observability = number_of_report(json.at("observability"));
  tensor.most_observable = number_of_report(json.at("most_observable"));
  json.at("flips").get_to(tensor.flips);
  read_if_there(json, "first_flip", tensor.flip);
  if (const auto sample = json.find("sample"); sample != json.end()) {
    sample->at("rows").get_to(tensor.sample.rows);
    sample->at("judged").get_to(tensor.sample.judged);
    sample->at("repeat_a_judged_row").get_to(tensor.sample.repeated);
  }
  return tensor;
}

golden::GoldenComparison golden_in(const ordered_json& json) {
  golden::GoldenComparison comparison;
  comparison.agreement = named<golden::Agreement>(json.at("agreement"), 6);
  read_if_there(json, "other_toolchain", comparison.toolchain);
  read_if_there(json, "lines", comparison.lines);
  for (const ordered_json& one : list_in(json, "drift")) {
    comparison.drifts.push_back(drift_from_json(one));
  }
  return comparison;
}

TensorPicture picture_in(const ordered_json& json) {
  TensorPicture picture;
  json.at("tensor").get_to(picture.tensor);
  json.at("dtype").get_to(picture.dtype);
  json.at("format").get_to(picture.format);
  json.at("scales").get_to(picture.scales);
  json.at("shape").get_to(picture.shape);
  json.at("exact").get_to(picture.exact);
  json.at("rows").get_to(picture.rows);
  json.at("columns").get_to(picture.columns);
  json.at("live_rows").get_to(picture.live_rows);
  json.at("group_rows").get_to(picture.group_rows);
  json.at("cells").get_to(picture.cells);
  json.at("right").get_to(picture.right);
  json.at("infinite").get_to(picture.infinite);
  json.at("unpromised").get_to(picture.unpromised);
  if (const auto counts = json.find("counts"); counts != json.end()) {
    std::istringstream all(counts->get<std::string>());
    for (std::int64_t count = 0; all >> count;) picture.counts.push_back(count);
  }
  for (const ordered_json& one : list_in(json, "worst")) {
    picture.worst.push_back(mismatch_in(one));
  }
  json.at("wrong_values").get_to(picture.wrong_values);
  json.at("right_values").get_to(picture.right_values);
  return picture;
}

std::vector<cases::Alternative> alternatives_in(const ordered_json& json, const char* name) {
  std::vector<cases::Alternative> all;
  for (const ordered_json& one : list_in(json, name)) {
    all.push_back({one.at("contract").get<std::string>(), one.at("numerics").get<std::string>()});
  }
  return all;
}

cases::Finding finding_in(const ordered_json& json) {
  cases::Finding finding;
  finding.detector = named<cases::Detector>(json.at("detector"), cases::kDetectors);
  json.at("step").get_to(finding.step);
  read_if_there(json, "position", finding.position);
  json.at("op").get_to(finding.op);
  json.at("call").get_to(finding.call);
  json.at("text").get_to(finding.text);
  return finding;
}

// Splits the id "op/row/scenario".
void set_names(Finished& finished) {
  const std::string& id = finished.result.id;
  const auto first = id.find('/'), last = id.rfind('/');
  if (first == std::string::npos || first == last) {
    throw std::invalid_argument(fmt::format("\"{}\" is not op/row/scenario", id));
  }
  finished.op = id.substr(0, first);
  finished.row = id.substr(first + 1, last - first - 1);
  finished.scenario = id.substr(last + 1);
}

Finished finished_in(const ordered_json& json) {
  Finished finished{};
  cases::CaseResult& result = finished.result;
  json.at("case").get_to(result.id);
  json.at("platform").get_to(result.platform);
  set_names(finished);
  result.outcome = named<cases::Outcome>(json.at("outcome"), 5);
  json.at("reason").get_to(result.reason);
  json.at("points").get_to(result.points);
  json.at("launches").get_to(result.launches);
  json.at("comparisons").get_to(result.comparisons);
  json.at("seconds").get_to(finished.seconds);
  json.at("reproduce").get_to(finished.reproduce);
  read_if_there(json, "trivial", finished.trivial);
  read_if_there(json, "dump", finished.dump);
  read_if_there(json, "dump_trouble", finished.dump_trouble);
  read_if_there(json, "notes", finished.notes);
  read_if_there(json, "features", finished.features);
  read_if_there(json, "diagnosis", result.diagnosis);
  read_if_there(json, "contrast", finished.contrast);
  result.right_under = alternatives_in(json, "right_under");
  result.passes_under = alternatives_in(json, "passes_under");
  read_if_there(json, "point", result.failed_at);
  for (const ordered_json& one : list_in(json, "tensors")) result.tensors.push_back(tensor_in(one));
  if (const auto golden = json.find("golden"); golden != json.end()) {
    finished.golden = golden_in(*golden);
  }
  for (const ordered_json& one : list_in(json, "failures")) {
    result.failures.push_back(failure_in(one));
  }
  for (const ordered_json& one : list_in(json, "pictures")) {
    finished.pictures.push_back(picture_in(one));
  }
  for (const ordered_json& one : list_in(json, "findings")) {
    finished.findings.push_back(finding_in(one));
  }
  return finished;
}

void read_head(const ordered_json& json, RunReport& report) {
  json.at("tier").get_to(report.tier);
  json.at("seed").get_to(report.seed);
  read_if_there(json, "cases_without_pictures", report.without_pictures);
  if (const auto run = json.find("run"); run != json.end()) {
    for (const auto& [name, text] : run->items()) {
      report.origin.emplace_back(name, text.get<std::string>());
    }
  }
  if (const auto shard = json.find("shard"); shard != json.end()) {
    report.share.emplace();
    shard->at("index").get_to(report.share->index);
    shard->at("total").get_to(report.share->total);
    shard->at("numbers").get_to(report.share->numbers);
  }
  if (const auto interrupted = json.find("interrupted"); interrupted != json.end()) {
    report.interruption.emplace();
    interrupted->at("why").get_to(report.interruption->why);
    interrupted->at("cases").get_to(report.interruption->cases);
    json.at("exit_code").get_to(report.interruption->exit_code);
  }
  if (const auto plugin = json.find("plugin"); plugin != json.end()) {
    report.plugin.emplace();
    plugin->at("path").get_to(report.plugin->path);
    plugin->at("name").get_to(report.plugin->name);
    plugin->at("version").get_to(report.plugin->version);
    plugin->at("ops").get_to(report.plugin->ops);
  }
}

// Removes a prefix such as nlohmann's "[json.exception.type_error.302] ".
std::string plain(std::string_view what) {
  const auto end = what.find("] ");
  return std::string(
      what.starts_with("[json.") && end != std::string_view::npos ? what.substr(end + 2) : what);
}

}  // namespace

RunReport read_run_report(const std::string& path) {
  const ordered_json json =
      ordered_json::parse(read_file(path, kMostBytesOfReport), nullptr, false);
  const bool is_report = json.is_object() && json.contains("cases") && json["cases"].is_array() &&
                         json.contains("outcomes");
  if (!is_report) throw UsageError(fmt::format("{} is not a report of plumb run", path));
  if (!json.contains("schema") || json["schema"] != 1) {
    throw UsageError(fmt::format("{}: this plumb reads reports of schema 1", path));
  }
  RunReport report;
  std::string where = "its head";
  try {
    read_head(json, report);
    for (const ordered_json& one : json["cases"]) {
      where = fmt::format("case {}", report.all.size() + 1);
      report.all.push_back(finished_in(one));
    }
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("{} is not a complete report of plumb run: {}: {}", path, where,
                                 plain(error.what())));
  }
  return report;
}

}  // namespace plumb::tools
