// SPDX-License-Identifier: Apache-2.0
//
// --ops FILE.py: ops that a Python file declares. A worker process runs the file and computes their
// references.
#pragma once

#include <string>
#include <vector>

namespace plumb::tools {

// Adds the ops of these files to this process, each file once. Python plug-ins that are started
// later know them too. Throws UsageError: one line about the file.
void add_ops_of(const std::vector<std::string>& files);

// Adds the ops of the files of the parent process.
void add_ops_of_parent();

}  // namespace plumb::tools
