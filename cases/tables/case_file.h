// SPDX-License-Identifier: Apache-2.0
//
// Reads rows from TOML: [[row]] tables with name, why, tier and the schema's parameters. Anything
// that the schema does not declare is an error; the message has file, line and the nearest declared
// name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/row.h"

namespace plumb::cases {

// Reads all rows of the text. Throws BadRow. `file`: name of the text in messages.
std::vector<Row> parse_rows(const RowSchema& schema, std::string_view text, std::string_view file);

// Sets `name=value` on a row (--set). Throws BadRow for an undeclared name or a value out of range.
void set_parameter(const RowSchema& schema, Row& row, std::string_view name,
                   std::string_view value);

// Returns the op from the line `op = "..."` at the top of a user's case file. Throws BadRow if
// there is no such line, or no [[row]].
std::string op_of_case_file(std::string_view text, std::string_view file);

// The element of `names` closest to `wrong`, or "" if none is close.
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace plumb::cases
