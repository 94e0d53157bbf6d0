// SPDX-License-Identifier: Apache-2.0
#include "tools/html/read_report.h"

#include <fmt/format.h>

#include <array>

#include "tools/selection.h"

namespace plumb::tools {

namespace {

using nlohmann::json;

constexpr std::size_t kMostReportBytes = std::size_t{512} << 20;

[[noreturn]] void refuse_report(const std::string& path, const std::string& why) {
  throw UsageError(fmt::format("{}: {}", path, why));
}

bool has_array(const json& report, const char* name) {
  return report.contains(name) && report[name].is_array();
}

ReportKind kind_of_report(const std::string& path, const json& report) {
  if (!report.is_object()) refuse_report(path, "not a report of plumb: not a JSON object");
  if (has_array(report, "cases") && report.contains("outcomes")) return ReportKind::run;
  if (has_array(report, "faults") && has_array(report, "clean")) return ReportKind::faults;
  if (report.contains("trace") && has_array(report, "wrong")) return ReportKind::judge;
  if (has_array(report, "cases") && report.contains("before") && report.contains("after"))
    return ReportKind::goldens;
  refuse_report(
      path,
      "not a report of plumb run (members cases, outcomes), plumb faults (faults, clean), "
      "plumb judge (trace, wrong) or plumb golden diff (cases, before, after)");
}

// Requires these text members in each entry of a list. Without them an entry has no name.
void require_texts(const ReadReport& report, const char* list,
                   std::initializer_list<const char*> names) {
  std::size_t i = 0;
  for (const json& entry : report.json[list]) {
    for (const char* name : names) {
      if (entry.is_object() && entry.contains(name) && entry[name].is_string()) continue;
      refuse_report(report.path, fmt::format("{}[{}] has no text \"{}\"", list, i, name));
    }
    ++i;
  }
}

json parsed(const std::string& path, const std::string& text) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    refuse_report(path, text.size() + 1 == error.byte
                            ? fmt::format("not JSON: it ends at byte {}", text.size())
                            : fmt::format("not JSON from byte {} on", error.byte));
  } catch (const json::exception&) {
    refuse_report(path, "not JSON: a number is too large");
  }
}

}  // namespace

ReadReport parse_report(const std::string& path, const std::string& text) {
  ReadReport report{path, ReportKind::run, parsed(path, text)};
  report.kind = kind_of_report(path, report.json);
  switch (report.kind) {
    case ReportKind::run: require_texts(report, "cases", {"case", "platform", "outcome"}); break;
    case ReportKind::faults: require_texts(report, "faults", {"name", "platform"}); break;
    case ReportKind::judge: require_texts(report, "wrong", {"call", "op"}); break;
    case ReportKind::goldens: require_texts(report, "cases", {"case", "change"}); break;
  }
  return report;
}

ReadReport read_report(const std::string& path) {
  return parse_report(path, read_file(path, kMostReportBytes));
}

std::string json_text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double json_number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

const json& json_array(const json& object, const char* name) {
  static const json none = json::array();
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : none;
}

const json& json_object(const json& object, const char* name) {
  static const json none = json::object();
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : none;
}

}  // namespace plumb::tools
