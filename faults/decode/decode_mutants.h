// SPDX-License-Identifier: Apache-2.0
//
// Mutant kernels that are faults of a decode step: those of mutants/*.cmake with DECODE.
#pragma once

#include <string_view>

#include "faults/replaced_op.h"

namespace plumb::cases {

// Throws std::invalid_argument if there is no such mutant.
Replacement decode_mutant(std::string_view name);

}  // namespace plumb::cases
