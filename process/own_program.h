// SPDX-License-Identifier: Apache-2.0
//
// This program's own command line, to start it again in another role.
#pragma once

#include <string>
#include <vector>

namespace plumb::process {

// Called by main() first.
void remember_command_line(int count, char** words);
// The program alone, as a path that a child can execute. Works without /proc too.
std::string own_program();
// The program and its arguments.
std::vector<std::string> own_command_line();

}  // namespace plumb::process
