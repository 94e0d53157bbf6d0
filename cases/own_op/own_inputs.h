// SPDX-License-Identifier: Apache-2.0
//
// Inputs of an op that is declared while the program runs.
#pragma once

#include <cstdint>

#include "cases/own_op/own_op.h"
#include "cases/tensors/step.h"

namespace plumb::cases {

// Live rows by the step's fill, padding by its dead rows, gaps between rows 0xff. `below`: of
// integers. Padding of integers is 0, or as live rows are: a kernel may use it as an index.
void fill_own_input(const OwnTensor& declared, bool padded, const Step& step, std::int64_t below,
                    std::uint64_t seed, HostTensor& tensor);

// The tensor without padding and gaps.
OwnInput own_input(const HostTensor& tensor, bool padded, std::int64_t live);

}  // namespace plumb::cases
