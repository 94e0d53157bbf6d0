// SPDX-License-Identifier: Apache-2.0
//
// What lines of reports about one defect have in common.
#pragma once

#include <string>
#include <string_view>

namespace plumb::cases {

// The line up to its first semicolon, without numbers, row lists, coordinates and remarks in
// brackets, and with the nouns in the singular: "out: # of # row wrong".
std::string without_numbers(std::string_view line);

}  // namespace plumb::cases
