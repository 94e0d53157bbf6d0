// SPDX-License-Identifier: Apache-2.0
//
// FlashMLA's scheduling metadata: empty when created, planned by the first attention call that
// receives it, and not changed afterwards   [1.7]. A step has one object per kind of layer, so the
// first layer of a kind plans for all of them. V3.2 does not use this class: its plan is part of
// its metadata (v32_metadata.h).
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>
#include <map>

#include "decode/engine/geometry.h"
#include "device/caching_allocator.h"
#include "device/launch_state.h"

namespace plumb::device::decode {

inline constexpr std::int64_t kTileWords = 8;  // int32 words per tile of the plan

// A plan, and the host state that the implementation keeps with it.
struct MlaState {
  plumb_mla_plan plan = {};
  LaunchState kept = {};
};

class AttentionState {
 public:
  AttentionState(const Geometry& geometry, CachingAllocator& memory);
  // Frees the memory of the plans. The allocator may hand it out again at once.
  ~AttentionState();
  AttentionState(const AttentionState&) = delete;
  AttentionState& operator=(const AttentionState&) = delete;

  MlaState& of(Attention kind) { return states_.at(kind); }

 private:
  CachingAllocator& memory_;
  std::map<Attention, MlaState> states_;
};

}  // namespace plumb::device::decode
