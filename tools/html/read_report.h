// SPDX-License-Identifier: Apache-2.0
//
// Reads the JSON reports of plumb run, plumb faults and plumb judge, also those of other versions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumb::tools {

enum class ReportKind { run, faults, judge };

struct ReadReport {
  std::string path;
  ReportKind kind = ReportKind::run;
  nlohmann::json json;  // an object with the members that its kind needs
};

// Throws UsageError, one line with the path and the place: no JSON, another kind of JSON, or a
// member that is missing.
ReadReport parse_report(const std::string& path, const std::string& text);
// The same of a file. Throws UsageError also if the file cannot be read.
ReadReport read_report(const std::string& path);

// Members that may be missing or have another type: such a member reads as "", 0 or empty.
std::string json_text(const nlohmann::json& object, const char* name);
double json_number(const nlohmann::json& object, const char* name);
const nlohmann::json& json_array(const nlohmann::json& object, const char* name);
const nlohmann::json& json_object(const nlohmann::json& object, const char* name);

}  // namespace plumb::tools
