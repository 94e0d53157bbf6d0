// SPDX-License-Identifier: Apache-2.0
//
// The mixing of mhc_pre and of the ops that fuse it, in two stages. Callers can read the sums of
// each split between the stages.
//
// mix_partials: block (tile, split) takes 64 tokens and one part of K. Wave w has rows 16 w .. + 15
// of the tile. Lane l has row l % 16 and every (wave size / 16)-th k, from l / 16 on. So lanes l, l
// + 16, ... together add up one row. Launch: partials_shape.
//
// mix_outputs: the first blocks run Sinkhorn, one thread per token. Each block behind them takes
// one token: 8 threads compute the gates, and all threads share the columns of layer_input. Launch:
// outputs_shape.
#pragma once

#include <limits>

#include "device/kernels/hyper_connection/hyper_connection.h"
#include "device/kernels/hyper_connection/sinkhorn.h"

namespace plumb::device::PLUMB_KERNEL_SET {

inline constexpr int kMixes = 24, kFirstPost = 4, kFirstComb = 8;
inline constexpr int kRowsPerWave = 16, kWavesPerTile = 4;
inline constexpr int kTileRows = kRowsPerWave * kWavesPerTile;
inline constexpr int kChunk = 64;  // columns of fn in shared memory at a time
inline constexpr int kStaged = kMixes * kChunk;

// Arguments of both stages, for every op that mixes.
struct Mixing {
  const std::uint16_t* streams;  // bf16 [tokens, 4, hidden], input of layer_input
  const float* fn;               // [24, depth]
  const float* scale;
  const float* base;
  const std::uint16_t* norm_weight;
  float* post;
  float* comb;
  std::uint16_t* layer_input;
  float* partial_mixes;
  float* partial_square_sums;
  std::int64_t tokens, hidden;
  std::int64_t depth;  // K: 4 * hidden, or hidden if fn has been summed over equal streams
  std::int64_t token_stride, slot_stride;
  std::int64_t post_row_stride, comb_token_stride, layer_input_row_stride;
  int splits, sinkhorn_iterations;
  float rms_eps, pre_eps, sinkhorn_eps, norm_eps, post_mult;
  // multiply bf16 streams with fn as the sum of two bf16 numbers
  bool bf16_split;
  bool bf16_mixes;  // round the mixes to bf16 after adding their splits
};

// A Mixing from an op's parameters, without its streams. All ops name these members alike.
template <class Params>
Mixing mixing_of(const Params& p, std::int64_t depth) {
  Mixing m{};
  m.fn = p.fn;
  m.scale = p.scale;
  m.base = p.base;
  m.norm_weight = p.norm_weight;
  m.post = p.post;
  m.comb = p.comb;
  m.layer_input = p.layer_input;
  m.partial_mixes = p.partial_mixes;
  m.partial_square_sums = p.partial_square_sums;
  m.tokens = p.tokens;
  m.hidden = p.hidden;
  m.depth = depth;
  m.post_row_stride = p.post_row_stride;
  m.comb_token_stride = p.comb_token_stride;
  m.layer_input_row_stride = p.layer_input_row_stride;
  m.splits = static_cast<int>(p.splits);
  m.sinkhorn_iterations = p.sinkhorn_iterations;
  m.rms_eps = p.rms_eps;
  m.pre_eps = p.pre_eps;
  m.sinkhorn_eps = p.sinkhorn_eps;
  m.norm_eps = p.norm_eps;
  m.post_mult = p.post_mult;
  return m;
}

// `Params`: the parameters of an op that mixes.
template <class Params>
bool is_legal_mixing(const Params& p) {
  return p.tokens >= 0 && p.hidden >= 1 && p.splits >= 1 &&
         p.splits <= std::numeric_limits<std::int32_t>::max() && p.sinkhorn_iterations >= 1 &&
         p.post_row_stride >= kStreams && p.comb_token_stride >= kStreams * kStreams &&
         p.layer_input_row_stride >= p.hidden;
}

inline bool is_complete(const Mixing& m) {
  return m.streams && m.fn && m.scale && m.base && m.post && m.comb && m.layer_input &&
         m.partial_mixes && m.partial_square_sums;
}

inline bool fits_grid(const Mixing& m, const Properties& device) {
  return 2 * m.tokens <= device.max_grid_x && m.splits <= device.max_grid_y;
}

PLUMB_DEVICE inline std::int64_t part_begin(const Mixing& p, int split) {
  return p.depth * split / p.splits;
}

// `weight` rounded to the sum of two bf16 numbers, which fp32 holds exactly.
PLUMB_DEVICE inline float two_bf16(float weight) {
  const float high = load_bf16(store_bf16(weight));
  return high + load_bf16(store_bf16(weight - high));
}

// Stages fn[:, first .. first + count) as [count, 24].
PLUMB_DEVICE inline void stage_weights(const Mixing& p, std::int64_t first, int count,
                                       float* staged) {
  for (int i = thread_index(); i < kMixes * count; i += block_size()) {
    const int mix = i / count, k = i % count;
    const float weight = p.fn[p.depth * mix + first + k];
    staged[k * kMixes + mix] = p.bf16_split ? two_bf16(weight) : weight;
  }
}

// x_of(token, k): element k of a token's streams. Called once for each k of the part, by one lane.
template <class Element>
PLUMB_DEVICE inline void mix_partials(const Mixing& p, const Element& x_of, float* weights) {
  const std::int64_t first_token = static_cast<std::int64_t>(block_index_x()) * kTileRows;
  const std::int64_t rows_in_tile =
      p.tokens - first_token < kTileRows ? p.tokens - first_token : kTileRows;
  const int split = block_index_y();
  const int slice = lane_index() / kRowsPerWave;
  const int slices = wave_size() / kRowsPerWave;
  const int own_row = kRowsPerWave * wave_index() + lane_index() % kRowsPerWave;
  const bool has_row = own_row < rows_in_tile;

  float mixes[kMixes] = {}, square_sum = 0;
  const std::int64_t end = part_begin(p, split + 1);
  for (std::int64_t first = part_begin(p, split); first < end; first += kChunk) {
    const int count = end - first < kChunk ? static_cast<int>(end - first) : kChunk;
    stage_weights(p, first, count, weights);
    block_sync();
    for (int k = has_row ? slice : count; k < count; k += slices) {
      const float x = x_of(first_token + own_row, first + k);
      square_sum += x * x;
      const float operand = p.bf16_split ? load_bf16(store_bf16(x)) : x;
      for (int c = 0; c < kMixes; ++c) mixes[c] += operand * weights[k * kMixes + c];
    }
    block_sync();  // before the next chunk is staged over this one
  }

  for (int offset = kRowsPerWave; offset < wave_size(); offset *= 2) {
    square_sum += shuffle_xor(all_lanes(), square_sum, offset, wave_size());
    for (int c = 0; c < kMixes; ++c) {
      mixes[c] += shuffle_xor(all_lanes(), mixes[c], offset, wave_size());
    }
  }
  // All lanes of a row now hold its sums. One of them stores the square sum; they share the mixes.
  const std::int64_t out_row = split * p.tokens + first_token;
  const int tile_row = kRowsPerWave * wave_index() + lane_index();
  if (lane_index() < kRowsPerWave && tile_row < rows_in_tile) {
    p.partial_square_sums[out_row + tile_row] = square_sum;
  }
  for (int c = 0; c < kMixes; ++c) {
    if (has_row && c % slices == slice) {
      p.partial_mixes[(out_row + own_row) * kMixes + c] = mixes[c];
    }
  }
}

// Logit of one mix: mix * r * scale + base. Splits are added in order.
PLUMB_DEVICE inline float logit_of(const Mixing& p, std::int64_t token, int mix) {
  float sum = 0, square_sum = 0;
  for (int split = 0; split < p.splits; ++split) {
    const std::int64_t row = split * p.tokens + token;
    sum += p.partial_mixes[row * kMixes + mix];
    square_sum += p.partial_square_sums[row];
  }
  if (p.bf16_mixes) sum = load_bf16(store_bf16(sum));
  const float mean_square = square_sum / static_cast<float>(p.depth);
  const float scale = p.scale[mix < kFirstPost ? 0 : mix < kFirstComb ? 1 : 2];
  return sum * rsqrt_approx(mean_square + p.rms_eps) * scale + p.base[mix];
}

PLUMB_DEVICE inline void store_comb(const Mixing& p, std::int64_t token, const float* logits) {
  float matrix[kStreams * kStreams];
  for (int i = 0; i < kStreams * kStreams; ++i) matrix[i] = logits[i];
  sinkhorn(matrix, p.sinkhorn_iterations, p.sinkhorn_eps);
  for (int i = 0; i < kStreams * kStreams; ++i) {
    p.comb[token * p.comb_token_stride + i] = matrix[i];
  }
}

// Eight columns of layer_input: rounded y times r times the norm weight, rounded.
PLUMB_DEVICE inline Bf16x8 normalized_input(const Mixing& p, const Bf16x8& y, float r,
                                            std::int64_t h, bool whole) {
  float values[kBf16x8], weights[kBf16x8];
  decode_bf16x8(y, values);
  decode_bf16x8(load_bf16x8(p.norm_weight + h, p.hidden - h, whole), weights);
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) values[i] = values[i] * r * weights[i];
  return round_bf16x8(values);
}

// Eight columns of y, rounded. Adds their squares before rounding to square_sum.
PLUMB_DEVICE inline Bf16x8 input_columns(const StreamBits& streams, const float* pre,
                                         float& square_sum) {
  float y[kBf16x8], squares[kBf16x8];
  gated_sum(decode_streams(streams), pre, y);
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) squares[i] = y[i] * y[i];
  square_sum += tree_sum_of_8(squares);
  return round_bf16x8(y);
}

// Vectors of a token's streams that a thread keeps in registers: it loads them before the gates are
// known. With a norm, their y is kept until the mean square is known. If a row has more vectors,
// the y of the others is stored first, and the same thread reads it back.
inline constexpr int kKept = 4;
struct KeptStreams {
  StreamBits at[kKept];
};

PLUMB_DEVICE inline std::int64_t kept_column(int i) {
  return (thread_index() + i * block_size()) * kBf16x8;
}

PLUMB_DEVICE inline StreamBits load_input(const Mixing& p, std::int64_t token, std::int64_t h,
                                          bool whole) {
  return load_stream_bits(p.streams + token * p.token_stride, p.slot_stride, h, p.hidden, whole);
}

PLUMB_DEVICE inline KeptStreams load_kept(const Mixing& p, std::int64_t token, bool whole) {
  KeptStreams kept{};
  PLUMB_UNROLL
  for (int i = 0; i < kKept; ++i) {
    if (kept_column(i) < p.hidden) kept.at[i] = load_input(p, token, kept_column(i), whole);
  }
  return kept;
}

template <bool whole>
PLUMB_DEVICE inline void store_layer_input(const Mixing& p, std::int64_t token,
                                           const KeptStreams& kept, const float* pre,
                                           float* per_wave) {
  std::uint16_t* out = p.layer_input + token * p.layer_input_row_stride;
  const int stride = block_size() * kBf16x8;
  const auto store = [&](std::int64_t h, const Bf16x8& bits) {
    store_bf16x8(out + h, bits, p.hidden - h, whole);
  };
  Bf16x8 y[kKept];
  float square_sum = 0;
  PLUMB_UNROLL
  for (int i = 0; i < kKept; ++i) {
    const std::int64_t h = kept_column(i);
    if (h >= p.hidden) break;
    y[i] = input_columns(kept.at[i], pre, square_sum);
    if (p.norm_weight == nullptr) store(h, y[i]);
  }
  for (std::int64_t h = kept_column(kKept); h < p.hidden; h += stride) {
    store(h, input_columns(load_input(p, token, h, whole), pre, square_sum));
  }
  if (p.norm_weight == nullptr) return;
  const float mean_square = block_tree_sum(square_sum, per_wave) / static_cast<float>(p.hidden);
  const float r = rsqrt_approx(mean_square + p.norm_eps);
  PLUMB_UNROLL
  for (int i = 0; i < kKept; ++i) {
    const std::int64_t h = kept_column(i);
    if (h < p.hidden) store(h, normalized_input(p, y[i], r, h, whole));
  }
  for (std::int64_t h = kept_column(kKept); h < p.hidden; h += stride) {
    store(h, normalized_input(p, load_bf16x8(out + h, p.hidden - h, whole), r, h, whole));
  }
}

// A thread needs long for the Sinkhorn iteration of a token. Meanwhile other blocks do the columns.
PLUMB_DEVICE inline void mix_combs(const Mixing& p) {
  const std::int64_t token = block_index_x() * std::int64_t{block_size()} + thread_index();
  if (token >= p.tokens) return;
  float logits[kStreams * kStreams];
  for (int i = 0; i < kStreams * kStreams; ++i) logits[i] = logit_of(p, token, kFirstComb + i);
  store_comb(p, token, logits);
}

// The token of this block; negative in blocks that run Sinkhorn.
PLUMB_DEVICE inline std::int64_t outputs_token(const Mixing& p) {
  return block_index_x() - (grid_size_x() - p.tokens);
}

// Shared memory: `pre` has kStreams floats, `per_wave` kMostWaves.
template <bool whole>
PLUMB_DEVICE inline void mix_outputs(const Mixing& p, float* pre, float* per_wave) {
  const std::int64_t token = outputs_token(p);
  if (token < 0) return mix_combs(p);
  const KeptStreams kept = load_kept(p, token, whole);
  const int thread = thread_index();
  if (thread < kFirstComb) {
    const float gate = sigmoid(logit_of(p, token, thread));
    if (thread < kFirstPost) {
      pre[thread] = gate + p.pre_eps;
    } else {
      p.post[token * p.post_row_stride + thread - kFirstPost] = gate * p.post_mult;
    }
  }
  block_sync();
  store_layer_input<whole>(p, token, kept, pre, per_wave);
}

inline LaunchShape outputs_shape(const Mixing& m, int wave) {
  LaunchShape shape = token_shape(m.tokens, m.hidden, wave);
  shape.grid_x += (m.tokens + shape.block - 1) / shape.block;
  return shape;
}

inline bool is_whole(const Mixing& m) {
  return are_whole({m.hidden, m.token_stride, m.layer_input_row_stride, m.slot_stride}) &&
         start_whole(m.streams, m.norm_weight, m.layer_input);
}

// Element k of a token's streams, read as they are stored.
struct StoredStreams {
  const Mixing& p;
  PLUMB_METHOD float operator()(std::int64_t token, std::int64_t k) const {
    const std::int64_t slot = k / p.hidden;
    return load_bf16(
        p.streams[token * p.token_stride + slot * p.slot_stride + k - slot * p.hidden]);
  }
};

// chains = 1, although two or four lanes share a row: the outliers of a channel, which all four
// streams have, may all be added by one lane. 2 ulp covers exp2_approx and rsqrt_approx on all back
// ends.
inline plumb_numerics mixing_numerics() {
  return {.product = PLUMB_F32,
          .accumulator = PLUMB_F32,
          .chains = 1,
          .probability = PLUMB_F32,
          .function_ulp = 2,
          .deterministic = 1,
          .stores_partials = 1};
}

// The first stage on matrix units, if the back end has a kernel for it (PLUMB_MATRIX_MIXING:
// device/cuda/mhc_partials.cu). PLUMB_UNSUPPORTED: not for this shape.
#ifdef PLUMB_MATRIX_MIXING
plumb_status launch_matrix_partials(const Mixing& m, plumb_stream stream);
bool suits_matrix_units(const Mixing& m);
#else
inline plumb_status launch_matrix_partials(const Mixing&, plumb_stream) {
  return PLUMB_UNSUPPORTED;
}
inline bool suits_matrix_units(const Mixing&) { return false; }
#endif

// plumb_op_entry::numerics_of. `mixing` makes a Mixing from the op's parameters.
template <class Params, Mixing (*mixing)(const Params&)>
void mixing_numerics_of(const void* params, plumb_numerics* numerics) {
  if (suits_matrix_units(mixing(*static_cast<const Params*>(params)))) {
    numerics->sum_unit = PLUMB_UNIT_SM90_BF16;
  }
}

inline LaunchShape partials_shape(const Mixing& m, const Properties& device) {
  const std::int64_t tiles = (m.tokens + kTileRows - 1) / kTileRows;
  return {tiles, m.splits, kWavesPerTile * device.wave_size, 0};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
