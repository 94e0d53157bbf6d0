// SPDX-License-Identifier: Apache-2.0
//
// mask_candidate_logits: -inf in all columns of a row but those of its candidate blocks. Block b of
// the launch takes row b. Its threads mark the candidates among 2048 blocks in shared memory and
// then mask the columns of these blocks, thread t columns t, t + block, ... Legal launch:
// grid_x = rows, any block.
#include "device/kernels/top_k/candidate_window.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using MaskCandidates = plumb_mask_candidate_logits_params;

constexpr int kMarkedBlocks = 2048;

PLUMB_DEVICE void mask_column(const MaskCandidates& p, std::int64_t i) {
  if (p.logits_format == PLUMB_BF16) {
    static_cast<std::uint16_t*>(p.logits)[i] = 0xff80;
  } else {
    static_cast<float*>(p.logits)[i] = bits_float(0xff800000u);
  }
}

// Whether a candidate starts at or behind the columns, in a row that reaches the last column.
// Every thread of the block calls it.
PLUMB_DEVICE bool keeps_last_column(const MaskCandidates& p, const CandidateWindow& window,
                                    const std::int32_t* blocks, std::uint32_t* found) {
  if (p.edge == PLUMB_EDGE_IGNORE) return false;
  if (window.stop != p.columns || window.start >= p.columns) return false;
  if (thread_index() == 0) *found = 0;
  block_sync();
  for (std::int64_t j = thread_index(); j < p.topk_blocks; j += block_size()) {
    const std::int64_t first = window.start + blocks[j] * p.block_size;
    if (blocks[j] >= 0 && first >= p.columns) atomic_add(found, 1u);
  }
  block_sync();
  return *found != 0;
}

// Marks the candidates among the blocks from `first` on.
PLUMB_DEVICE void mark_candidates(const MaskCandidates& p, const std::int32_t* blocks,
                                  std::int64_t first, std::uint32_t* marks) {
  for (int i = thread_index(); i < kMarkedBlocks; i += block_size()) marks[i] = 0;
  block_sync();
  for (std::int64_t j = thread_index(); j < p.topk_blocks; j += block_size()) {
    const std::int64_t block = blocks[j] - first;
    if (block >= 0 && block < kMarkedBlocks) atomic_add(&marks[block], 1u);
  }
  block_sync();
}

PLUMB_KERNEL void mask_candidate_logits_kernel(MaskCandidates p) {
  PLUMB_SHARED(std::uint32_t, marks, kMarkedBlocks);
  PLUMB_SHARED(std::uint32_t, found, 1);
  const std::int64_t row = block_index_x();
  const CandidateWindow window = candidate_window(p, row);
  const std::int32_t* const blocks = p.blocks + row * p.blocks_row_stride;
  const std::int64_t logits = row * p.logits_row_stride;
  for (std::int64_t column = thread_index(); column < p.columns; column += block_size()) {
    if (column < window.start || column >= window.stop) mask_column(p, logits + column);
  }
  const bool keeps_last = keeps_last_column(p, window, blocks, found);
  for (std::int64_t first = 0; first < window.blocks; first += kMarkedBlocks) {
    mark_candidates(p, blocks, first, marks);
    const std::int64_t begin = window.start + first * p.block_size;
    const std::int64_t behind = begin + kMarkedBlocks * p.block_size;
    const std::int64_t end = behind < window.stop ? behind : window.stop;
    for (std::int64_t column = begin + thread_index(); column < end; column += block_size()) {
      if (marks[(column - begin) / p.block_size] != 0) continue;
      if (keeps_last && column == p.columns - 1) continue;
      mask_column(p, logits + column);
    }
    block_sync();  // the marks are those of the next blocks from here on
  }
}

plumb_status launch_mask_candidate_logits(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const MaskCandidates*>(params);
  if (!is_legal_candidate_call(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows == 0) return PLUMB_OK;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape row_blocks{p.rows, 1, 256, 0};
  return PLUMB_LAUNCH(mask_candidate_logits_kernel, row_blocks, p.stream, p);
}

}  // namespace

OpEntry mask_candidate_logits() {
  return {"mask_candidate_logits", launch_mask_candidate_logits, kCandidateNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
