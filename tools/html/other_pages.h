// SPDX-License-Identifier: Apache-2.0
//
// Data of a page about reports of plumb faults and plumb judge.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/html/read_report.h"

namespace plumb::tools {

nlohmann::ordered_json faults_data(const ReadReport& report);
nlohmann::ordered_json judge_data(const ReadReport& report);

// At most `most` findings (reports of failed checks) of a decode step: {detector, step, position,
// op, call, text}.
nlohmann::ordered_json findings_in(const nlohmann::json& object, std::size_t most);

// Failures as lines of plain text, without markup.
std::string faults_as_text(const nlohmann::ordered_json& data);
std::string judge_as_text(const nlohmann::ordered_json& data);

}  // namespace plumb::tools
