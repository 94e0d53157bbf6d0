// SPDX-License-Identifier: Apache-2.0
//
// Sparse MLA prefill over a workspace of bf16 rows.
//
//   prefill_kernel   grid (query rows, head tiles), 128 threads: one query row with one tile of
//                    heads (mla_attend.h)
//
// Legal for any number of rows, heads and candidates, keys of 512 or 576; wave 32 or 64.
#include <cmath>
#include <cstdint>

#include "device/kernels/sparse_mla/mla_attend.h"
#include "device/kernels/sparse_mla/mla_candidates.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// Candidates behind the end of the list and indices outside the workspace are staged as zeros.
// Nothing is read for them.
PLUMB_DEVICE inline void stage_rows(const plumb_sparse_mla_prefill_params& params,
                                    const std::int32_t* indices, int first, int count,
                                    const MlaWork& work) {
  const int token = thread_index() / kStageThreads, first_group = thread_index() % kStageThreads;
  const std::int32_t index = first + token < count ? indices[first + token] : -1;
  const bool inside = index >= 0 && index < params.kv_rows;
  if (first_group == 0) work.slots[token] = inside ? index : -1;
  const std::uint16_t* from = params.kv + index * params.kv_row_stride;
  std::uint16_t* to = work.tokens + token * kTokenStride;
  for (int group = first_group; group * kGroup < work.key_dims; group += kStageThreads) {
    if (!inside) {
      zero_group(to + group * kGroup);
    } else {
      for (int d = group * kGroup; d < (group + 1) * kGroup; ++d) to[d] = from[d];
    }
  }
}

// Stores the head's log-sum-exp and largest score, and returns the factor for its accumulators.
PLUMB_DEVICE inline float finish_row(const plumb_sparse_mla_prefill_params& params,
                                     std::int64_t row, int head, const Softmax& softmax) {
  const bool lonely = softmax.sum == 0;
  if (params.max_logits != nullptr) {
    params.max_logits[row * params.max_logits_row_stride + head] =
        lonely ? -INFINITY : softmax.largest * kLn2;
  }
  if (params.lse != nullptr) {
    params.lse[row * params.lse_row_stride + head] =
        lonely ? INFINITY : lse_in_base_2(softmax) * kLn2;
  }
  if (lonely) return 0;
  return 1.0F / (softmax.sum + sink_weight(params.attn_sink, head, softmax.largest));
}

PLUMB_KERNEL void prefill_kernel(plumb_sparse_mla_prefill_params params) {
  PLUMB_SHARED(std::uint16_t, q, kHeadTile* kMostKeyDims);
  PLUMB_SHARED(std::uint16_t, tokens, kTokenTile* kTokenStride);
  PLUMB_SHARED(std::int32_t, slots, kTokenTile);
  PLUMB_SHARED(float, weights, kHeadTile* kTokenTile);
  PLUMB_SHARED(float, factors, kHeadTile);
  const int row = block_index_x(), first_head = block_index_y() * kHeadTile;
  const MlaWork work{.request = row,
                     .query = 0,
                     .first_head = first_head,
                     .heads = heads_of_tile(params.heads, first_head),
                     .key_dims = static_cast<int>(params.key_dims),
                     .q = q,
                     .tokens = tokens,
                     .slots = slots,
                     .weights = weights,
                     .factors = factors};
  const std::int32_t* indices = indices_of(params.candidates, row, 0);
  const int count = candidate_count(params.candidates, row);
  Softmax softmax;
  float sums[kHeadTile][kThreadDims] = {};
  stage_q(work, params.q + row * params.q_row_stride, params.q_head_stride);
  for (int first = 0; first < count; first += kTokenTile) {
    stage_rows(params, indices, first, count, work);
    attend_tile(work, params.sm_scale * kLog2E, softmax, sums);
  }
  const int thread = thread_index();
  if (thread < work.heads) factors[thread] = finish_row(params, row, first_head + thread, softmax);
  block_sync();
  std::uint16_t* out =
      params.out + row * params.out_row_stride + first_head * params.out_head_stride;
  for (int head = 0; head < kHeadTile; ++head) {
    if (head >= work.heads) break;
    for (int d = 0; d < kThreadDims; ++d) {
      const int column = thread * kThreadDims + d;
      out[head * params.out_head_stride + column] = store_bf16(sums[head][d] * factors[head]);
    }
  }
}

// ---- host ----

namespace {

bool legal(const plumb_sparse_mla_prefill_params& params) {
  if (params.rows < 0 || params.heads < 1 || params.kv_rows < 0) return false;
  if (params.key_dims != 512 && params.key_dims != 576) return false;
  if (params.kv_row_stride < params.key_dims) return false;
  if (params.out_row_stride < kValueDim || params.out_head_stride < kValueDim) return false;
  if (params.q == nullptr || params.kv == nullptr || params.out == nullptr) return false;
  return legal_candidates(params.candidates, 1);
}

plumb_status launch_sparse_mla_prefill(const void* untyped) {
  const auto& params = *static_cast<const plumb_sparse_mla_prefill_params*>(untyped);
  if (!legal(params)) return PLUMB_INVALID_ARGUMENT;
  if (params.rows == 0) return PLUMB_OK;
  if (params.rows > stream_properties(params.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{params.rows, (params.heads + kHeadTile - 1) / kHeadTile, kThreads, 0};
  return PLUMB_LAUNCH(prefill_kernel, shape, params.stream, params);
}

}  // namespace

OpEntry sparse_mla_prefill() {
  return {"sparse_mla_prefill",
          &launch_sparse_mla_prefill,
          {.product = PLUMB_BF16,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_BF16,
           .function_ulp = 2,
           .deterministic = 1,
           .stores_partials = 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
