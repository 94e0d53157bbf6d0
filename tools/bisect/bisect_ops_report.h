// SPDX-License-Identifier: Apache-2.0
//
// What plumb bisect ops has found, for people and for machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bisect/ops/ops_search.h"
#include "decode/watch/replay_diff.h"

namespace plumb::tools {

std::string report_text(const bisect::OpsReport& report, const std::string& which,
                        const std::string& platform, int watches);
nlohmann::ordered_json to_json(const bisect::OpsReport& report, int watches);

// Of each second run that made something else: its first difference.
struct TwiceReport {
  std::string which, platform;
  std::vector<std::pair<std::string, cases::ReplayDifference>> found;
  std::string reproduce;
};
std::string report_text(const TwiceReport& report);
nlohmann::ordered_json to_json(const TwiceReport& report, int runs);

}  // namespace plumb::tools
