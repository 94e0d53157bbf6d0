// SPDX-License-Identifier: Apache-2.0
//
// compress_norm_rope_insert: block t takes token t, and returns if the token closes no group or has
// no slot. Thread i has channels i, i + kThreads, .... It reads the window of each channel twice:
// for the largest score, then for the sums. Legal launch: grid_x = tokens, kThreads threads.
#include <plumb/ops/cache.h>
#include <plumb/ops/compressor.h>

#include <cmath>

#include "device/kernels/bf16.h"
#include "device/kernels/block_table.h"
#include "device/kernels/fp4.h"
#include "device/kernels/fp8.h"
#include "device/kernels/norm/rope.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_compress_norm_rope_insert_params;

constexpr int kThreads = 128, kMostWaves = kThreads / 32;
constexpr int kMostDim = 512, kMostGroups = 16;
constexpr int kMainGroup = 64, kMainBytes = 576, kMainScaleBytes = 8;
constexpr float kLeast = 1e-4F, kLargestCode = 448;
constexpr float kLeastMx = 0x1.8p-124F;  // 6 * 2^-126: under it a scale would be subnormal

PLUMB_DEVICE float stored_bf16(float value) { return load_bf16(store_bf16(value)); }

// Rounds a result to bf16 if the op's rounding is `least` or one of those behind it.
PLUMB_DEVICE float result(const Params& p, plumb_compressed_rounding least, float value) {
  return p.rounding >= least ? stored_bf16(value) : value;
}

// First byte of the partial state of a position.
PLUMB_DEVICE const std::uint8_t* state_of(const Params& p, const std::int32_t* blocks,
                                          std::int64_t position) {
  const std::int64_t block = blocks[position / p.states.rows], row = position % p.states.rows;
  return static_cast<const std::uint8_t*>(p.states.data) + block * p.states.block_stride_bytes +
         row * p.states.row_stride_bytes;
}

PLUMB_DEVICE float state_value(const Params& p, const std::uint8_t* state, std::int64_t i) {
  if (p.form == PLUMB_STATE_RAW_BF16) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(state)[i]);
  }
  return reinterpret_cast<const float*>(state)[i];
}

// The positions whose partial states are compressed into one state.
struct ChannelWindow {
  const std::int32_t* blocks;
  std::int64_t first, positions, width;  // first: may be negative
};

PLUMB_DEVICE ChannelWindow window_of(const Params& p, std::int64_t token) {
  const std::int64_t positions = p.overlap ? 2 * p.ratio : p.ratio;
  return {p.block_table + p.token_to_req[token] * p.block_table_row_stride,
          p.positions[token] - positions + 1, positions, p.overlap ? 2 * p.head_dim : p.head_dim};
}

// Calls use(score, kv) for channel d of each position of the window.
template <class Use>
PLUMB_DEVICE void for_window(const Params& p, const ChannelWindow& window, int d, const Use& use) {
  for (std::int64_t i = window.first < 0 ? -window.first : 0; i < window.positions; ++i) {
    const std::int64_t position = window.first + i;
    const std::uint8_t* state = state_of(p, window.blocks, position);
    const std::int64_t column = p.overlap && i >= p.ratio ? p.head_dim + d : d;
    float score = state_value(p, state, window.width + column);
    if (p.form != PLUMB_STATE_BIASED) score += p.ape[position % p.ratio * window.width + column];
    use(result(p, PLUMB_COMPRESSED_ROUND_EVERY, score), state_value(p, state, column));
  }
}

PLUMB_DEVICE float weight_of(float score, float largest) {
  constexpr float kLog2E = 1.44269504F;
  return exp2_approx((score - largest) * kLog2E);
}

PLUMB_DEVICE float pooled(const Params& p, const ChannelWindow& window, int d) {
  float largest = -INFINITY;
  for_window(p, window, d,
             [&](float score, float) { largest = score > largest ? score : largest; });
  float weights = 0, sum = 0;
  for_window(p, window, d, [&](float score, float kv) {
    const float weight = weight_of(score, largest);
    weights += weight;
    sum += weight * kv;
  });
  if (p.rounding != PLUMB_COMPRESSED_ROUND_EVERY) {
    return result(p, PLUMB_COMPRESSED_ROUND_NORM, sum / weights);
  }
  sum = 0;
  for_window(p, window, d, [&](float score, float kv) {
    sum += stored_bf16(stored_bf16(weight_of(score, largest) / weights) * kv);
  });
  return stored_bf16(sum);
}

// Sum over the block, the same in each thread.
PLUMB_DEVICE float sum_of_block(float value, float* wave_sums) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    value += shuffle_xor(whole_wave(), value, distance, wave_size());
  }
  if (lane_index() == 0) wave_sums[wave_index()] = value;
  block_sync();
  float sum = 0;
  for (int wave = 0; wave < block_size() / wave_size(); ++wave) sum += wave_sums[wave];
  return sum;
}

// Channel d of the normalised state after RoPE. `angles`: cosines and sines of the group's first
// position.
PLUMB_DEVICE float rotated(const Params& p, const float* state, const float* angles, int d) {
  const int i = d - static_cast<int>(p.head_dim - kRopeDim);
  if (i < 0) return state[d];
  const Pair pair =
      rotate({state[d & ~1], state[d | 1]}, {angles[i / 2], angles[kRopePairs + i / 2]});
  return i % 2 == 0 ? pair.even : pair.odd;
}

PLUMB_DEVICE bool transforms(const Params& p) {
  const bool of_indexer = p.layout == PLUMB_COMPRESSED_INDEXER ||
                          p.layout == PLUMB_COMPRESSED_INDEXER_BYTES ||
                          p.layout == PLUMB_COMPRESSED_INDEXER_MXFP4;
  return of_indexer && p.hadamard != PLUMB_HADAMARD_NONE;
}

// Channel d of the Hadamard transform of a state whose channels are bf16 numbers.
PLUMB_DEVICE float transformed_channel(const float* state, int dim, int d) {
  float sum = 0;
  for (int j = 0; j < dim; ++j) {
    bool minus = false;
    for (int common = d & j; common != 0; common &= common - 1) minus = !minus;
    sum += minus ? -state[j] : state[j];
  }
  return sum * rsqrt_approx(static_cast<float>(dim));
}

// Scale of channels [first, first + count), whose values are rounded to bf16, before it is rounded
// to a power of two.
PLUMB_DEVICE float group_scale(const Params& p, const float* state, int first, int count) {
  float amax = 0;
  for (int d = first; d < first + count; ++d) {
    const float value = stored_bf16(state[d]), size = value < 0 ? -value : value;
    amax = size > amax ? size : amax;
  }
  if (p.layout == PLUMB_COMPRESSED_INDEXER_MXFP4) {
    return (amax < kLeastMx ? kLeastMx : amax) / kLargestE2m1;
  }
  const bool of_scale =
      p.layout == PLUMB_COMPRESSED_MAIN && p.floor == PLUMB_COMPRESSED_FLOOR_SCALE;
  if (!of_scale && amax < kLeast) amax = kLeast;
  float scale = amax / kLargestCode;
  if (of_scale && scale < kLeast) scale = kLeast;
  return scale;
}

// The scale as it is stored.
PLUMB_DEVICE float stored_scale(const Params& p, float scale) {
  const bool as_it_is =
      p.layout == PLUMB_COMPRESSED_INDEXER && p.scale_form == PLUMB_SCALE_AS_IT_IS;
  return as_it_is ? scale : decode_ue8m0(encode_ue8m0(scale));
}

PLUMB_DEVICE std::uint8_t code_of(float value, float scale) {
  return encode_e4m3(stored_bf16(value) * (1 / scale), PLUMB_E4M3FN);
}

// Where a state is stored: the start of its page, and its index in the page.
struct StatePlace {
  std::uint8_t* page;
  std::int64_t offset;
};

PLUMB_DEVICE void insert_indexer(const Params& p, const StatePlace& to, const float* state,
                                 const float* scales) {
  for (int d = thread_index(); d < p.head_dim; d += block_size()) {
    to.page[to.offset * p.head_dim + d] = code_of(state[d], scales[0]);
  }
  if (thread_index() != 0) return;
  auto* const place = reinterpret_cast<float*>(to.page + p.cache.page * p.head_dim) + to.offset;
  const bool bytes = p.layout == PLUMB_COMPRESSED_INDEXER_BYTES;
  *place = bytes ? bits_float(encode_ue8m0(scales[0]) * 0x01010101U) : scales[0];
}

PLUMB_DEVICE void insert_mxfp4(const Params& p, const StatePlace& to, const float* state,
                               const float* scales) {
  const int bytes = static_cast<int>(p.head_dim) / 2;
  const int groups = static_cast<int>(p.head_dim) / kMxGroup;
  const auto code = [&](int d) {
    return encode_e2m1(stored_bf16(state[d]) * (1 / scales[d / kMxGroup]), PLUMB_TIES_TO_EVEN,
                       PLUMB_NEGATIVE_ZERO_KEPT);
  };
  for (int i = thread_index(); i < bytes; i += block_size()) {
    to.page[to.offset * bytes + i] = static_cast<std::uint8_t>(code(2 * i) | code(2 * i + 1) << 4);
  }
  if (thread_index() < groups) {
    to.page[p.cache.page * bytes + to.offset * groups + thread_index()] =
        encode_ue8m0(scales[thread_index()]);
  }
}

PLUMB_DEVICE void insert_main(const Params& p, const StatePlace& to, const float* state,
                              const float* scales) {
  std::uint8_t* const codes = to.page + to.offset * kMainBytes;
  for (int d = thread_index(); d < kMostDim; d += block_size()) {
    if (d < kNopeDim) {
      codes[d] = code_of(state[d], scales[d / kMainGroup]);
    } else {
      reinterpret_cast<std::uint16_t*>(codes + kNopeDim)[d - kNopeDim] = store_bf16(state[d]);
    }
  }
  std::uint8_t* const bytes = to.page + p.cache.page * kMainBytes + to.offset * kMainScaleBytes;
  const int groups = kNopeDim / kMainGroup;
  if (thread_index() < groups) bytes[thread_index()] = encode_ue8m0(scales[thread_index()]);
  if (thread_index() == groups && p.pad == PLUMB_PAD_ZERO) bytes[groups] = 0;
}

PLUMB_DEVICE void insert_row(const Params& p, const StatePlace& to, const float* state) {
  auto* const row = reinterpret_cast<std::uint16_t*>(to.page) + to.offset * p.head_dim;
  for (int d = thread_index(); d < p.head_dim; d += block_size()) row[d] = store_bf16(state[d]);
}

PLUMB_DEVICE void insert_codes(const Params& p, const StatePlace& to, const float* state) {
  const float inverse = 1 / *p.cache_scale;
  for (int d = thread_index(); d < p.head_dim; d += block_size()) {
    to.page[to.offset * p.head_dim + d] =
        encode_e4m3(stored_bf16(state[d]) * inverse, PLUMB_E4M3FN);
  }
}

// Channels under one scale. 0: the layout stores no scales.
PLUMB_DEVICE int scale_group(const Params& p) {
  switch (p.layout) {
    case PLUMB_COMPRESSED_MAIN: return kMainGroup;
    case PLUMB_COMPRESSED_INDEXER:
    case PLUMB_COMPRESSED_INDEXER_BYTES: return static_cast<int>(p.head_dim);
    case PLUMB_COMPRESSED_INDEXER_MXFP4: return kMxGroup;
    default: return 0;
  }
}

PLUMB_DEVICE void insert(const Params& p, const StatePlace& to, const float* state,
                         const float* scales) {
  switch (p.layout) {
    case PLUMB_COMPRESSED_INDEXER:
    case PLUMB_COMPRESSED_INDEXER_BYTES: return insert_indexer(p, to, state, scales);
    case PLUMB_COMPRESSED_INDEXER_MXFP4: return insert_mxfp4(p, to, state, scales);
    case PLUMB_COMPRESSED_MAIN: return insert_main(p, to, state, scales);
    case PLUMB_COMPRESSED_ROWS: return insert_row(p, to, state);
    case PLUMB_COMPRESSED_ROWS_FP8: return insert_codes(p, to, state);
  }
}

PLUMB_KERNEL void compress_norm_rope_insert_kernel(Params p) {
  PLUMB_SHARED(float, wave_sums, kMostWaves);
  PLUMB_SHARED(float, normed, kMostDim);
  PLUMB_SHARED(float, turned, kMostDim);
  PLUMB_SHARED(float, scales, kMostGroups);
  const std::int64_t token = block_index_x(), slot = p.kv_slot_mapping[token];
  const std::int64_t position = p.positions[token];
  if (slot < 0 || p.slot_mapping[token] < 0 || (position + 1) % p.ratio != 0) return;

  const ChannelWindow window = window_of(p, token);
  const int dim = static_cast<int>(p.head_dim);
  float states[kMostDim / kThreads], squares = 0;
  for (int i = 0, d = thread_index(); d < dim; ++i, d += kThreads) {
    states[i] = pooled(p, window, d);
    squares += states[i] * states[i];
  }
  const float mean = sum_of_block(squares, wave_sums) / static_cast<float>(dim);
  const float r = rsqrt_approx(mean + p.eps);
  for (int i = 0, d = thread_index(); d < dim; ++i, d += kThreads) {
    normed[d] = result(p, PLUMB_COMPRESSED_ROUND_NORM, states[i] * r * load_bf16(p.weight[d]));
  }
  block_sync();

  const float* angles = p.cos_sin + position / p.ratio * p.ratio * kRopeDim;
  for (int d = thread_index(); d < dim; d += kThreads) turned[d] = rotated(p, normed, angles, d);
  block_sync();
  if (transforms(p)) {
    for (int d = thread_index(); d < dim; d += kThreads) normed[d] = stored_bf16(turned[d]);
    block_sync();
    for (int d = thread_index(); d < dim; d += kThreads) {
      turned[d] = transformed_channel(normed, dim, d);
    }
    block_sync();
  }
  const int group = scale_group(p);
  const int channels = p.layout == PLUMB_COMPRESSED_MAIN ? kNopeDim : dim;
  if (group != 0 && thread_index() < channels / group) {
    scales[thread_index()] = stored_scale(p, group_scale(p, turned, thread_index() * group, group));
  }
  block_sync();
  insert(p, {p.cache.data + slot / p.cache.page * p.cache.block_stride_bytes, slot % p.cache.page},
         turned, scales);
}

std::int64_t state_bytes(const Params& p) {
  switch (p.layout) {
    case PLUMB_COMPRESSED_INDEXER:
    case PLUMB_COMPRESSED_INDEXER_BYTES: return p.head_dim + 4;
    case PLUMB_COMPRESSED_INDEXER_MXFP4: return p.head_dim / 2 + p.head_dim / kMxGroup;
    case PLUMB_COMPRESSED_MAIN: return kMainBytes + kMainScaleBytes;
    case PLUMB_COMPRESSED_ROWS: return 2 * p.head_dim;
    case PLUMB_COMPRESSED_ROWS_FP8: return p.head_dim;
  }
  return 0;
}

// Of the addresses of a cache.
std::int64_t alignment(const Params& p) {
  switch (p.layout) {
    case PLUMB_COMPRESSED_INDEXER:
    case PLUMB_COMPRESSED_INDEXER_BYTES: return 4;
    case PLUMB_COMPRESSED_INDEXER_MXFP4:
    case PLUMB_COMPRESSED_ROWS_FP8: return 1;
    default: return 2;
  }
}

bool has_legal_caches(const Params& p) {
  const std::int64_t element = p.form == PLUMB_STATE_RAW_BF16 ? 2 : 4;
  const std::int64_t width = p.overlap ? 2 * p.head_dim : p.head_dim;
  const plumb_state_cache& state = p.states;
  if (state.rows < 1 || state.row_stride_bytes < 2 * width * element) return false;
  if (state.block_stride_bytes < state.rows * state.row_stride_bytes) return false;
  if (state.row_stride_bytes % element != 0 || state.block_stride_bytes % element != 0)
    return false;
  return p.cache.page >= 1 && p.cache.block_stride_bytes >= p.cache.page * state_bytes(p) &&
         p.cache.block_stride_bytes % alignment(p) == 0;
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.ratio < 1 || !(p.eps >= 0)) return false;
  const bool whole = p.head_dim >= 2 * kRopeDim && p.head_dim <= kMostDim && p.head_dim % 64 == 0;
  if (!whole || (p.layout == PLUMB_COMPRESSED_MAIN && p.head_dim != kMostDim)) return false;
  if (!has_legal_caches(p)) return false;
  if (p.tokens == 0) return true;
  const bool has_ape = p.form == PLUMB_STATE_BIASED || p.ape;
  const bool has_scale = p.layout != PLUMB_COMPRESSED_ROWS_FP8 || p.cache_scale;
  return has_ape && has_scale && p.states.data && p.block_table && p.token_to_req && p.positions &&
         p.slot_mapping && p.weight && p.cos_sin && p.kv_slot_mapping && p.cache.data;
}

plumb_status launch_compress_norm_rope_insert(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (p.tokens > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(compress_norm_rope_insert_kernel, (LaunchShape{p.tokens, 1, kThreads, 0}),
                      p.stream, p);
}

}  // namespace

OpEntry compress_norm_rope_insert() {
  return {"compress_norm_rope_insert",
          launch_compress_norm_rope_insert,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = kThreads,
           .probability = PLUMB_F32,
           .function_ulp = 2,  // exp2_approx and rsqrt_approx: within 2 ulp on every back end
           .deterministic = 1}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
