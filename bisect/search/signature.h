// SPDX-License-Identifier: Apache-2.0
//
// The signature of a failure: how it fails, without size and place of the error. Two runs with the
// same signature failed in the same way. Computed from the JSON report of plumb run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plumb::bisect {

// Signature of a failed case of a report: "op/row/scenario sim-sm90 out: wrong values", "… crash:
// its process ended with signal 11". For a decode step: detector and op of the first finding. "" if
// the report does not say what is wrong.
std::string signature_of(const nlohmann::json& failed_case);

// The signature without case and platform, for searches that change these.
std::string kind_of(const nlohmann::json& failed_case);

// Pattern of the wrong values of the first wrong tensor, without numbers. "" if it has none, or if
// the pattern is a place ("all rows from 3 on are wrong").
std::string look_of(const nlohmann::json& failed_case);

// True if both patterns may come from the same defect. A factor may appear or vanish with the
// values, and looks like one wrong number if few numbers are expected. Any other pattern must stay,
// and none may appear in a smaller case.
bool look_alike(const std::string& one, const std::string& other);

// True if at most half of the compared rows of the first wrong tensor are wrong. Then the right
// rows belong to the look of the failure: if only the last row is wrong, a single row does not show
// it.
bool is_mostly_right(const nlohmann::json& failed_case);
// True if all compared rows of the first wrong tensor are wrong.
bool is_all_wrong(const nlohmann::json& failed_case);

}  // namespace plumb::bisect
