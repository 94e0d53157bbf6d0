// SPDX-License-Identifier: Apache-2.0
//
// Counts the cases of each op, scenario and platform that compared at least one element. A run in
// which all cases pass says nothing about a cell without such cases.
#pragma once

#include <string>
#include <vector>

#include "tools/report.h"

namespace plumb::tools {

// The table: one line per op and scenario, one column per platform.
std::string coverage_text(const std::vector<Finished>& all);

// What decode steps did: one line per feature with the number of steps per platform. "": no decode
// step ran.
std::string features_text(const std::vector<Finished>& all);

// Cells with fewer than `least` comparing cases (for concurrent and queued ones: with none), as
// "rms_norm eager sim-sm90: 7". Every op of the run has eager, full_graph, concurrent and queued
// cells, even if it has no case there.
std::vector<std::string> thin_coverage(const std::vector<Finished>& all, int least);

}  // namespace plumb::tools
