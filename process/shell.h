// SPDX-License-Identifier: Apache-2.0
//
// Command lines as people paste them into a shell.
#pragma once

#include <string>

namespace plumb::process {

// A word as a POSIX shell reads it back.
std::string shell_quoted(const std::string& word);

}  // namespace plumb::process
