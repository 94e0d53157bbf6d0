// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

#include <algorithm>

namespace plumb::reference {

RaggedSlots compute_global_topk_ragged_indices_and_indptr(const TopKPositions& input) {
  RaggedSlots out;
  for (std::int64_t token = 0; token < input.tokens; ++token) {
    const std::int32_t* positions = input.topk_indices + token * input.row_stride;
    std::int64_t length = 0;
    if (input.is_valid_token[token]) {
      length = std::count_if(positions, positions + input.topk, [](auto p) { return p >= 0; });
    }
    for (std::int64_t j = 0; j < length; ++j) {
      const bool none = positions[j] < 0;
      out.flat.push_back(none ? -1
                              : input.block_table.slot(input.token_to_req[token], positions[j]));
    }
    out.lens.push_back(length);
  }
  out.indptr = prefix_sums(out.lens);
  return out;
}

}  // namespace plumb::reference
