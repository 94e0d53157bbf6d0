// SPDX-License-Identifier: Apache-2.0
//
// Origin of a run: where, when and with what it was made, for the head of its report.
#pragma once

#include <string>
#include <vector>

#include "tools/report.h"

namespace plumb::tools {

// Version of plumb, commit of its checkout, XXH3-128 digest of the program, date (UTC), command
// line, host, processor. An unknown value is "unknown". It runs git, so it must be called before
// signals are handled.
RunOrigin origin_of_process();

// Adds device, compiler and libraries of each available platform, and the XXH3-128 digest of the
// plug-in's file ("": no plug-in).
void add_kernels(const std::vector<std::string>& platforms, const std::string& plugin,
                 RunOrigin& origin);

}  // namespace plumb::tools
