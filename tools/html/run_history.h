// SPDX-License-Identifier: Apache-2.0
//
// Changes between several reports of plumb run.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/html/read_report.h"

namespace plumb::tools {

// `reports`: at least two, oldest first. Members of the result:
//   reports  [{file, cases, compared, outcomes}]
//   margins  [[op, tensor, [largest margin of a passed case in each report, or null]]]
//   lost     [{op, scenario, platform, before, now}]: cells with fewer comparing cases than in the
//            report before the last one
//   newly_failed, newly_passed, vanished, added: {"count", "cases": [[case, platform]]} between the
//            last two reports; at most 300 cases of each
nlohmann::ordered_json run_history(const std::vector<ReadReport>& reports);

}  // namespace plumb::tools
