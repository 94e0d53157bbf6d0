// SPDX-License-Identifier: Apache-2.0
//
// v32_paged_metadata: per-token metadata of a V3.2 step, in buffers that keep their addresses. One
// block writes paged_kv_indptr. Then thread t of a grid writes or clears request id t, and the
// threads share the entries of paged_kv_indices to clear. Last, one thread stores the step's
// extents, after all threads have read the old ones. Legal launch: one block of whole waves; at
// least a thread per token of the capacity; one thread.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_v32_paged_metadata_params;

constexpr int kBufferThreads = 256;

PLUMB_KERNEL void paged_kv_indptr_kernel(Params p) {
  const auto length_of = [&p](std::int64_t token) -> std::int32_t {
    const std::int64_t request = request_of(p.query_start_loc, p.requests, token);
    if (request < 0 || p.seq_lens[request] <= 0) return 0;
    const std::int64_t seen = position_of(p.query_start_loc, p.seq_lens, request, token) + 1;
    return static_cast<std::int32_t>(seen < p.topk ? seen : p.topk);
  };
  write_indptr(p.max_tokens, length_of, p.paged_kv_indptr);
}

// Entries of paged_kv_indices that this step uses. The next step reads the number in extents[1].
PLUMB_DEVICE std::int64_t extent_of_indices(const Params& p, std::int64_t tokens) {
  return p.extent == PLUMB_EXTENT_N_TOPK ? tokens * p.topk : p.paged_kv_indptr[p.max_tokens];
}

PLUMB_KERNEL void refresh_buffers_kernel(Params p) {
  const std::int64_t thread = std::int64_t{block_index_x()} * block_size() + thread_index();
  const std::int64_t threads = std::int64_t{grid_size_x()} * block_size();
  const std::int64_t tokens = token_count(p.query_start_loc, p.requests);
  const bool full = p.extent == PLUMB_EXTENT_FULL_FILL;
  const std::int64_t tokens_before = full ? p.max_tokens : p.extents[0];
  if (thread < tokens) {
    p.req_id_per_token[thread] =
        static_cast<std::int32_t>(request_of(p.query_start_loc, p.requests, thread));
  } else if (thread < tokens_before) {
    p.req_id_per_token[thread] = 0;
  }
  const std::int64_t first = full ? 0 : extent_of_indices(p, tokens);
  const std::int64_t last = full ? p.max_tokens * p.topk : p.extents[1];
  for (std::int64_t i = first + thread; i < last; i += threads) {
    p.paged_kv_indices[i] = 0;
  }
}

PLUMB_KERNEL void store_extents_kernel(Params p) {
  const std::int64_t tokens = token_count(p.query_start_loc, p.requests);
  p.extents[0] = static_cast<std::int32_t>(tokens);
  p.extents[1] = static_cast<std::int32_t>(extent_of_indices(p, tokens));
}

bool is_legal(const Params& p) {
  if (p.max_tokens < 0 || p.requests < 0 || p.topk < 1) return false;
  if (!p.query_start_loc || !p.paged_kv_indptr || !p.extents) return false;
  if (p.requests > 0 && !p.seq_lens) return false;
  return p.max_tokens == 0 || (p.req_id_per_token && p.paged_kv_indices);
}

plumb_status launch_v32_paged_metadata(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t blocks = (p.max_tokens + kBufferThreads - 1) / kBufferThreads;
  if (blocks > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  plumb_status status =
      PLUMB_LAUNCH(paged_kv_indptr_kernel, indptr_shape(p.max_tokens, p.stream), p.stream, p);
  if (status == PLUMB_OK && blocks > 0) {
    const LaunchShape by_token{blocks, 1, kBufferThreads, 0};
    status = PLUMB_LAUNCH(refresh_buffers_kernel, by_token, p.stream, p);
  }
  if (status != PLUMB_OK) return status;
  const LaunchShape one_thread{1, 1, 1, 0};
  return PLUMB_LAUNCH(store_extents_kernel, one_thread, p.stream, p);
}

}  // namespace

OpEntry v32_paged_metadata() {
  return {"v32_paged_metadata", launch_v32_paged_metadata, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
