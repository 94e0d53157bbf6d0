// SPDX-License-Identifier: Apache-2.0
//
// Data of a page about a run: every case in short, and details of as many failures as fit.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/html/read_report.h"

namespace plumb::tools {

// Limit in bytes of JSON for the details of all failures of a page.
inline constexpr std::size_t kDetailBytes = 2'400'000;

// At most `most` bytes of the text, cut between UTF-8 characters. The end says how much is missing.
std::string clipped(const std::string& text, std::size_t most);

// A number as it is. Values that JSON has no number for ("inf") stay text.
nlohmann::ordered_json value_in(const nlohmann::json& object, const char* name);

// Part of "op/row/scenario": 0 op, 1 row, 2 scenario.
std::string part_of_case(const std::string& id, int which);

// Members "run", "platforms", "cases" and "details_left_out", from a report of plumb run.
nlohmann::ordered_json run_data(const ReadReport& report);

// A list of [name, text] that says what was run: the simple members of the report, and the members
// of its "run" and "plugin".
nlohmann::ordered_json run_members(const nlohmann::json& report);

// Failures of a report as lines of plain text, without markup.
std::string failures_as_text(const nlohmann::ordered_json& data);

}  // namespace plumb::tools
