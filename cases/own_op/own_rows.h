// SPDX-License-Identifier: Apache-2.0
//
// Rows of an op that is declared while the program runs. They are derived from its sizes.
#pragma once

#include <string>

#include "cases/own_op/own_op.h"

namespace plumb::cases {

// Returns the text of a case file with these rows: the usual sizes; every other value of a size;
// gaps between rows, with unusual reals; each optional input left out; four random rows; the rows
// that the op lists itself.
std::string own_rows(const OwnOp& op);

}  // namespace plumb::cases
