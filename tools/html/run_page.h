// SPDX-License-Identifier: Apache-2.0
//
// What a page holds of a run: every case in short, and as many failures in full as have room.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/html/read_report.h"

namespace plumb::tools {

// Bytes of JSON that the details of all failures of a page may take together.
inline constexpr std::size_t kDetailBytes = 2'400'000;

// A text of at most `most` bytes, whole characters of UTF-8; how much is missing stands at its end.
std::string clipped(const std::string& text, std::size_t most);

// The op, row or scenario of "op/row/scenario": part 0, 1 or 2.
std::string part_of_case(const std::string& id, int which);

// "run", "platforms", "cases" and "details_left_out" of a report of plumb run.
nlohmann::ordered_json run_data(const ReadReport& report);

// Members of a report that say what was run: simple ones of the report itself, and those of "run"
// and "plugin". A list of [name, text].
nlohmann::ordered_json run_members(const nlohmann::json& report);

// The failures of a report as lines of text, without markup.
std::string failures_as_text(const nlohmann::ordered_json& data);

}  // namespace plumb::tools
