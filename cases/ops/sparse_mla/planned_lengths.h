// SPDX-License-Identifier: Apache-2.0
//
// Lengths of the requests that a planner divides among the parts of a kernel. Padded requests have
// length 0. The seed rotates the lengths among requests, so that the plan of an earlier step is
// wrong.
#pragma once

#include <cstdint>
#include <string>

#include "cases/tensors/step.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct PlannedLengths {
  // "full": all are `most`. "random": any. "borders": around blocks. "one_long": one of `most`
  // among ones. "zeros": the first, the last and a few in the middle are 0.
  std::string kind;
  std::int64_t most = 0, block = 64;
  std::uint64_t seed = 0;
};

// Lengths of the rows of an i32 tensor.
void fill_planned_lengths(const PlannedLengths& planned, const Step& step, HostTensor& lengths);
// Prefix sums of the same lengths, one more than there are requests.
void fill_planned_indptr(const PlannedLengths& planned, const Step& step, HostTensor& indptr);

}  // namespace plumb::cases
