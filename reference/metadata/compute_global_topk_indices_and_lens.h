// SPDX-License-Identifier: Apache-2.0
//
// compute_global_topk_indices_and_lens (operations' specification, 2.5, the dense form): converts
// top-k positions to slots. Each slot stays in its column or is moved to the left.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

namespace plumb::reference {

struct DenseSlots {
  std::vector<std::int64_t> global_indices;  // [tokens, topk]; -1: no slot
  std::vector<std::int64_t> lens;            // [tokens]: number of slots
};

// Slots keep their order. Requests and positions outside the block table have no slot.
DenseSlots compute_global_topk_indices_and_lens(const TopKPositions& input, bool to_left);

}  // namespace plumb::reference
