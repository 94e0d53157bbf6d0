// SPDX-License-Identifier: Apache-2.0
//
// Gathers the last gather_len tokens of each request from a paged V4 cache into rows [offset,
// offset + gather_len) of the request's part of a bf16 workspace. All other rows stay unchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/cache/kv_cache.h"

namespace plumb::reference {

struct KCacheGather {
  KvCache cache;  // v4
  const std::int32_t* block_table =
      nullptr;                             // [requests, pages], rows block_table_row_stride apart
  const std::int32_t* seq_lens = nullptr;  // [requests]
  const std::int32_t* gather_lens = nullptr;  // [requests], at most seq_lens; null = seq_lens
  std::int64_t requests = 0, rows = 0;        // rows: of the workspace, per request
  std::int64_t block_table_row_stride = 0, offset = 0;
};

struct GatheredWorkspace {
  std::vector<bool> written;   // [requests, rows]
  std::vector<double> values;  // [requests, rows, 512], exact; 0 in rows not written
};
GatheredWorkspace dequantize_and_gather_k_cache(const KCacheGather& inputs);

// Whether `bits` is a right bf16 rounding (nearest even) of `value`. Any NaN is right for NaN,
// either zero for zero, and a device may flush numbers below the least normal one.
bool is_bf16_of(std::uint16_t bits, double value);

}  // namespace plumb::reference
