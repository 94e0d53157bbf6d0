// SPDX-License-Identifier: Apache-2.0
//
// A report of plumb run, read back: for runs that go on, and for shards that become one.
#pragma once

#include <string>

#include "tools/report.h"

namespace plumb::tools {

// Everything that to_json wrote, so that to_json gives the same text again; what it leaves out
// (sizes and histograms of drifts, seconds of phases) is empty. Throws UsageError for a file that
// cannot be read or is no such report: one line with the path, and which case is not what it should
// be.
RunReport read_run_report(const std::string& path);

}  // namespace plumb::tools
