// SPDX-License-Identifier: Apache-2.0
//
// swa_decode_metadata: the request of each decode token and the slots of its sliding window. Block
// t takes token t, its threads the columns. In the second kernel thread t takes request t. Legal
// launch: grid_x = tokens, any block; any grid with a thread per request.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_swa_decode_metadata_params;

PLUMB_KERNEL void swa_tokens_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int64_t request = request_of(p.query_start_loc, p.requests, token);
  const bool valid = p.slot_mapping[token] >= 0;
  std::int64_t start = 0, length = 0;
  if (valid && request >= 0) {
    const std::int64_t end = position_of(p.query_start_loc, p.seq_lens, request, token) + 1;
    start = end > p.window ? end - p.window : 0;
    length = end - start;
  }
  const std::int64_t known = request < 0 ? 0 : request;  // padding belongs to request 0
  const std::int32_t* blocks = p.block_table + known * p.block_table_row_stride;
  std::int32_t* indices = p.swa_indices + token * p.swa_indices_row_stride;
  const bool written = valid || p.invalid_row == PLUMB_NO_VALUE_MINUS_ONE;
  for (std::int64_t j = thread_index(); written && j < p.window; j += block_size()) {
    indices[j] = j < length ? slot_of(blocks, p.page, start + j) : kNoIndex;
  }
  if (thread_index() != 0) return;
  p.swa_lens[token] = static_cast<std::int32_t>(length);
  p.token_to_req[token] = static_cast<std::int32_t>(known);
  p.is_valid_token[token] = valid ? 1 : 0;
}

PLUMB_KERNEL void gather_lens_kernel(Params p) {
  const std::int64_t request = std::int64_t{block_index_x()} * block_size() + thread_index();
  if (request >= p.requests) return;
  const std::int32_t query = p.query_start_loc[request + 1] - p.query_start_loc[request];
  const std::int64_t prefix = p.seq_lens[request] - query;
  const std::int64_t in_window = prefix < p.window - 1 ? prefix : p.window - 1;
  p.gather_lens[request] = static_cast<std::int32_t>(query + in_window);
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.requests < 0 || p.window < 1 || p.page < 1) return false;
  if (p.tokens == 0 && p.requests == 0) return true;
  if (!p.query_start_loc) return false;
  if (p.requests > 0 && (!p.seq_lens || !p.block_table || !p.gather_lens)) return false;
  return p.tokens == 0 ||
         (p.slot_mapping && p.swa_indices && p.swa_lens && p.token_to_req && p.is_valid_token);
}

plumb_status launch_swa_decode_metadata(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  if (p.tokens > 0) {
    const plumb_status status =
        PLUMB_LAUNCH(swa_tokens_kernel, row_shape(p.tokens, p.window, p.stream), p.stream, p);
    if (status != PLUMB_OK) return status;
  }
  if (p.requests == 0) return PLUMB_OK;
  const std::int64_t blocks = (p.requests + device.wave_size - 1) / device.wave_size;
  const LaunchShape by_request{blocks, 1, device.wave_size, 0};
  return PLUMB_LAUNCH(gather_lens_kernel, by_request, p.stream, p);
}

}  // namespace

OpEntry swa_decode_metadata() {
  return {"swa_decode_metadata", launch_swa_decode_metadata, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
