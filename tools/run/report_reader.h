// SPDX-License-Identifier: Apache-2.0
//
// Reads a report of plumb run, for --resume and for merging shards.
#pragma once

#include <string>

#include "tools/report.h"

namespace plumb::tools {

// Reads everything that to_json wrote, so that to_json gives the same text again. Values that
// to_json leaves out (sizes and histograms of drifts, seconds of phases) are empty. Throws
// UsageError for a file that cannot be read or is not a report: one line with the path and the
// malformed case.
RunReport read_run_report(const std::string& path);

}  // namespace plumb::tools
