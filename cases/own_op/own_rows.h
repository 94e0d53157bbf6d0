// SPDX-License-Identifier: Apache-2.0
//
// Rows of an op that is declared while the program runs: they follow from its sizes.
#pragma once

#include <string>

#include "cases/own_op/own_op.h"

namespace plumb::cases {

// The text of a case file: the usual sizes, each other value of a size, rows far from each other
// with other reals, each optional input left out, four rows at random, and those that the op lists
// itself.
std::string own_rows(const OwnOp& op);

}  // namespace plumb::cases
