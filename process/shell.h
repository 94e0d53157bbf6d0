// SPDX-License-Identifier: Apache-2.0
//
// Quotes command lines for pasting into a shell.
#pragma once

#include <string>

namespace plumb::process {

// The word, quoted so that a POSIX shell reads it unchanged.
std::string shell_quoted(const std::string& word);

}  // namespace plumb::process
