// SPDX-License-Identifier: Apache-2.0
#include "reference/index_maps/convert_req_index_to_global.h"

#include <stdexcept>

namespace plumb::reference {

std::int64_t ChosenPositions::row_of(std::int64_t token, std::int64_t j) const {
  const std::int64_t position = token_indices[token * row_stride + j];
  if (position < 0) return -1;
  const std::int64_t turn = position / dcp_interleave;
  if (turn % dcp_size != dcp_rank) return -1;
  const std::int64_t local = turn / dcp_size * dcp_interleave + position % dcp_interleave;
  const std::int64_t request = req_id[token];
  if (!block_table.holds(request, local)) return -1;
  const std::int64_t prefill = prefill_request_id ? prefill_request_id[token] : -1;
  if (prefill >= prefills) throw std::out_of_range("a token of a prefill that has no workspace");
  if (prefill >= 0) return workspace_starts[prefill] + position;
  const std::int64_t offset = local % block_table.block_size;
  const std::int64_t block = (block_table.slot(request, local) - offset) / block_table.block_size;
  return block * block_stride_rows + offset;
}

GlobalIndices convert_req_index_to_global(const ChosenPositions& input, bool to_left) {
  GlobalIndices out;
  out.indices.assign(static_cast<std::size_t>(input.tokens * input.topk), -1);
  out.counts.assign(static_cast<std::size_t>(input.tokens), 0);
  for (std::int64_t token = 0; token < input.tokens; ++token) {
    for (std::int64_t j = 0; j < input.topk; ++j) {
      const std::int64_t row = input.row_of(token, j);
      if (row < 0) continue;
      const std::int64_t found = out.counts[token]++;
      out.indices[token * input.topk + (to_left ? found : j)] = row;
    }
  }
  return out;
}

}  // namespace plumb::reference
