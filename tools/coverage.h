// SPDX-License-Identifier: Apache-2.0
//
// How many cases of each op, scenario and platform really compared something: a run in which
// everything passed says nothing about what was not compared.
#pragma once

#include <string>
#include <vector>

#include "tools/report.h"

namespace plumb::tools {

// The table: a line per op and scenario, a column per platform.
std::string coverage_text(const std::vector<Finished>& all);

// What decode steps did, a line per feature with the number of steps on each platform. "": none
// ran.
std::string features_text(const std::vector<Finished>& all);

// The cells with fewer than `least` comparing cases (concurrent ones: with none), "rms_norm eager
// sim-sm90: 7". Every op has eager, full_graph and concurrent cells, whether or not a case of them
// ran.
std::vector<std::string> thin_coverage(const std::vector<Finished>& all, int least);

}  // namespace plumb::tools
