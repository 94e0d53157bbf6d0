// SPDX-License-Identifier: Apache-2.0
//
// get_mla_metadata_v1: AITER's planner in its fast mode. One wave adds up the blocks of all rows,
// and its first lane assigns them to compute units, each with the same payload. All lanes write the
// tail of reduce_indptr. Legal launch: one block of one wave.
#include <plumb/ops/sparse_mla.h>

#include "device/kernels/metadata/ragged.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using MlaMetadataParams = plumb_get_mla_metadata_v1_params;

constexpr int kMlaKeysPerBlock = 16, kMlaItemOverhead = 16;

struct MlaWorkInfo {
  std::int32_t row, partial, first_query, last_query, begin, end, behind, pad;
};

// Where the items before end.
struct MlaWorkCursor {
  int row = 0, block = 0, splits = 0;
  int items = 0, partials = 0, listed = 0;
};

PLUMB_DEVICE inline int mla_row_begin(const MlaMetadataParams& p, int row) {
  return p.kv_indptr[row / p.qk_batch_ratio];
}
PLUMB_DEVICE inline int mla_row_end(const MlaMetadataParams& p, int row) {
  return p.kv_indptr[row / p.qk_batch_ratio + 1];
}
PLUMB_DEVICE inline int mla_row_blocks(const MlaMetadataParams& p, int row) {
  return (mla_row_end(p, row) - mla_row_begin(p, row) + kMlaKeysPerBlock - 1) / kMlaKeysPerBlock;
}

PLUMB_DEVICE inline void add_mla_item(const MlaMetadataParams& p, MlaWorkCursor& at, int partial,
                                      int end) {
  auto* items = reinterpret_cast<MlaWorkInfo*>(p.work_info_set);
  const int begin = mla_row_begin(p, at.row) + kMlaKeysPerBlock * at.block;
  const int behind = mla_row_end(p, at.row) - end;
  items[at.items++] = {at.row, partial, at.row, at.row + 1, begin, end, behind, 0};
}

// The last item of a row, and the row's entries in the lists of the reduction.
PLUMB_DEVICE inline void finish_mla_row(const MlaMetadataParams& p, MlaWorkCursor& at) {
  const bool split = at.splits > 0;
  add_mla_item(p, at, split ? at.partials : -1, mla_row_end(p, at.row));
  if (split) {
    for (int i = at.splits; i >= 0; --i) p.reduce_partial_map[at.listed++] = at.partials - i;
    p.reduce_final_map[2 * at.row] = at.row;
    p.reduce_final_map[2 * at.row + 1] = at.row + 1;
    ++at.partials;
  }
  ++at.row;
  p.reduce_indptr[at.row] = at.listed;
  at.block = at.splits = 0;
}

// Takes blocks until `left` is used up. An item takes at least one block of those that are left.
PLUMB_DEVICE inline void take_mla_blocks(const MlaMetadataParams& p, int left, MlaWorkCursor& at) {
  const int rows = static_cast<int>(p.batch * p.qk_batch_ratio);
  while (at.row < rows) {
    const int cost = mla_row_blocks(p, at.row) - at.block + kMlaItemOverhead;
    if (left < cost) {
      if (left > kMlaItemOverhead) {
        const int blocks = left - kMlaItemOverhead;
        const int end = mla_row_begin(p, at.row) + kMlaKeysPerBlock * (at.block + blocks);
        add_mla_item(p, at, at.partials++, end);
        at.block += blocks;
        ++at.splits;
      }
      return;
    }
    left -= cost;
    finish_mla_row(p, at);
  }
}

PLUMB_DEVICE inline int write_mla_plan(const MlaMetadataParams& p, int payload) {
  p.work_metadata_ptrs[0] = reinterpret_cast<std::int64_t>(p.work_indptr);
  p.work_metadata_ptrs[1] = reinterpret_cast<std::int64_t>(p.work_info_set);
  p.work_indptr[0] = p.reduce_indptr[0] = 0;
  MlaWorkCursor at;
  for (int unit = 0; unit < p.num_cu; ++unit) {
    take_mla_blocks(p, payload, at);
    p.work_indptr[unit + 1] = at.items;
  }
  return at.listed;
}

PLUMB_KERNEL void mla_metadata_kernel(MlaMetadataParams p, int parts) {
  const int rows = static_cast<int>(p.batch * p.qk_batch_ratio);
  int total = 0;
  for (int row = lane_index(); row < rows; row += wave_size()) {
    total += mla_row_blocks(p, row) + kMlaItemOverhead;
  }
  total = wave_sum(total);
  const int payload = (total + parts - 1) / parts + kMlaItemOverhead;
  int listed = 0;
  if (lane_index() == 0) listed = write_mla_plan(p, payload);
  listed = shuffle(all_lanes(), listed, 0, wave_size());
  for (std::int64_t row = rows + 1 + lane_index(); row <= p.max_rows; row += wave_size()) {
    p.reduce_indptr[row] = listed;
  }
}

plumb_status launch_mla_metadata(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const MlaMetadataParams*>(params);
  if (p.batch < 1 || p.qk_batch_ratio < 1 || p.num_cu < 1 || p.max_split_per_batch == 0 ||
      !fits_int(p.batch, p.qk_batch_ratio, p.max_rows, p.num_cu) ||
      p.max_rows < p.batch * p.qk_batch_ratio) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (!p.kv_indptr || !p.work_metadata_ptrs || !p.work_indptr || !p.work_info_set ||
      !p.reduce_indptr || !p.reduce_final_map || !p.reduce_partial_map) {
    return PLUMB_INVALID_ARGUMENT;
  }
  std::int64_t parts = p.num_cu;
  if (p.max_split_per_batch > 0 && p.max_split_per_batch < p.num_cu) {
    const std::int64_t splits = p.max_split_per_batch * p.batch * p.qk_batch_ratio;
    parts = splits < parts ? splits : parts;
  }
  const LaunchShape one_wave{1, 1, stream_properties(p.stream).wave_size, 0};
  return PLUMB_LAUNCH(mla_metadata_kernel, one_wave, p.stream, p, static_cast<int>(parts));
}

}  // namespace

OpEntry get_mla_metadata_v1() {
  return {"get_mla_metadata_v1", launch_mla_metadata, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
