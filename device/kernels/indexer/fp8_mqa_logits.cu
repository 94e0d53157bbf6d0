// SPDX-License-Identifier: Apache-2.0
//
// fp8_mqa_logits: each query row scores its window of keys. Block b takes row b / tiles and the
// columns of tile b % tiles, one per thread (mqa_logits.h). Legal launch: grid_x = rows * tiles,
// block of kLogitsBlock, logits_shared_bytes() of dynamic shared memory.
#include <plumb/ops/indexer.h>

#include "device/kernels/indexer/mqa_logits.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_DEVICE std::int64_t clamp_key(std::int64_t key, std::int64_t keys) {
  return key < 0 ? 0 : key > keys ? keys : key;
}

PLUMB_KERNEL void fp8_mqa_logits_kernel(plumb_fp8_mqa_logits_params p, std::int64_t columns,
                                        std::int64_t tiles) {
  const std::int64_t row = block_index_x() / tiles;
  const std::int64_t first = block_index_x() % tiles * kLogitsBlock;
  const std::int64_t start = clamp_key(p.starts[row], p.keys);
  const std::int64_t end = clamp_key(p.ends[row], p.keys);
  // Column c of the logits is key c + shift.
  const std::int64_t shift = p.max_seqlen_k > 0 ? start : 0;
  const bool empty = end <= start || first + kLogitsBlock + shift <= start || first + shift >= end;
  if (empty && !p.clean_logits) return;

  const int heads = static_cast<int>(p.heads), dim = static_cast<int>(p.dim);
  const LogitsQuery query =
      load_query(p.q + row * p.heads * p.dim, p.weights + row * p.heads, heads, dim, p.q_dialect);
  const std::int64_t column = first + thread_index(), key = column + shift;
  if (column >= columns) return;
  float* logit = p.logits + row * p.logits_row_stride + column;
  if (key < start || key >= end) {
    if (p.clean_logits) *logit = minus_infinity();
    return;
  }
  float values[kMostLogitsDim];
  decode_key(p.k + key * p.dim, kLogitsTile, dim, p.k_dialect, values);
  if (p.scaled == PLUMB_SCALED_OPERAND) {
    *logit = score_scaled_key(query, p.k_scale[key], values);
    return;
  }
  *logit = p.k_scale[key] * score_key(query, values);
}

bool is_legal(const plumb_fp8_mqa_logits_params& p, std::int64_t columns) {
  if (p.rows < 0 || p.keys < 0 || p.heads < 1 || p.dim < 1 || p.max_seqlen_k < 0) return false;
  if (p.logits_row_stride < columns || !is_fp8(p.q_dialect) || !is_fp8(p.k_dialect)) return false;
  return p.max_seqlen_k == 0 || !p.clean_logits;
}

plumb_status launch_fp8_mqa_logits(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_fp8_mqa_logits_params*>(params);
  const std::int64_t columns = p.max_seqlen_k > 0 ? p.max_seqlen_k : p.keys;
  if (!is_legal(p, columns)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows == 0 || p.keys == 0) return PLUMB_OK;
  if (!p.q || !p.k || !p.k_scale || !p.weights || !p.starts || !p.ends || !p.logits) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t tiles = (columns + kLogitsBlock - 1) / kLogitsBlock;
  if (!can_score(p.heads, p.dim, p.rows * tiles, stream_properties(p.stream))) {
    return PLUMB_UNSUPPORTED;
  }
  const LaunchShape shape{p.rows * tiles, 1, kLogitsBlock, logits_shared_bytes(p.heads, p.dim)};
  return PLUMB_LAUNCH(fp8_mqa_logits_kernel, shape, p.stream, p, columns, tiles);
}

}  // namespace

OpEntry fp8_mqa_logits() { return {"fp8_mqa_logits", launch_fp8_mqa_logits, kMqaLogitsNumerics}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
