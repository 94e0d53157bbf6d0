// SPDX-License-Identifier: Apache-2.0
#include "decode/models/prefill_workspace.h"

#include <algorithm>

namespace plumb::device::decode {

PrefillWorkspace::PrefillWorkspace(const Geometry& g, EngineMemory& memory) {
  const bool any = g.max_batched_tokens > 0;
  const std::int64_t requests = any ? kPrefillRequests : 0, tokens = any ? g.max_tokens() : 0;
  std::int64_t rows = 0, widest = 0;
  for (const Attention kind : g.layers) {
    rows = std::max(rows, g.workspace_rows(kind));
    widest = std::max(widest, g.window + g.attended_states(kind));
  }
  kv = memory.allocate_scratch<std::uint16_t>(requests * rows * kHeadDim, "prefill workspace");
  flat = memory.allocate<std::int32_t>(tokens * widest, "prefill indices");
  indptr = memory.allocate<std::int32_t>(tokens + 1, "prefill indptr");
  lens = memory.allocate<std::int32_t>(tokens, "prefill lens");
}

}  // namespace plumb::device::decode
