// SPDX-License-Identifier: Apache-2.0
//
// compute_global_topk_ragged_indices_and_indptr: the slots of each token's top-k positions, as a
// ragged list. Wave t counts the entries of token t. One block writes indptr. Block t maps the
// entries of token t. Legal launch: grid_x = tokens with one whole wave; one block of whole waves;
// grid_x = tokens with any block.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_compute_global_topk_ragged_indices_and_indptr_params;

PLUMB_KERNEL void count_topk_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int32_t* topk = p.topk_indices + token * p.topk_indices_row_stride;
  std::int32_t count = 0;
  if (p.is_valid_token[token] != 0) {
    for (std::int64_t j = thread_index(); j < p.topk; j += block_size()) count += topk[j] >= 0;
  }
  count = wave_sum(count);
  if (thread_index() == 0) p.lens[token] = count;
}

PLUMB_KERNEL void topk_indptr_kernel(Params p) {
  write_indptr(p.tokens, [&p](std::int64_t token) { return p.lens[token]; }, p.indptr);
}

// Maps the first lens[token] columns: the op's contract says that valid entries come first.
PLUMB_KERNEL void map_topk_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int32_t count = p.lens[token];
  if (count == 0) return;  // token_to_req of a padded token is undefined
  const std::int32_t* topk = p.topk_indices + token * p.topk_indices_row_stride;
  const std::int32_t* blocks = p.block_table + p.token_to_req[token] * p.block_table_row_stride;
  std::int32_t* flat = p.flat + p.indptr[token];
  for (std::int64_t j = thread_index(); j < count; j += block_size()) {
    flat[j] = topk[j] >= 0 ? slot_of(blocks, p.block_size, topk[j]) : kNoIndex;
  }
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.topk < 1 || p.block_size < 1 || !p.indptr) return false;
  if (p.tokens == 0) return true;
  return p.topk_indices && p.token_to_req && p.block_table && p.is_valid_token && p.flat && p.lens;
}

plumb_status launch_compute_global_topk_ragged(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  if (p.tokens > 0) {
    const LaunchShape one_wave{p.tokens, 1, device.wave_size, 0};
    const plumb_status counted = PLUMB_LAUNCH(count_topk_kernel, one_wave, p.stream, p);
    if (counted != PLUMB_OK) return counted;
  }
  const plumb_status summed =
      PLUMB_LAUNCH(topk_indptr_kernel, indptr_shape(p.tokens, p.stream), p.stream, p);
  if (summed != PLUMB_OK || p.tokens == 0) return summed;
  return PLUMB_LAUNCH(map_topk_kernel, row_shape(p.tokens, p.topk, p.stream), p.stream, p);
}

}  // namespace

OpEntry compute_global_topk_ragged_indices_and_indptr() {
  return {"compute_global_topk_ragged_indices_and_indptr", launch_compute_global_topk_ragged,
          kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
