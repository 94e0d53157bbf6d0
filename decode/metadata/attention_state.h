// SPDX-License-Identifier: Apache-2.0
//
// FlashMLA's scheduling metadata: empty when made, planned by the first attention call that gets
// it, and then kept as it is   [1.7]. One object per kind of layer and step, so the first layer of
// each kind plans for all. V3.2 has none: its plan belongs to its metadata (v32_metadata.h).
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>
#include <map>

#include "decode/engine/geometry.h"
#include "device/caching_allocator.h"
#include "device/launch_state.h"

namespace plumb::device::decode {

inline constexpr std::int64_t kTileWords = 8;  // int32 of a tile of the plan

// A plan, and what an implementation keeps of the launches with it.
struct MlaState {
  plumb_mla_plan plan = {};
  LaunchState kept = {};
};

class AttentionState {
 public:
  AttentionState(const Geometry& geometry, CachingAllocator& memory);
  // What it planned is given back, and may be somebody else's at once.
  ~AttentionState();
  AttentionState(const AttentionState&) = delete;
  AttentionState& operator=(const AttentionState&) = delete;

  MlaState& of(Attention kind) { return states_.at(kind); }

 private:
  CachingAllocator& memory_;
  std::map<Attention, MlaState> states_;
};

}  // namespace plumb::device::decode
