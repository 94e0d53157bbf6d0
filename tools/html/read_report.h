// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON reports of plumb run, plumb faults, plumb judge and plumb golden, including those of
// other versions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumb::tools {

enum class ReportKind { run, faults, judge, goldens };

struct ReadReport {
  std::string path;
  ReportKind kind = ReportKind::run;
  nlohmann::json json;  // an object with the members that its kind requires
};

// Throws UsageError, one line with path and place: the text is not JSON, or not such a report, or a
// member is missing.
ReadReport parse_report(const std::string& path, const std::string& text);
// As parse_report, for a file. Throws UsageError also if the file cannot be read.
ReadReport read_report(const std::string& path);

// Reads a member. If it is missing or has another type, the result is "", 0 or empty.
std::string json_text(const nlohmann::json& object, const char* name);
double json_number(const nlohmann::json& object, const char* name);
const nlohmann::json& json_array(const nlohmann::json& object, const char* name);
const nlohmann::json& json_object(const nlohmann::json& object, const char* name);

}  // namespace plumb::tools
