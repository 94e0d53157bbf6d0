// SPDX-License-Identifier: Apache-2.0
//
// compute_global_topk_indices_and_lens (operations' specification, 2.5, the later dense form):
// slots of what the block table covers, moved to the left.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

namespace plumb::reference {

struct DenseSlots {
  std::vector<std::int64_t> global_indices;  // [tokens, topk]; -1 behind the survivors
  std::vector<std::int64_t> lens;            // [tokens] survivors
};

// Survivors keep their order. Requests and positions outside the block table do not survive.
DenseSlots compute_global_topk_indices_and_lens(const TopKPositions& input);

}  // namespace plumb::reference
