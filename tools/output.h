// SPDX-License-Identifier: Apache-2.0
//
// Standard output, checked: text that could not be written makes the command fail.
#pragma once

#include <string>
#include <string_view>

namespace plumb::tools {

// Descriptors 0 to 2 that the caller closed would be given to the next file opened, and text meant
// for a person would land in it. Writing to what takes their place fails.
void occupy_standard_descriptors();

// Never throws: a run goes on without its text and still writes its reports.
void put(std::string_view text);
// The same for text that a reader waits for.
void put_at_once(std::string_view text);

// Throws std::runtime_error if any text of this process has not reached standard output.
void finish_output();

}  // namespace plumb::tools
