// SPDX-License-Identifier: Apache-2.0
//
// Reads rows from TOML: [[row]] tables with name, why, tier and the schema's parameters. Anything
// that the schema does not declare is an error with file and line, and the nearest declared name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/row.h"

namespace plumb::cases {

// Throws BadRow. `file` is what messages call the text.
std::vector<Row> parse_rows(const RowSchema& schema, std::string_view text, std::string_view file);

// Sets `name=value` on a row (--set). Throws BadRow for an undeclared name or a value out of range.
void set_parameter(const RowSchema& schema, Row& row, std::string_view name,
                   std::string_view value);

// The `op = "..."` at the top of a case file given by the user. Throws BadRow if there is none.
std::string op_of_case_file(std::string_view text, std::string_view file);

// The one of `names` closest to `wrong`, or "" if none is near.
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace plumb::cases
