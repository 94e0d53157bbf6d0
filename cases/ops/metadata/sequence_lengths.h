// SPDX-License-Identifier: Apache-2.0
//
// Lengths of the requests of a decode batch, next_n query rows each, in both forms that callers
// store: one per request, or one end per row. Which request has which length changes with the
// seed, so that a replay cannot live on old lengths.
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
  // Of a live request: its 1-D length.
  std::int64_t of(const Step& step, std::int64_t request) const;
  // Dead requests have length 0.
  void fill(const Step& step, HostTensor& lengths) const;
};

// `dims` and `gap` name the row's parameters.
SequenceLengths sequence_lengths(const Row& row, std::string_view dims, std::string_view gap);

}  // namespace plumb::cases
