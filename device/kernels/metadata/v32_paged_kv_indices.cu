// SPDX-License-Identifier: Apache-2.0
//
// v32_paged_kv_indices: writes the slots of the tokens that the indexer chose to each token's range
// of paged_kv_indptr. Block t takes token t, its threads the entries. Legal launch: grid_x =
// tokens, any block.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_v32_paged_kv_indices_params;

PLUMB_KERNEL void v32_paged_kv_indices_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int64_t begin = p.paged_kv_indptr[token];
  const std::int64_t count = p.paged_kv_indptr[token + 1] - begin;
  if (count == 0) return;  // req_id_per_token of a padded token is not read
  const std::int32_t* topk = p.topk_indices + token * p.topk_indices_row_stride;
  const std::int32_t* blocks = p.block_table + p.req_id_per_token[token] * p.block_table_row_stride;
  const std::int32_t missing = p.invalid == PLUMB_INVALID_SLOT_0 ? 0 : kNoIndex;
  for (std::int64_t j = thread_index(); j < count; j += block_size()) {
    const bool found = topk[j] >= 0 && topk[j] / p.page < p.blocks_per_request;
    p.paged_kv_indices[begin + j] = found ? slot_of(blocks, p.page, topk[j]) : missing;
  }
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.topk < 128 || p.topk % 128 != 0) return false;
  if ((p.page != 1 && p.page != 64) || p.blocks_per_request < 0) return false;
  if (p.tokens == 0) return true;
  return p.topk_indices && p.req_id_per_token && p.block_table && p.paged_kv_indptr &&
         p.paged_kv_indices;
}

plumb_status launch_v32_paged_kv_indices(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (p.tokens > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(v32_paged_kv_indices_kernel, row_shape(p.tokens, p.topk, p.stream), p.stream,
                      p);
}

}  // namespace

OpEntry v32_paged_kv_indices() {
  return {"v32_paged_kv_indices", launch_v32_paged_kv_indices, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
