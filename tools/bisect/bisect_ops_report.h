// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON report of plumb bisect ops.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bisect/ops/ops_search.h"
#include "decode/watch/replay_diff.h"

namespace plumb::tools {

// What was searched. Ops of a plug-in were replaced by plumb's own kernels, others by the
// reference.
struct SearchedSteps {
  std::string which, platform, plugin;  // plugin: its name; "": none
};
std::string report_text(const bisect::OpsReport& report, const SearchedSteps& steps, int watches);
nlohmann::ordered_json to_json(const bisect::OpsReport& report, const SearchedSteps& steps,
                               int watches);

// The first difference of each second run that had one.
struct TwiceReport {
  std::string which, platform;
  std::vector<std::pair<std::string, cases::ReplayDifference>> found;
  std::string reproduce;
};
std::string report_text(const TwiceReport& report);
nlohmann::ordered_json to_json(const TwiceReport& report, int runs);

}  // namespace plumb::tools
