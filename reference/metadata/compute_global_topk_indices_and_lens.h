// SPDX-License-Identifier: Apache-2.0
//
// compute_global_topk_indices_and_lens (operations' specification, 2.5, the dense form): slots of
// what the block table covers, each in its column or moved to the left.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

namespace plumb::reference {

struct DenseSlots {
  std::vector<std::int64_t> global_indices;  // [tokens, topk]; -1 where there is no slot
  std::vector<std::int64_t> lens;            // [tokens] slots
};

// Slots keep their order. Requests and positions outside the block table have none.
DenseSlots compute_global_topk_indices_and_lens(const TopKPositions& input, bool to_left);

}  // namespace plumb::reference
