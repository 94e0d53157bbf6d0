// SPDX-License-Identifier: Apache-2.0
#include "decode/metadata/attention_state.h"

namespace plumb::device::decode {

namespace {

constexpr std::int32_t kFixedOverhead = 5;

}  // namespace

AttentionState::AttentionState(const Geometry& geometry, CachingAllocator& memory)
    : memory_(memory) {
  const auto words = [&](std::int64_t count, const char* label) {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(std::int32_t);
    return static_cast<std::int32_t*>(memory.allocate(bytes, label));
  };
  for (const Attention kind : geometry.layers) {
    if (kind == Attention::tokens || states_.contains(kind)) continue;
    states_[kind].plan = {.struct_size = sizeof(plumb_mla_plan),
                          .tiles = words(geometry.plan_parts * kTileWords, "tiles"),
                          .num_splits = words(geometry.max_tokens() + 1, "num_splits"),
                          .num_parts = geometry.plan_parts,
                          .block_n = geometry.plan_block,
                          .fixed_overhead = kFixedOverhead};
  }
}

AttentionState::~AttentionState() {
  for (const auto& [kind, state] : states_) {
    memory_.free(state.plan.tiles);
    memory_.free(state.plan.num_splits);
  }
}

}  // namespace plumb::device::decode
