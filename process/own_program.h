// SPDX-License-Identifier: Apache-2.0
//
// The command line of this program, to start it again in another role.
#pragma once

#include <string>
#include <vector>

namespace plumb::process {

// main() must call this first.
void remember_command_line(int count, char** words);
// Path of the program that a child can execute. Works without /proc too.
std::string own_program();
// The program and its arguments.
std::vector<std::string> own_command_line();

}  // namespace plumb::process
