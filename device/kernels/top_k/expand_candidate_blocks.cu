// SPDX-License-Identifier: Apache-2.0
//
// expand_candidate_blocks: the sparse blocks of each row's candidate blocks, in ascending order.
// Block b of the launch takes row b. Thread t takes candidates t, t + block, ..., and counts the
// smaller ones, which gives the places of its sparse blocks. Legal launch: grid_x = rows, any
// block.
#include "device/kernels/top_k/candidate_window.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using ExpandCandidates = plumb_expand_candidate_blocks_params;

// Places of a candidate's sparse blocks in the row, from other candidates of the row.
struct CandidatePlaces {
  std::int64_t smaller;  // candidates with smaller blocks
  std::int64_t equal;    // candidates with the same block, this one included
  std::int64_t before;   // of these, the ones in front of this candidate
};

PLUMB_DEVICE CandidatePlaces places_of(const std::int32_t* blocks, std::int64_t count,
                                       std::int64_t candidate) {
  const std::int32_t block = blocks[candidate];
  CandidatePlaces places = {0, 0, 0};
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int32_t other = blocks[j];
    places.smaller += other >= 0 && other < block ? 1 : 0;
    places.equal += other == block ? 1 : 0;
    places.before += other == block && j < candidate ? 1 : 0;
  }
  return places;
}

PLUMB_KERNEL void expand_candidate_blocks_kernel(ExpandCandidates p) {
  PLUMB_SHARED(std::uint32_t, found, 1);  // valid sparse blocks
  PLUMB_SHARED(std::int32_t, newest, 1);  // the last one, counted from the start
  const std::int64_t row = block_index_x();
  const std::int64_t size = p.sparse_block_size, pieces = p.block_size / size;
  const std::int64_t start = p.row_starts[row], length = p.row_ends[row] - start;
  const std::int64_t valid_blocks = length > 0 ? (length + size - 1) / size : 0;
  const std::int32_t* const blocks = p.blocks + row * p.blocks_row_stride;
  std::int32_t* const sparse_blocks = p.sparse_blocks + row * p.sparse_blocks_row_stride;
  const std::int64_t base = start / size;
  if (thread_index() == 0) {
    *found = 0;
    *newest = 0;
  }
  block_sync();
  for (std::int64_t j = thread_index(); j < p.topk_blocks; j += block_size()) {
    const std::int64_t first = blocks[j] * pieces;
    if (first < 0 || first >= valid_blocks) continue;
    const std::int64_t behind = first + pieces < valid_blocks ? first + pieces : valid_blocks;
    const CandidatePlaces places = places_of(blocks, p.topk_blocks, j);
    std::int64_t place = places.smaller * pieces + places.before;
    for (std::int64_t sparse = first; sparse < behind; ++sparse) {
      sparse_blocks[place] = static_cast<std::int32_t>(base + sparse);
      place += places.equal;
    }
    atomic_add(found, static_cast<std::uint32_t>(behind - first));
    atomic_max(newest, static_cast<std::int32_t>(behind - 1));
  }
  block_sync();
  const std::int64_t count = *found, last = *newest;
  for (std::int64_t i = count + thread_index(); i < p.topk_blocks * pieces; i += block_size()) {
    sparse_blocks[i] = static_cast<std::int32_t>(base + last);
  }
  if (thread_index() != 0) return;
  const std::int64_t left = length - last * size;  // columns of the row from the last block on
  const std::int64_t end = count > 0 ? (count - 1) * size + (left < size ? left : size) : 0;
  p.sparse_ends[row] = static_cast<std::int32_t>(end);
}

bool is_legal_expansion(const ExpandCandidates& p) {
  if (p.rows < 0 || p.topk_blocks < 1 || p.sparse_block_size < 1) return false;
  if (p.block_size < 1 || p.block_size % p.sparse_block_size != 0) return false;
  if (p.blocks_row_stride < p.topk_blocks) return false;
  if (p.sparse_blocks_row_stride < p.topk_blocks * (p.block_size / p.sparse_block_size)) {
    return false;
  }
  return p.rows == 0 ||
         (p.blocks && p.row_starts && p.row_ends && p.sparse_blocks && p.sparse_ends);
}

plumb_status launch_expand_candidate_blocks(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const ExpandCandidates*>(params);
  if (!is_legal_expansion(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows == 0) return PLUMB_OK;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape row_blocks{p.rows, 1, 256, 0};
  return PLUMB_LAUNCH(expand_candidate_blocks_kernel, row_blocks, p.stream, p);
}

}  // namespace

OpEntry expand_candidate_blocks() {
  return {"expand_candidate_blocks", launch_expand_candidate_blocks, kCandidateNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
