// SPDX-License-Identifier: Apache-2.0
//
// What a failure is, apart from how large it is and where: two runs with one signature failed in
// the same way. Read from the JSON report of plumb run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace plumb::bisect {

// Of a case in the report that failed: "op/row/scenario sim-sm90 out: wrong values",
// "… crash: its process ended with signal 11". With cases of decode steps, the detector and the op
// of the first finding. "" if the report does not say what is wrong.
std::string signature_of(const nlohmann::json& failed_case);

// The same without the case and the platform, for searches that change these.
std::string kind_of(const nlohmann::json& failed_case);

// What the wrong values look like, where the first tensor's pattern says it: without numbers and
// without places. "" if it does not.
std::string look_of(const nlohmann::json& failed_case);

// Could both be the same mistake? A factor may show or not, as the values go; any other look has to
// stay, and none may come up in a smaller case.
bool look_alike(const std::string& one, const std::string& other);

// A line of a failure without numbers, rows, coordinates and remarks in brackets.
std::string without_numbers(std::string_view line);

}  // namespace plumb::bisect
