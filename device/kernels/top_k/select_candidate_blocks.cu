// SPDX-License-Identifier: Apache-2.0
//
// select_candidate_blocks: the blocks with the largest logits of each row. Block b of the launch
// takes row b. Thread t scores blocks t, t + block, ... of the row, once for each pass of a radix
// select over their keys (top_k_interval.h), and once to write the winners. Legal launch:
// grid_x = rows, any block of up to 1024 threads.
#include "device/kernels/bf16.h"
#include "device/kernels/top_k/candidate_window.h"
#include "device/kernels/top_k/top_k_interval.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using SelectCandidates = plumb_select_candidate_blocks_params;

constexpr std::uint32_t kKeyOfInfinity = 0xff800000u, kKeyOfDead = 0x007fffffu;
constexpr std::uint32_t kKeyOfNan = 0xffffffffu;

PLUMB_DEVICE std::uint32_t logit_key(const SelectCandidates& p, std::int64_t i) {
  const float logit = p.logits_format == PLUMB_BF16
                          ? load_bf16(static_cast<const std::uint16_t*>(p.logits)[i])
                          : static_cast<const float*>(p.logits)[i];
  if (logit != logit && p.nan_block == PLUMB_NAN_BLOCK_IGNORED) return kKeyOfDead;
  if (logit != logit) return p.nan_block == PLUMB_NAN_BLOCK_FORCED ? kKeyOfInfinity : kKeyOfNan;
  return top_k_key(float_bits(logit));
}

// The blocks from which a row selects. The last one may be the newest block, without columns.
struct ScoredRow {
  CandidateWindow window;
  std::int64_t first;  // element of the row's first column
  std::int64_t count, pinned;
};

PLUMB_DEVICE ScoredRow scored_row(const SelectCandidates& p, std::int64_t row) {
  const CandidateWindow window = candidate_window(p, row);
  ScoredRow scored = {window, row * p.logits_row_stride, window.blocks, window.newest};
  if (window.newest < window.blocks) return scored;
  const std::int64_t grid = (p.columns + p.block_size - 1) / p.block_size;
  const bool counts = p.newest == PLUMB_NEWEST_IN_GRID && window.newest < grid;
  scored.count += counts ? 1 : 0;
  scored.pinned = counts ? window.blocks : -1;
  return scored;
}

// Key of the largest logit of a block.
PLUMB_DEVICE std::uint32_t block_key(const SelectCandidates& p, const ScoredRow& row,
                                     std::int64_t block) {
  if (block == row.pinned) return kKeyOfInfinity;
  const std::int64_t start = row.window.start + block * p.block_size;
  const std::int64_t last = start + p.block_size;
  const std::int64_t stop = last < row.window.stop ? last : row.window.stop;
  std::uint32_t key = 0;
  for (std::int64_t column = start; column < stop; ++column) {
    const std::uint32_t other = logit_key(p, row.first + column);
    key = other > key ? other : key;
  }
  return key;
}

// The keys of the k best blocks: those above the interval, and `wanted` of those inside.
PLUMB_DEVICE TopKInterval best_keys(const SelectCandidates& p, const ScoredRow& row,
                                    TopKShared* shared) {
  const auto count = static_cast<std::uint32_t>(row.count);
  const auto wanted = row.count < p.topk_blocks ? count : static_cast<std::uint32_t>(p.topk_blocks);
  TopKInterval interval = with_parts(0, 0xffffffffu, wanted, count);
  while (!interval.done) {
    for (std::int64_t block = thread_index(); block < row.count; block += block_size()) {
      const std::uint32_t key = block_key(p, row, block);
      if (holds(interval, key)) count_part(interval, key, shared);
    }
    find_part(interval.wanted, shared);
    interval = narrowed(interval, shared);
  }
  return interval;
}

PLUMB_KERNEL void select_candidate_blocks_kernel(SelectCandidates p) {
  PLUMB_SHARED(TopKShared, shared, 1);
  const std::int64_t launch_row = block_index_x();
  const ScoredRow row = scored_row(p, launch_row);
  std::int32_t* const blocks = p.blocks + launch_row * p.blocks_row_stride;
  clear(shared);
  const TopKInterval interval = best_keys(p, row, shared);
  std::uint32_t above = 0, inside = 0;  // in front of this pass of the loop
  int turn = 0;
  for (std::int64_t first = 0; first < row.count; first += block_size()) {
    const std::int64_t block = first + thread_index();
    const std::uint32_t key = block < row.count ? block_key(p, row, block) : kKeyOfDead;
    const bool dead = key == kKeyOfDead && p.dead_block == PLUMB_DEAD_BLOCK_MINUS_ONE;
    const bool dropped = key == kKeyOfNan && p.nan_block == PLUMB_NAN_BLOCK_DROPPED;
    const bool live = block < row.count && !dead && !dropped;
    const std::uint32_t is_above = live && key > interval.last ? 1 : 0;
    const std::uint32_t is_inside = live && holds(interval, key) ? 1 : 0;
    const TopKSum sum = sum_over_block(is_above | is_inside << 16, shared->wave_sums[turn]);
    const std::uint32_t inside_before = inside + (sum.in_front >> 16);
    const std::uint32_t taken = inside_before < interval.wanted ? inside_before : interval.wanted;
    const std::uint32_t place = above + (sum.in_front & 0xffff) + taken;
    if (is_above != 0 || (is_inside != 0 && inside_before < interval.wanted)) {
      blocks[place] =
          static_cast<std::int32_t>(block < row.window.blocks ? block : row.window.newest);
    }
    above += sum.total & 0xffff;
    inside += sum.total >> 16;
    turn = 1 - turn;
  }
  const std::int64_t written = above + (inside < interval.wanted ? inside : interval.wanted);
  for (std::int64_t j = written + thread_index(); j < p.topk_blocks; j += block_size()) {
    blocks[j] = -1;
  }
}

plumb_status launch_select_candidate_blocks(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const SelectCandidates*>(params);
  if (!is_legal_candidate_call(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows == 0) return PLUMB_OK;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape row_blocks{p.rows, 1, 256, 0};
  return PLUMB_LAUNCH(select_candidate_blocks_kernel, row_blocks, p.stream, p);
}

}  // namespace

OpEntry select_candidate_blocks() {
  return {"select_candidate_blocks", launch_select_candidate_blocks, kCandidateNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
