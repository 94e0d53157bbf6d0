// SPDX-License-Identifier: Apache-2.0
//
// Tile plan of a split decode: which part of the grid attends to which blocks of which requests.
// Greedy: each part gets the same payload. A request costs its blocks and `fixed_overhead`.
#pragma once

#include <cstdint>

#include "device/kernels/sparse_mla/mla_candidates.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// A call as its kernels get it, with a copy of the plan's fields, because params.plan is host
// memory.
struct MlaCall {
  plumb_sparse_mla_decode_params params;
  plumb_mla_plan plan;
};

// Requests [begin_req, end_req], from begin_block of the first to end_block (exclusive) of the
// last.
struct MlaTile {
  std::int32_t begin_req, end_req, begin_block, end_block;
  std::int32_t begin_split;              // index of this part among the splits of begin_req
  std::int32_t first_split, last_split;  // whether other parts share begin_req, end_req
  std::int32_t pad;
};

// The plan of a caller that has none: each request is one part.
inline plumb_mla_plan whole_requests(std::int64_t requests) {
  constexpr std::int64_t kBlock = 64;
  return {.struct_size = sizeof(plumb_mla_plan), .num_parts = requests, .block_n = kBlock};
}

inline bool legal_plan(const plumb_mla_plan& plan) {
  return plan.tiles != nullptr && plan.num_splits != nullptr && plan.num_parts >= 1 &&
         plan.block_n >= 1 && plan.fixed_overhead >= 0 &&
         fits_int(plan.num_parts, plan.block_n, plan.fixed_overhead);
}

PLUMB_DEVICE inline int block_size_of(const MlaCall& call) {
  return static_cast<int>(call.plan.block_n);
}
PLUMB_DEVICE inline int overhead_of(const MlaCall& call) {
  return static_cast<int>(call.plan.fixed_overhead);
}

PLUMB_DEVICE inline int ceil_div(int count, int step) { return (count + step - 1) / step; }

// The main cache has at least one block, even an empty one: every request has a first block.
PLUMB_DEVICE inline int main_block_count(const MlaCall& call, int request) {
  const int blocks = ceil_div(candidate_count(call.params.main, request), block_size_of(call));
  return blocks > 1 ? blocks : 1;
}

PLUMB_DEVICE inline int block_count(const MlaCall& call, int request) {
  return main_block_count(call, request) +
         ceil_div(candidate_count(call.params.extra, request), block_size_of(call));
}

PLUMB_DEVICE inline MlaTile tile_of(const MlaCall& call, int part) {
  if (call.plan.tiles == nullptr) return {part, part, 0, block_count(call, part), 0, 0, 0, 0};
  return reinterpret_cast<const MlaTile*>(call.plan.tiles)[part];
}

// Blocks of one part, overhead included. One whole wave calls it.
PLUMB_DEVICE inline int payload_of_part(const MlaCall& call) {
  const int requests = static_cast<int>(call.params.requests);
  int total = 0;
  for (int request = lane_index(); request < requests; request += wave_size()) {
    total += block_count(call, request) + overhead_of(call);
  }
  for (int step = wave_size() / 2; step > 0; step /= 2) {
    total += shuffle_xor(all_lanes(), total, step, wave_size());
  }
  return ceil_div(total, static_cast<int>(call.plan.num_parts)) + overhead_of(call);
}

// Where the parts before this one end.
struct PlanCursor {
  int request = 0, block = 0;
  int split = 0;   // parts that already hold blocks of `request`
  int splits = 0;  // total of all requests before `request`
};

// Takes blocks from the cursor on until `left` is used up. A part takes at least one of the blocks
// that are left, because payload > overhead.
PLUMB_DEVICE inline void take_blocks(const MlaCall& call, int left, PlanCursor& at) {
  const int overhead = overhead_of(call);
  while (at.request < call.params.requests) {
    const int cost = block_count(call, at.request) - at.block + overhead;
    if (left < cost) {
      if (left > overhead) {
        at.block += left - overhead;
        ++at.split;
      }
      return;
    }
    left -= cost;
    at.splits += at.split + 1;
    ++at.request;
    call.plan.num_splits[at.request] = at.splits;
    at.block = at.split = 0;
  }
}

// Parts for which nothing is left get begin_req = requests. One thread calls it.
PLUMB_DEVICE inline void plan_tiles(const MlaCall& call, int payload) {
  auto* tiles = reinterpret_cast<MlaTile*>(call.plan.tiles);
  call.plan.num_splits[0] = 0;
  PlanCursor at;
  for (int part = 0; part < call.plan.num_parts; ++part) {
    MlaTile tile{at.request, 0, at.block, 0, at.split, at.block != 0, 0, 0};
    take_blocks(call, payload, at);
    tile.end_req = at.block > 0 ? at.request : at.request - 1;
    const int end_req_blocks = block_count(call, tile.end_req);
    tile.end_block = at.block > 0 ? at.block : end_req_blocks;
    tile.last_split = tile.end_block != end_req_blocks;
    if (tile.begin_req == tile.end_req) {
      tile.first_split = tile.last_split = tile.first_split | tile.last_split;
    }
    tiles[part] = tile;
  }
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
