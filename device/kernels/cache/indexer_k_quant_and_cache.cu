// SPDX-License-Identifier: Apache-2.0
//
// indexer_k_quant_and_cache: eight lanes take a quant block of one key (group_quant.h). If quant
// blocks have 128 columns and rows consist of whole vectors, a lane takes sixteen columns at once
// and a thread takes four blocks, all loaded before the first is used. Otherwise a lane takes a
// column at a time. Legal: any tokens that fit the grid's x; any page; in the shuffled layout page
// 1 or a multiple of 16.
#include "device/kernels/quantization/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kShuffleTile = 16;

// Byte offset, within a cache block, of dimension `dim` of the token at `offset`.
PLUMB_DEVICE std::int64_t code_offset(const plumb_indexer_k_quant_and_cache_params& p,
                                      std::int64_t offset, std::int64_t dim) {
  if (!p.shuffled || p.cache.page == 1) return offset * p.head_dim + dim;
  return offset / kShuffleTile * kShuffleTile * p.head_dim +
         dim / kShuffleTile * (kShuffleTile * kShuffleTile) + offset % kShuffleTile * kShuffleTile +
         dim % kShuffleTile;
}

// Where the codes of a key's quant block go, and the scale to divide by.
struct KeyPart {
  std::uint8_t* block;
  std::int64_t offset, begin;
  float scale;
};

// Computes and stores the scale of quant block `group`.
PLUMB_DEVICE KeyPart store_scale(const plumb_indexer_k_quant_and_cache_params& p, std::int64_t slot,
                                 std::int64_t group, float amax, plumb_format dialect) {
  const float exact = at_least(p.amax_floor, amax) / quantisation_largest(dialect);
  const bool power = p.scale_form == PLUMB_SCALE_POWER_OF_TWO;
  const float scale = power ? decode_ue8m0(encode_ue8m0(exact)) : exact;
  const std::int64_t page = p.cache.page, groups = p.head_dim / p.quant_block_size;
  const auto [number, offset] = place_of(slot, static_cast<int>(p.cache.page));
  std::uint8_t* block = p.cache.data + number * p.cache.block_stride_bytes;
  if (group_lane() == 0) {
    reinterpret_cast<float*>(block + page * p.head_dim)[offset * groups + group] = scale;
  }
  return {block, offset, group * p.quant_block_size, scale};
}

PLUMB_KERNEL void indexer_k_quant_and_cache_kernel(plumb_indexer_k_quant_and_cache_params p) {
  const std::int64_t groups = p.head_dim / p.quant_block_size;
  const std::int64_t token = group_index() / groups, group = group_index() % groups;
  const std::int64_t slot = slot_of(p, token);
  const std::uint16_t* x = p.k + token * p.k_row_stride + group * p.quant_block_size;
  const float amax = group_amax(x, slot == kNoSlot ? 0 : p.quant_block_size);
  if (slot == kNoSlot) return;
  const KeyPart part = store_scale(p, slot, group, amax, p.cache.dialect);
  for (std::int64_t i = group_lane(); i < p.quant_block_size; i += kGroupLanes) {
    part.block[code_offset(p, part.offset, part.begin + i)] =
        encode_e4m3(load_bf16(x[i]) / part.scale, p.cache.dialect);
  }
}

constexpr int kVectorBlock = kGroupLanes * kLaneColumns;
constexpr int kGroupsAtOnce = kQuantBlock / kGroupLanes, kGroupsOfThread = 4;
constexpr int kGroupsOfBlock = kGroupsAtOnce * kGroupsOfThread;
static_assert(kLaneColumns == kShuffleTile);  // so that a lane's codes are adjacent in each layout

PLUMB_DEVICE void store_columns(const plumb_indexer_k_quant_and_cache_params& p,
                                const KeyPart& part, const LaneColumns& bits,
                                plumb_format dialect) {
  float x[kLaneColumns];
  decode_columns(bits, x);
  divide_columns(x, part.scale);
  const std::int64_t at =
      code_offset(p, part.offset, part.begin + group_lane() * std::int64_t{kLaneColumns});
  store_codes(part.block + at, encode_e4m3x16(x, dialect), true);
}

PLUMB_DEVICE void cache_blocks(const plumb_indexer_k_quant_and_cache_params& p,
                               plumb_format dialect) {
  const int groups = static_cast<int>(p.head_dim / kVectorBlock);
  const std::int64_t first =
      std::int64_t{block_index_x()} * kGroupsOfBlock + thread_index() / kGroupLanes;
  std::int64_t slots[kGroupsOfThread];
  int group[kGroupsOfThread];
  LaneColumns bits[kGroupsOfThread];
  PLUMB_UNROLL
  for (int i = 0; i < kGroupsOfThread; ++i) {
    const std::int64_t index = first + i * kGroupsAtOnce;
    const std::int64_t token = groups == 1 ? index : index / groups;
    group[i] = static_cast<int>(index - token * groups);
    slots[i] = slot_of(p, token);
    const std::uint16_t* x = p.k + token * p.k_row_stride + group[i] * kVectorBlock;
    bits[i] = load_columns(x + group_lane() * kLaneColumns, token < p.tokens, true);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kGroupsOfThread; ++i) {
    const float amax = columns_amax(bits[i], kGroupLanes);
    if (slots[i] == kNoSlot) continue;
    store_columns(p, store_scale(p, slots[i], group[i], amax, dialect), bits[i], dialect);
  }
}

// The dialect is a constant in each branch, so that no code of the other encoder is compiled in.
PLUMB_KERNEL PLUMB_BOUNDS(kQuantBlock, 6) void indexer_k_quant_and_cache_vectors(
    plumb_indexer_k_quant_and_cache_params p) {
  if (p.cache.dialect == PLUMB_E4M3FN) return cache_blocks(p, PLUMB_E4M3FN);
  cache_blocks(p, PLUMB_E4M3FNUZ);
}

bool is_legal(const plumb_indexer_k_quant_and_cache_params& p) {
  if (p.tokens < 0 || p.head_dim < 1 || p.quant_block_size < 1 || !legal_page(p.cache) ||
      !(p.amax_floor > 0)) {
    return false;
  }
  if (p.head_dim % p.quant_block_size != 0 || p.k_row_stride < p.head_dim) return false;
  const std::int64_t codes = p.cache.page * p.head_dim;
  const std::int64_t scales = 4 * (codes / p.quant_block_size);
  if (codes % 4 != 0 || p.cache.block_stride_bytes % 4 != 0) return false;
  if (p.cache.block_stride_bytes < codes + scales) return false;
  const bool tiled = p.cache.page % kShuffleTile == 0 && p.head_dim % kShuffleTile == 0;
  return !p.shuffled || p.cache.page == 1 || tiled;
}

plumb_status launch_indexer_k_quant_and_cache(const void* params) {
  const auto& p = *static_cast<const plumb_indexer_k_quant_and_cache_params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.k || !p.slot_mapping || !p.cache.data) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t groups = p.tokens * (p.head_dim / p.quant_block_size);
  if (p.quant_block_size == kVectorBlock && are_whole_rows(p.k, p.k_row_stride) &&
      is_whole_cache(p.cache)) {
    const LaunchShape shape{(groups + kGroupsOfBlock - 1) / kGroupsOfBlock, 1, kQuantBlock, 0};
    return PLUMB_LAUNCH(indexer_k_quant_and_cache_vectors, shape, p.stream, p);
  }
  const LaunchShape shape{blocks_for_groups(groups), 1, kQuantBlock, 0};
  return PLUMB_LAUNCH(indexer_k_quant_and_cache_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry indexer_k_quant_and_cache() {
  return {"indexer_k_quant_and_cache", launch_indexer_k_quant_and_cache, group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
