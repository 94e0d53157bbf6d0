// SPDX-License-Identifier: Apache-2.0
#include "device/decode/prefill_workspace.h"

#include <algorithm>

namespace plumb::device::decode {

PrefillWorkspace::PrefillWorkspace(const Geometry& g, Memory& memory) {
  const bool any = g.max_batched_tokens > 0;
  const std::int64_t requests = any ? kPrefillRequests : 0, tokens = any ? g.max_tokens() : 0;
  const std::int64_t decodes = g.max_decode_tokens();
  std::int64_t rows = 0, widest = 0;
  for (const Attention kind : g.layers) {
    rows = std::max(rows, g.workspace_rows(kind));
    widest = std::max(widest, g.window + g.attended_states(kind));
  }
  kv = memory.allocate<std::uint16_t>(requests * rows * kHeadDim, "prefill workspace");
  flat = memory.allocate<std::int32_t>(tokens * widest, "prefill indices");
  indptr = memory.allocate<std::int32_t>(tokens + 1, "prefill indptr");
  lens = memory.allocate<std::int32_t>(tokens, "prefill lens");
  key_columns = requests * g.states();
  keys = memory.allocate<std::uint8_t>(key_columns * g.index_dim, "gathered keys");
  key_scales = memory.allocate<float>(key_columns, "gathered key scales");
  logits = memory.allocate<float>(tokens * key_columns, "prefill logits");
  packed_codes =
      memory.allocate<std::uint8_t>(decodes * g.index_heads * g.index_dim, "packed index_q_codes");
  packed_scales = memory.allocate<float>(decodes * g.index_heads, "packed index_scales");
  packed_top_k = memory.allocate<std::int32_t>(decodes * g.top_k, "packed top_k");
}

}  // namespace plumb::device::decode
