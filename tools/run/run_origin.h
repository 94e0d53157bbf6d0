// SPDX-License-Identifier: Apache-2.0
//
// Where and when a run was: what a reader of its report needs to know before the first verdict.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumb::tools {

// Name and text. What cannot be found out is "unknown".
using RunOrigin = std::vector<std::pair<std::string, std::string>>;

// plumb's version, the commit of its checkout, date (UTC), command line, host, processor. Asks git,
// and has to be called before signals end a run with reports.
RunOrigin origin_of_process();

// Adds the device, compiler and libraries of each platform that is here, and of a plug-in ("":
// none) the XXH3-128 digest of its file.
void add_kernels(const std::vector<std::string>& platforms, const std::string& plugin,
                 RunOrigin& origin);

}  // namespace plumb::tools
