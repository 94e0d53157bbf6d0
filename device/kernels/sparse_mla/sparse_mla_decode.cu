// SPDX-License-Identifier: Apache-2.0
//
// Sparse MLA decode over paged caches: plan, attention split over the grid, combine.
//
//   plan_kernel      1 block of one wave. Launched once per plan, before its first launch.
//   attend_kernel    grid (parts, queries * head tiles), 128 threads. A block walks the requests
//                    and blocks of its part with one tile of heads (mla_attend.h)
//   combine_kernel   grid (requests, queries * heads), one wave. Returns if a request is not split.
//
// Without a plan only attend_kernel runs, and a part is a whole request.
//
// Legal for any number of requests, queries, heads and candidates; wave 32 or 64.
#include <cmath>
#include <cstdint>

#include "device/kernels/sparse_mla/mla_attend.h"
#include "device/kernels/sparse_mla/mla_cache.h"
#include "device/kernels/sparse_mla/mla_candidates.h"
#include "device/kernels/sparse_mla/mla_combine.h"
#include "device/kernels/sparse_mla/mla_plan.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// A block of candidates, all in one cache.
struct MlaBlock {
  const plumb_mla_cache* cache;
  plumb_format dialect;
  const std::int32_t* indices;  // candidate list of the query
  int begin, end;               // positions in the list; padding from `count` on
  int count;
};

PLUMB_DEVICE inline MlaBlock find_block(const MlaCall& call, const MlaWork& work, int block) {
  const auto& params = call.params;
  const int main_blocks = main_block_count(call, work.request);
  const bool in_main = block < main_blocks;
  const plumb_mla_candidates& candidates = in_main ? params.main : params.extra;
  MlaBlock found;
  found.cache = in_main ? &params.main_cache : &params.extra_cache;
  found.dialect = found.cache->dialect;
  found.indices = indices_of(candidates, work.request, work.query);
  found.begin = (in_main ? block : block - main_blocks) * block_size_of(call);
  found.end = found.begin + block_size_of(call);
  found.count = candidate_count(candidates, work.request);
  return found;
}

// Positions outside the block or the list, and skipped candidates, are staged as zeros. Nothing is
// read for them.
PLUMB_DEVICE inline void stage_tokens(const MlaBlock& block, int first, const MlaWork& work) {
  const int token = thread_index() / kStageThreads, first_group = thread_index() % kStageThreads;
  const int position = first + token;
  const bool listed = position < block.end && position < block.count;
  const std::int32_t slot = listed ? block.indices[position] : -1;
  if (first_group == 0) work.slots[token] = slot;
  std::uint16_t* to = work.tokens + token * kTokenStride;
  for (int group = first_group; group < key_groups(*block.cache); group += kStageThreads) {
    if (slot < 0) {
      zero_group(to + group * kGroup);
    } else {
      load_group(*block.cache, locate(*block.cache, slot), group, block.dialect,
                 to + group * kGroup);
    }
  }
}

// Attends to blocks [begin, end) of the request. `softmax` belongs to head thread_index().
PLUMB_DEVICE inline void attend(const MlaCall& call, const MlaWork& work, int begin, int end,
                                Softmax& softmax, float (&sums)[kHeadTile][kThreadDims]) {
  const float scale = call.params.sm_scale * kLog2E;
  for (int number = begin; number < end; ++number) {
    const MlaBlock block = find_block(call, work, number);
    for (int first = block.begin; first < block.end; first += kTokenTile) {
      stage_tokens(block, first, work);
      attend_tile(work, scale, softmax, sums);
    }
  }
}

PLUMB_DEVICE inline float* lse_of(const plumb_sparse_mla_decode_params& p, int request, int query,
                                  int head) {
  return p.lse + request * p.lse_request_stride + head * p.lse_head_stride + query;
}
PLUMB_DEVICE inline float* partial_lse_of(const plumb_sparse_mla_decode_params& p, int slot,
                                          int query, int head) {
  return p.partial_lse + slot * p.partial_lse_slot_stride + query * p.partial_lse_query_stride +
         head;
}
PLUMB_DEVICE inline float* partial_out_of(const plumb_sparse_mla_decode_params& p, int slot,
                                          int query, int head) {
  return p.partial_out + slot * p.partial_out_slot_stride + query * p.partial_out_query_stride +
         head * p.partial_out_head_stride;
}
PLUMB_DEVICE inline std::uint16_t* out_of(const plumb_sparse_mla_decode_params& p, int request,
                                          int query, int head) {
  return p.out + request * p.out_request_stride + query * p.out_query_stride +
         head * p.out_head_stride;
}

// Stores the head's log-sum-exp and returns the factor for its accumulators. `slot`: the slot for
// partial results, or -1 if no other part works on the request.
PLUMB_DEVICE inline float finish_head(const MlaCall& call, const MlaWork& work, int slot, int head,
                                      const Softmax& softmax) {
  const auto& params = call.params;
  const bool split = slot >= 0, lonely = softmax.sum == 0;
  const float lse = lse_in_base_2(softmax);
  if (split) {
    *partial_lse_of(params, slot, work.query, head) = lonely ? -INFINITY : lse;
  } else if (params.lse != nullptr) {
    *lse_of(params, work.request, work.query, head) = lonely ? INFINITY : lse * kLn2;
  }
  const float sink = split ? 0.0F : sink_weight(params.attn_sink, head, softmax.largest);
  return lonely ? 0.0F : 1.0F / (softmax.sum + sink);
}

PLUMB_DEVICE inline void store_heads(const MlaCall& call, const MlaWork& work, int slot,
                                     const float (&sums)[kHeadTile][kThreadDims]) {
  const auto& params = call.params;
  const int first = thread_index() * kThreadDims;
  for (int head = 0; head < kHeadTile; ++head) {
    if (head >= work.heads) break;
    const int number = work.first_head + head;
    float* const partial = slot < 0 ? nullptr : partial_out_of(params, slot, work.query, number);
    std::uint16_t* const out = out_of(params, work.request, work.query, number);
    for (int d = 0; d < kThreadDims; ++d) {
      const float value = sums[head][d] * work.factors[head];
      if (slot >= 0) {
        partial[first + d] = value;
      } else {
        out[first + d] = store_bf16(value);
      }
    }
  }
}

PLUMB_KERNEL void plan_kernel(MlaCall call) {
  const int payload = payload_of_part(call);
  if (lane_index() == 0) plan_tiles(call, payload);
}

PLUMB_KERNEL void attend_kernel(MlaCall call) {
  PLUMB_SHARED(std::uint16_t, q, kHeadTile* kMostKeyDims);
  PLUMB_SHARED(std::uint16_t, tokens, kTokenTile* kTokenStride);
  PLUMB_SHARED(std::int32_t, slots, kTokenTile);
  PLUMB_SHARED(float, weights, kHeadTile* kTokenTile);
  PLUMB_SHARED(float, factors, kHeadTile);
  const MlaTile tile = tile_of(call, block_index_x());
  const auto& params = call.params;
  const int head_tiles = ceil_div(static_cast<int>(params.heads), kHeadTile);
  const int first_head = block_index_y() % head_tiles * kHeadTile;
  MlaWork work{.request = 0,
               .query = block_index_y() / head_tiles,
               .first_head = first_head,
               .heads = heads_of_tile(params.heads, first_head),
               .key_dims = key_groups(params.main_cache) * kGroup,
               .q = q,
               .tokens = tokens,
               .slots = slots,
               .weights = weights,
               .factors = factors};
  // A part without work has begin_req >= requests. Its other members are undefined.
  if (tile.begin_req >= params.requests) return;
  for (work.request = tile.begin_req; work.request <= tile.end_req; ++work.request) {
    const bool first = work.request == tile.begin_req, last = work.request == tile.end_req;
    const bool split = first ? tile.first_split != 0 : last && tile.last_split != 0;
    const int slot =
        split ? call.plan.num_splits[work.request] + (first ? tile.begin_split : 0) : -1;
    Softmax softmax;
    float sums[kHeadTile][kThreadDims] = {};
    stage_q(work,
            params.q + work.request * params.q_request_stride + work.query * params.q_query_stride,
            params.q_head_stride);
    attend(call, work, first ? tile.begin_block : 0,
           last ? tile.end_block : block_count(call, work.request), softmax, sums);
    if (thread_index() < work.heads) {
      factors[thread_index()] = finish_head(call, work, slot, first_head + thread_index(), softmax);
    }
    block_sync();
    store_heads(call, work, slot, sums);
  }
}

PLUMB_KERNEL void combine_kernel(MlaCall call) {
  const auto& params = call.params;
  const int request = block_index_x();
  const int first_slot = call.plan.num_splits[request];
  const int splits = call.plan.num_splits[request + 1] - first_slot;
  if (splits == 1) return;  // attend_kernel has stored the row
  const int heads = static_cast<int>(params.heads);
  const int query = block_index_y() / heads, head = block_index_y() % heads;
  const float* partial_lse = partial_lse_of(params, first_slot, query, head);
  const float* partial_out = partial_out_of(params, first_slot, query, head);
  float lse = combined_lse(partial_lse, splits, params.partial_lse_slot_stride);
  if (params.lse != nullptr && lane_index() == 0) {
    *lse_of(params, request, query, head) = lse * kLn2;
  }
  if (params.attn_sink != nullptr) lse = add_sink(lse, params.attn_sink[head]);
  std::uint16_t* out = out_of(params, request, query, head);
  for (int first = lane_index() * kThreadDims; first < kValueDim;
       first += wave_size() * kThreadDims) {
    float sums[kThreadDims] = {};
    for (int split = 0; split < splits; ++split) {
      const float weight = exp2_approx(partial_lse[split * params.partial_lse_slot_stride] - lse);
      const float* from = partial_out + split * params.partial_out_slot_stride + first;
      for (int d = 0; d < kThreadDims; ++d) sums[d] += weight * from[d];
    }
    for (int d = 0; d < kThreadDims; ++d) out[first + d] = store_bf16(sums[d]);
  }
}

// ---- host ----

namespace {

bool legal_split(const plumb_sparse_mla_decode_params& params) {
  return legal_plan(*params.plan) && params.partial_out != nullptr &&
         params.partial_lse != nullptr && params.partial_out_head_stride >= kValueDim &&
         params.partial_out_query_stride >= kValueDim &&
         params.partial_out_slot_stride >= kValueDim && params.partial_lse_query_stride >= 1 &&
         params.partial_lse_slot_stride >= 1;
}

bool legal(const plumb_sparse_mla_decode_params& params) {
  if (params.requests < 1 || params.queries < 1 || params.heads < 1) return false;
  if (params.q == nullptr || params.out == nullptr) return false;
  if (params.plan != nullptr && !legal_split(params)) return false;
  if (params.out_head_stride < kValueDim || params.out_request_stride < kValueDim ||
      params.out_query_stride < kValueDim)
    return false;
  if (params.main_cache.data == nullptr || !legal_cache(params.main_cache)) return false;
  if (!legal_candidates(params.main, params.queries)) return false;
  const bool has_extra = params.extra_cache.data != nullptr;
  if (!has_extra) return params.extra.indices == nullptr;
  return legal_cache(params.extra_cache) && legal_candidates(params.extra, params.queries) &&
         params.extra_cache.layout == params.main_cache.layout;
}

plumb_status plan_sparse_mla_decode(const void* untyped) {
  const auto& params = *static_cast<const plumb_sparse_mla_decode_params*>(untyped);
  if (!legal(params)) return PLUMB_INVALID_ARGUMENT;
  if (params.plan == nullptr) return PLUMB_OK;
  const MlaCall call{params, *params.plan};
  const LaunchShape one_wave{1, 1, stream_properties(params.stream).wave_size, 0};
  return PLUMB_LAUNCH(plan_kernel, one_wave, params.stream, call);
}

plumb_status launch_sparse_mla_decode(const void* untyped) {
  const auto& params = *static_cast<const plumb_sparse_mla_decode_params*>(untyped);
  if (!legal(params)) return PLUMB_INVALID_ARGUMENT;
  const bool has_plan = params.plan != nullptr;
  const MlaCall call{params, has_plan ? *params.plan : whole_requests(params.requests)};
  const std::int64_t head_tiles = (params.heads + kHeadTile - 1) / kHeadTile;
  const LaunchShape parts{call.plan.num_parts, params.queries * head_tiles, kThreads, 0};
  const plumb_status status = PLUMB_LAUNCH(attend_kernel, parts, params.stream, call);
  if (status != PLUMB_OK || !has_plan) return status;
  const LaunchShape rows{params.requests, params.queries * params.heads,
                         stream_properties(params.stream).wave_size, 0};
  return PLUMB_LAUNCH(combine_kernel, rows, params.stream, call);
}

}  // namespace

OpEntry sparse_mla_decode() {
  return {.op = "sparse_mla_decode",
          .launch = &launch_sparse_mla_decode,
          .numerics = {.product = PLUMB_BF16,
                       .accumulator = PLUMB_F32,
                       .chains = 1,
                       .probability = PLUMB_BF16,
                       .function_ulp = 2,
                       .deterministic = 1,
                       .stores_partials = 1},
          .plan = &plan_sparse_mla_decode};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
