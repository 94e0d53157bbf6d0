// SPDX-License-Identifier: Apache-2.0
//
// Makes one HTML file that shows reports. It needs neither a network nor plumb to be read.
#pragma once

#include <string>
#include <vector>

#include "tools/html/read_report.h"

namespace plumb::tools {

// `reports`: at least one, all of one kind, oldest first. The last one is shown in full and
// compared with the earlier ones. Throws UsageError if the kinds differ, or for several reports of
// plumb faults, plumb judge or plumb golden, which have no history.
std::string report_page(const std::vector<ReadReport>& reports);

// JSON text for use inside <script type="application/json">: contains no "<".
std::string script_safe(const std::string& json);

}  // namespace plumb::tools
