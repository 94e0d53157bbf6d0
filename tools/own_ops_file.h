// SPDX-License-Identifier: Apache-2.0
//
// --ops FILE.py: ops that a Python file declares. A process of that file computes their references.
#pragma once

#include <string>
#include <vector>

namespace plumb::tools {

// Adds the ops of these files to this process, once each. Plug-ins in Python that it starts later
// know them too. Throws UsageError: one line about the file.
void add_ops_of(const std::vector<std::string>& files);

// The same for the files of the process that started this one.
void add_ops_of_parent();

}  // namespace plumb::tools
