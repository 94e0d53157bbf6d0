// SPDX-License-Identifier: Apache-2.0
//
// Sparse MLA decode over paged V4 caches: plan, attention split over the grid, combine.
//
//   plan_kernel      1 block of one wave. Launched by the first call on a plan only.
//   attend_kernel    grid (parts, queries * head tiles), 128 threads. A block walks the requests
//   and
//                    blocks of its part with one tile of 16 heads, 16 candidates at a time:
//     stage    thread t: dimensions 64 (t % 8) .. + 63 of candidate t / 8 (and once of q's head t /
//     8) score    thread t: head t / 8, candidates t % 8 and t % 8 + 8, each a sequential sum over
//     d weigh    thread t < 16: head t; online softmax in base 2 gather   thread t: dimensions 4t
//     .. 4t + 3 of every head, in registers
//   combine_kernel   grid (requests, queries * heads), one wave. Rows that were not split return.
//
// Legal for any number of requests, queries, heads and candidates; wave 32 or 64.
#include <cmath>
#include <cstdint>

#include "device/kernels/bf16.h"
#include "device/kernels/mla_cache.h"
#include "device/kernels/mla_combine.h"
#include "device/kernels/mla_plan.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kThreads = 128, kHeadTile = 16, kTokenTile = 16;
constexpr int kThreadDims = kHeadDim / kThreads;
constexpr int kScoreThreads = kThreads / kHeadTile;  // of one head
// One word more than the data, so that neighbouring candidates start in different memory banks.
constexpr int kTokenStride = kHeadDim + 2;
static_assert(kThreads == kTokenTile * kGroups && kTokenTile == 2 * kScoreThreads);

// The first maximum: low enough to vanish, yet finite, so that no difference is infinity -
// infinity.
constexpr float kLowest = -1e30F;

// One tile of heads of one query of one request, and the shared memory in which a block works on
// it.
struct MlaWork {
  int request, query, first_head, heads;
  std::uint16_t* q;       // [kHeadTile, kHeadDim]
  std::uint16_t* tokens;  // [kTokenTile, kTokenStride]
  std::int32_t* slots;    // [kTokenTile], -1: none
  float* weights;         // [kHeadTile, kTokenTile]: scores, then p
  float* factors;         // [kHeadTile], of the accumulators
};

// The candidates of one block, all in one cache.
struct MlaBlock {
  const plumb_mla_cache* cache;
  plumb_format dialect;
  const std::int32_t* indices;  // of the query
  int begin, end;               // positions; those from `count` on are padding
  int count;
};

// State of one head's online softmax.
struct Softmax {
  float largest = kLowest, sum = 0;
};

PLUMB_DEVICE inline const std::int32_t* indices_of(const plumb_mla_candidates& candidates,
                                                   int request, int query) {
  if (candidates.indptr != nullptr) return candidates.indices + candidates.indptr[request];
  return candidates.indices + request * candidates.request_stride + query * candidates.query_stride;
}

PLUMB_DEVICE inline MlaBlock find_block(const MlaCall& call, const MlaWork& work, int block) {
  const auto& params = call.params;
  const int main_blocks = main_block_count(call, work.request);
  const bool in_main = block < main_blocks;
  const plumb_mla_candidates& candidates = in_main ? params.main : params.extra;
  MlaBlock found;
  found.cache = in_main ? &params.main_cache : &params.extra_cache;
  found.dialect = found.cache->dialect;
  found.indices = indices_of(candidates, work.request, work.query);
  found.begin = (in_main ? block : block - main_blocks) * call.plan.block_n;
  found.end = found.begin + call.plan.block_n;
  found.count = candidate_count(candidates, work.request);
  return found;
}

PLUMB_DEVICE inline void stage_q(const MlaCall& call, const MlaWork& work) {
  const int head = thread_index() / kGroups, first = thread_index() % kGroups * kScaleGroup;
  if (head >= work.heads) return;
  const auto& params = call.params;
  const std::uint16_t* from = params.q + work.request * params.q_request_stride +
                              work.query * params.q_query_stride +
                              (work.first_head + head) * params.q_head_stride + first;
  std::uint16_t* to = work.q + head * kHeadDim + first;
  for (int d = 0; d < kScaleGroup; ++d) to[d] = from[d];
}

// Positions outside the block or the list and skipped candidates become zero; nothing is read for
// them.
PLUMB_DEVICE inline void stage_tokens(const MlaBlock& block, int first, const MlaWork& work) {
  const int token = thread_index() / kGroups, group = thread_index() % kGroups;
  const int position = first + token;
  const bool listed = position < block.end && position < block.count;
  const std::int32_t slot = listed ? block.indices[position] : -1;
  if (group == 0) work.slots[token] = slot;
  std::uint16_t* to = work.tokens + token * kTokenStride + group * kScaleGroup;
  if (slot < 0) return zero_group(to);
  load_group(locate(*block.cache, slot), group, block.dialect, to);
}

PLUMB_DEVICE inline void score_tokens(const MlaWork& work, float scale) {
  const int head = thread_index() / kScoreThreads, token = thread_index() % kScoreThreads;
  if (head >= work.heads) return;
  const std::uint16_t* q = work.q + head * kHeadDim;
  const std::uint16_t* near = work.tokens + token * kTokenStride;
  const std::uint16_t* far = near + kScoreThreads * kTokenStride;
  float near_sum = 0, far_sum = 0;
  for (int d = 0; d < kHeadDim; ++d) {
    const float value = load_bf16(q[d]);
    near_sum += value * load_bf16(near[d]);
    far_sum += value * load_bf16(far[d]);
  }
  float* scores = work.weights + head * kTokenTile + token;
  scores[0] = work.slots[token] < 0 ? -INFINITY : near_sum * scale;
  scores[kScoreThreads] = work.slots[token + kScoreThreads] < 0 ? -INFINITY : far_sum * scale;
}

// Turns a head's scores into p. The sum takes p as it is, the product with V takes it as bf16.
PLUMB_DEVICE inline void weigh_tokens(float* weights, float& factor, Softmax& softmax) {
  float largest = softmax.largest;
  for (int i = 0; i < kTokenTile; ++i) largest = weights[i] > largest ? weights[i] : largest;
  float sum = 0;
  for (int i = 0; i < kTokenTile; ++i) {
    const float p = exp2_approx(weights[i] - largest);
    sum += p;
    weights[i] = load_bf16(store_bf16(p));
  }
  factor = exp2_approx(softmax.largest - largest);
  softmax.sum = softmax.sum * factor + sum;
  softmax.largest = largest;
}

PLUMB_DEVICE inline void gather_tokens(const MlaWork& work, float (&sums)[kHeadTile][kThreadDims]) {
  for (int head = 0; head < kHeadTile; ++head) {
    if (head >= work.heads) break;
    for (int d = 0; d < kThreadDims; ++d) sums[head][d] *= work.factors[head];
  }
  for (int token = 0; token < kTokenTile; ++token) {
    const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims;
    float v[kThreadDims];
    for (int d = 0; d < kThreadDims; ++d) v[d] = load_bf16(from[d]);
    for (int head = 0; head < kHeadTile; ++head) {
      if (head >= work.heads) break;
      const float p = work.weights[head * kTokenTile + token];
      for (int d = 0; d < kThreadDims; ++d) sums[head][d] += p * v[d];
    }
  }
}

// Attends to blocks [begin, end) of the request. `softmax` is that of head thread_index().
PLUMB_DEVICE inline void attend(const MlaCall& call, const MlaWork& work, int begin, int end,
                                Softmax& softmax, float (&sums)[kHeadTile][kThreadDims]) {
  const float scale = call.params.sm_scale * kLog2E;
  const int thread = thread_index();
  for (int number = begin; number < end; ++number) {
    const MlaBlock block = find_block(call, work, number);
    for (int first = block.begin; first < block.end; first += kTokenTile) {
      stage_tokens(block, first, work);
      block_sync();
      score_tokens(work, scale);
      block_sync();
      if (thread < work.heads) {
        weigh_tokens(work.weights + thread * kTokenTile, work.factors[thread], softmax);
      }
      block_sync();
      gather_tokens(work, sums);
      block_sync();
    }
  }
}

// What the sink adds to a sum of weights relative to 2^largest.
PLUMB_DEVICE inline float sink_weight(const MlaCall& call, int head, float largest) {
  if (call.params.attn_sink == nullptr) return 0;
  return exp2_approx(call.params.attn_sink[head] * kLog2E - largest);
}

// Stores the head's log-sum-exp and returns what its accumulators are to be multiplied by. `slot`
// is the request's partial slot, or -1 if no other part has a share in the request.
PLUMB_DEVICE inline float finish_head(const MlaCall& call, const MlaWork& work, int slot, int head,
                                      const Softmax& softmax) {
  const auto& params = call.params;
  const bool split = slot >= 0, lonely = softmax.sum == 0;
  const float lse = log2_approx(softmax.sum) + softmax.largest;
  if (split) {
    params.partial_lse[(slot * params.queries + work.query) * params.heads + head] =
        lonely ? -INFINITY : lse;
  } else if (params.lse != nullptr) {
    params.lse[(work.request * params.heads + head) * params.queries + work.query] =
        lonely ? INFINITY : lse * kLn2;
  }
  const float sink = split ? 0.0F : sink_weight(call, head, softmax.largest);
  return lonely ? 0.0F : 1.0F / (softmax.sum + sink);
}

PLUMB_DEVICE inline void store_heads(const MlaCall& call, const MlaWork& work, int slot,
                                     const float (&sums)[kHeadTile][kThreadDims]) {
  const auto& params = call.params;
  const std::int64_t row =
      ((slot >= 0 ? slot : work.request) * params.queries + work.query) * params.heads;
  for (int head = 0; head < kHeadTile; ++head) {
    if (head >= work.heads) break;
    const std::int64_t to =
        (row + work.first_head + head) * kHeadDim + thread_index() * kThreadDims;
    for (int d = 0; d < kThreadDims; ++d) {
      const float value = sums[head][d] * work.factors[head];
      if (slot >= 0) {
        params.partial_out[to + d] = value;
      } else {
        params.out[to + d] = store_bf16(value);
      }
    }
  }
}

PLUMB_KERNEL void plan_kernel(MlaCall call) {
  const int payload = payload_of_part(call);
  if (lane_index() == 0) plan_tiles(call, payload);
}

PLUMB_KERNEL void attend_kernel(MlaCall call) {
  PLUMB_SHARED(std::uint16_t, q, kHeadTile* kHeadDim);
  PLUMB_SHARED(std::uint16_t, tokens, kTokenTile* kTokenStride);
  PLUMB_SHARED(std::int32_t, slots, kTokenTile);
  PLUMB_SHARED(float, weights, kHeadTile* kTokenTile);
  PLUMB_SHARED(float, factors, kHeadTile);
  const MlaTile tile = reinterpret_cast<const MlaTile*>(call.plan.tiles)[block_index_x()];
  const int heads = static_cast<int>(call.params.heads), thread = thread_index();
  const int head_tiles = ceil_div(heads, kHeadTile);
  const int first_head = block_index_y() % head_tiles * kHeadTile;
  MlaWork work{0,          block_index_y() / head_tiles,
               first_head, heads - first_head < kHeadTile ? heads - first_head : kHeadTile,
               q,          tokens,
               slots,      weights,
               factors};
  // A part without work has begin_req >= requests, and whatever else the planner left there.
  if (tile.begin_req >= call.params.requests) return;
  for (work.request = tile.begin_req; work.request <= tile.end_req; ++work.request) {
    const bool first = work.request == tile.begin_req, last = work.request == tile.end_req;
    const bool split = first ? tile.first_split != 0 : last && tile.last_split != 0;
    const int slot =
        split ? call.plan.num_splits[work.request] + (first ? tile.begin_split : 0) : -1;
    Softmax softmax;
    float sums[kHeadTile][kThreadDims] = {};
    stage_q(call, work);
    attend(call, work, first ? tile.begin_block : 0,
           last ? tile.end_block : block_count(call, work.request), softmax, sums);
    if (thread < work.heads) {
      factors[thread] = finish_head(call, work, slot, first_head + thread, softmax);
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
  const std::int64_t slot_rows = params.queries * params.heads, row = block_index_y();
  const float* partial_lse = params.partial_lse + first_slot * slot_rows + row;
  const float* partial_out = params.partial_out + (first_slot * slot_rows + row) * kHeadDim;
  float lse = combined_lse(partial_lse, splits, slot_rows);
  if (params.lse != nullptr && lane_index() == 0) {
    params.lse[(request * params.heads + head) * params.queries + query] = lse * kLn2;
  }
  if (params.attn_sink != nullptr) lse = add_sink(lse, params.attn_sink[head]);
  std::uint16_t* out = params.out + (request * slot_rows + row) * kHeadDim;
  for (int first = lane_index() * kThreadDims; first < kHeadDim;
       first += wave_size() * kThreadDims) {
    float sums[kThreadDims] = {};
    for (int split = 0; split < splits; ++split) {
      const float weight = exp2_approx(partial_lse[split * slot_rows] - lse);
      const float* from = partial_out + split * slot_rows * kHeadDim + first;
      for (int d = 0; d < kThreadDims; ++d) sums[d] += weight * from[d];
    }
    for (int d = 0; d < kThreadDims; ++d) out[first + d] = store_bf16(sums[d]);
  }
}

// ---- host ----

namespace {

bool legal(const plumb_mla_cache& cache) {
  return cache.page >= 1 && cache.num_blocks >= 1 && cache.block_stride_bytes % 2 == 0 &&
         cache.block_stride_bytes >= std::int64_t{cache.page} * (kTokenBytes + kScaleBytes) &&
         (cache.dialect == PLUMB_E4M3FN || cache.dialect == PLUMB_E4M3FNUZ);
}

// Ragged rows know no queries: a request has one.
bool legal(const plumb_mla_candidates& candidates, std::int64_t queries) {
  if (candidates.indices == nullptr || candidates.width < 1) return false;
  return candidates.indptr == nullptr || (candidates.lengths == nullptr && queries == 1);
}

bool legal(const plumb_sparse_mla_decode_params& params) {
  if (params.requests < 1 || params.queries < 1 || params.heads < 1) return false;
  if (params.q == nullptr || params.out == nullptr || params.plan == nullptr) return false;
  if (params.partial_out == nullptr || params.partial_lse == nullptr) return false;
  const plumb_mla_plan& plan = *params.plan;
  if (plan.tiles == nullptr || plan.num_splits == nullptr || plan.num_parts < 1) return false;
  if (plan.block_n < 1 || plan.fixed_overhead < 0) return false;
  if (params.main_cache.data == nullptr || !legal(params.main_cache)) return false;
  if (!legal(params.main, params.queries)) return false;
  const bool has_extra = params.extra_cache.data != nullptr;
  return has_extra ? legal(params.extra_cache) && legal(params.extra, params.queries)
                   : params.extra.indices == nullptr;
}

plumb_status launch_sparse_mla_decode(const void* untyped) {
  const auto& params = *static_cast<const plumb_sparse_mla_decode_params*>(untyped);
  if (!legal(params)) return PLUMB_INVALID_ARGUMENT;
  const MlaCall call{params, *params.plan};
  const int wave = stream_properties(params.stream).wave_size;
  if (params.plan->planned == 0) {
    const LaunchShape one_wave{1, 1, wave, 0};
    const plumb_status status = PLUMB_LAUNCH(plan_kernel, one_wave, params.stream, call);
    if (status != PLUMB_OK) return status;
    params.plan->planned = 1;
  }
  const std::int64_t head_tiles = (params.heads + kHeadTile - 1) / kHeadTile;
  const LaunchShape parts{params.plan->num_parts, params.queries * head_tiles, kThreads, 0};
  const plumb_status status = PLUMB_LAUNCH(attend_kernel, parts, params.stream, call);
  if (status != PLUMB_OK) return status;
  const LaunchShape rows{params.requests, params.queries * params.heads, wave, 0};
  return PLUMB_LAUNCH(combine_kernel, rows, params.stream, call);
}

}  // namespace

plumb_op_entry sparse_mla_decode() {
  return {"sparse_mla_decode",
          &launch_sparse_mla_decode,
          {.product = PLUMB_BF16,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_BF16,
           .function_ulp = 2,
           .deterministic = 1,
           .stores_partials = 1}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
