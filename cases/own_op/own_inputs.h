// SPDX-License-Identifier: Apache-2.0
//
// Fills the inputs of an op that is declared while the program runs.
#pragma once

#include <cstdint>

#include "cases/own_op/own_op.h"
#include "cases/tensors/step.h"

namespace plumb::cases {

// Fills live rows by the step's fill, padding by the step's dead rows, and gaps between rows with
// 0xff bytes. `below`: upper limit of integers (exclusive). Padding of integers is 0, left from the
// previous step, or drawn like live rows: other values could make a kernel that uses them as an
// index access foreign memory.
void fill_own_input(const OwnTensor& declared, bool padded, const Step& step, std::int64_t below,
                    std::uint64_t seed, HostTensor& tensor);

// The values of the tensor without padding and gaps.
OwnInput own_input(const HostTensor& tensor, bool padded, std::int64_t live);

}  // namespace plumb::cases
