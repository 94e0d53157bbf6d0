// SPDX-License-Identifier: Apache-2.0
//
// One HTML file that shows reports: no network, readable without plumb.
#pragma once

#include <string>
#include <vector>

#include "tools/html/read_report.h"

namespace plumb::tools {

// All of one kind, oldest first: the last one is shown whole, and compared with those before it.
// Not empty. Throws UsageError if the kinds differ, or if there are several that have no history
// (of plumb faults and plumb judge).
std::string report_page(const std::vector<ReadReport>& reports);

// Text as an HTML page may hold it inside of <script type="application/json">: no "<" stands in it.
std::string script_safe(const std::string& json);

}  // namespace plumb::tools
