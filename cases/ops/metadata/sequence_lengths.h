// SPDX-License-Identifier: Apache-2.0
//
// Lengths of the requests of a decode batch with next_n query rows each, in both forms that callers
// store: one length per request (1-D), or one end per row (2-D). The seed chooses which request has
// which length, so that a replay with lengths of an earlier step is wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/row.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct SequenceLengths {
  std::int64_t requests = 1, next_n = 1, dims = 1;
  std::int64_t length = 0, length_step = 0;  // longest; how much shorter each further request is
  std::int64_t gap = 0;                      // elements between the lengths of two requests

  std::int64_t per_request() const { return dims == 2 ? next_n : 1; }
  std::int64_t stride() const { return per_request() + gap; }
  TensorSpec spec(std::string name) const;
  // The 1-D length of a live request.
  std::int64_t of(const Step& step, std::int64_t request) const;
  // Fills both forms. Dead requests have length 0.
  void fill(const Step& step, HostTensor& lengths) const;
};

// `dims` and `gap`: names of the row parameters for these members.
SequenceLengths sequence_lengths(const Row& row, std::string_view dims, std::string_view gap);

}  // namespace plumb::cases
