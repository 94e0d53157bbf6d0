// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/dequantize_and_gather_k_cache.h"

#include <cmath>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

GatheredWorkspace dequantize_and_gather_k_cache(const KCacheGather& inputs) {
  GatheredWorkspace workspace;
  workspace.written.assign(static_cast<std::size_t>(inputs.requests * inputs.rows), false);
  workspace.values.assign(static_cast<std::size_t>(inputs.requests * inputs.rows * kMlaDim), 0);
  for (std::int64_t request = 0; request < inputs.requests; ++request) {
    const std::int64_t length = inputs.seq_lens[request];
    const std::int64_t count = inputs.gather_lens == nullptr ? length : inputs.gather_lens[request];
    const std::int32_t* blocks = inputs.block_table + request * inputs.block_table_row_stride;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = length - count + i, page = inputs.cache.page;
      const std::int64_t slot = blocks[position / page] * page + position % page;
      const std::int64_t row = request * inputs.rows + inputs.offset + i;
      workspace.written[row] = true;
      decode_token(inputs.cache, slot, workspace.values.data() + row * kMlaDim);
    }
  }
  return workspace;
}

bool is_bf16_of(std::uint16_t bits, double value) {
  if (std::isnan(value)) return std::isnan(decode_bf16(bits));
  const bool zero = (bits & 0x7fff) == 0;
  return bits == encode_bf16(value) || (zero && std::abs(value) < 0x1p-126);
}

}  // namespace plumb::reference
