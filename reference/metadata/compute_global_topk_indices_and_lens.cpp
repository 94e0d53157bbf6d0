// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/compute_global_topk_indices_and_lens.h"

namespace plumb::reference {

DenseSlots compute_global_topk_indices_and_lens(const TopKPositions& input, bool to_left) {
  DenseSlots out;
  out.global_indices.assign(static_cast<std::size_t>(input.tokens * input.topk), -1);
  out.lens.assign(static_cast<std::size_t>(input.tokens), 0);
  for (std::int64_t token = 0; token < input.tokens; ++token) {
    if (!input.is_valid_token[token]) continue;
    for (std::int64_t j = 0; j < input.topk; ++j) {
      const std::int64_t position = input.topk_indices[token * input.row_stride + j];
      const std::int64_t request = input.token_to_req[token];
      if (!input.block_table.holds(request, position)) continue;
      const std::int64_t found = out.lens[token]++;
      out.global_indices[token * input.topk + (to_left ? found : j)] =
          input.block_table.slot(request, position);
    }
  }
  return out;
}

}  // namespace plumb::reference
