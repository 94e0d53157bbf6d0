// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre in two kernels with the per-split sums between them, which callers may look at.
//
// mhc_pre_partials: block (tile, split) takes 64 tokens and one part of K = 4 * hidden. Wave w owns
// rows 16w .. 16w+15 of the tile: lane l works on row l % 16 and on every (wave / 16)-th k from l /
// 16, so that lanes l, l + 16, ... add up one row between them. Launch: 4 waves, grid (tiles,
// splits).
//
// mhc_pre_outputs: block b takes token b; 24 threads make the logits, one iterates Sinkhorn, all
// share the columns of layer_input. Launch: token_shape.
#include "device/kernels/hyper_connection.h"
#include "device/kernels/sinkhorn.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kMixes = 24, kFirstPost = 4, kFirstComb = 8;
constexpr int kRowsPerWave = 16, kWavesPerTile = 4;
constexpr int kTileRows = kRowsPerWave * kWavesPerTile;
constexpr int kChunk = 64;  // columns of fn that are staged at a time
constexpr int kStaged = kMixes * kChunk;

using Params = plumb_mhc_pre_params;

PLUMB_DEVICE std::int64_t part_begin(const Params& p, int split) {
  return kStreams * p.hidden * split / p.splits;
}

// Stages fn[:, first .. first + count) as [count, 24].
PLUMB_DEVICE void stage_weights(const Params& p, std::int64_t first, int count, float* staged) {
  for (int i = thread_index(); i < kMixes * count; i += block_size()) {
    const int mix = i / count, k = i % count;
    staged[k * kMixes + mix] = p.fn[kStreams * p.hidden * mix + first + k];
  }
}

PLUMB_KERNEL void mhc_pre_partials(Params p) {
  PLUMB_SHARED(float, weights, kStaged);
  const std::int64_t first_token = static_cast<std::int64_t>(block_index_x()) * kTileRows;
  const std::int64_t rows_in_tile =
      p.tokens - first_token < kTileRows ? p.tokens - first_token : kTileRows;
  const int split = block_index_y();
  const int slice = lane_index() / kRowsPerWave;
  const int slices = wave_size() / kRowsPerWave;
  const int own_row = kRowsPerWave * wave_index() + lane_index() % kRowsPerWave;
  const bool has_row = own_row < rows_in_tile;
  const std::uint16_t* x_row = p.residual + (first_token + own_row) * p.residual_token_stride;

  float mixes[kMixes] = {}, square_sum = 0;
  const std::int64_t end = part_begin(p, split + 1);
  for (std::int64_t first = part_begin(p, split); first < end; first += kChunk) {
    const int count = end - first < kChunk ? static_cast<int>(end - first) : kChunk;
    stage_weights(p, first, count, weights);
    block_sync();
    for (int k = has_row ? slice : count; k < count; k += slices) {
      const std::int64_t slot = (first + k) / p.hidden;
      const std::int64_t h = first + k - slot * p.hidden;
      const float x = load_bf16(x_row[slot * p.residual_slot_stride + h]);
      square_sum += x * x;
      for (int c = 0; c < kMixes; ++c) mixes[c] += x * weights[k * kMixes + c];
    }
    block_sync();  // before the next chunk is staged over this one
  }

  for (int offset = kRowsPerWave; offset < wave_size(); offset *= 2) {
    square_sum += shuffle_xor(all_lanes(), square_sum, offset, wave_size());
    for (int c = 0; c < kMixes; ++c) {
      mixes[c] += shuffle_xor(all_lanes(), mixes[c], offset, wave_size());
    }
  }
  // Now all lanes of a row hold its sums. One of them stores the square sum; they share the mixes.
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

// mix * r * scale + base of one column, the splits added in order.
PLUMB_DEVICE float logit_of(const Params& p, std::int64_t token, int mix) {
  float sum = 0, square_sum = 0;
  for (int split = 0; split < p.splits; ++split) {
    const std::int64_t row = split * p.tokens + token;
    sum += p.partial_mixes[row * kMixes + mix];
    square_sum += p.partial_square_sums[row];
  }
  const float mean_square = square_sum / static_cast<float>(kStreams * p.hidden);
  const float scale = p.scale[mix < kFirstPost ? 0 : mix < kFirstComb ? 1 : 2];
  return sum * rsqrt_approx(mean_square + p.rms_eps) * scale + p.base[mix];
}

PLUMB_DEVICE void store_comb(const Params& p, std::int64_t token, const float* logits) {
  float matrix[kStreams * kStreams];
  for (int i = 0; i < kStreams * kStreams; ++i) matrix[i] = logits[i];
  sinkhorn(matrix, p.sinkhorn_iterations, p.sinkhorn_eps);
  for (int i = 0; i < kStreams * kStreams; ++i) {
    p.comb[token * kStreams * kStreams + i] = matrix[i];
  }
}

// bf16 y first, and the mean square of y before that rounding; then, with a norm, each thread goes
// over the columns that it has written.
PLUMB_DEVICE void store_layer_input(const Params& p, std::int64_t token, const float* pre,
                                    float* per_wave) {
  const std::uint16_t* streams = p.residual + token * p.residual_token_stride;
  std::uint16_t* out = p.layer_input + token * p.hidden;
  float square_sum = 0;
  for (std::int64_t h = thread_index(); h < p.hidden; h += block_size()) {
    const float y = gated_sum(streams, p.residual_slot_stride, h, pre);
    square_sum += y * y;
    out[h] = store_bf16(y);
  }
  if (p.norm_weight == nullptr) return;
  const float mean_square = block_tree_sum(square_sum, per_wave) / static_cast<float>(p.hidden);
  const float r = rsqrt_approx(mean_square + p.norm_eps);
  for (std::int64_t h = thread_index(); h < p.hidden; h += block_size()) {
    out[h] = store_bf16(load_bf16(out[h]) * r * load_bf16(p.norm_weight[h]));
  }
}

PLUMB_KERNEL void mhc_pre_outputs(Params p) {
  PLUMB_SHARED(float, logits, kMixes);
  PLUMB_SHARED(float, pre, kStreams);
  PLUMB_SHARED(float, per_wave, kMostWaves);
  const std::int64_t token = block_index_x();
  const int thread = thread_index();
  if (thread < kMixes) logits[thread] = logit_of(p, token, thread);
  block_sync();
  if (thread < kFirstPost) {
    pre[thread] = sigmoid(logits[thread]) + p.pre_eps;
  } else if (thread < kFirstComb) {
    const float gate = sigmoid(logits[thread]);
    p.post[token * kStreams + thread - kFirstPost] = gate * p.post_mult;
  } else if (thread == kFirstComb) {
    store_comb(p, token, logits + kFirstComb);
  }
  block_sync();
  store_layer_input(p, token, pre, per_wave);
}

bool is_legal(const Params& p) {
  return p.tokens >= 0 && p.hidden >= 1 && p.splits >= 1 && p.sinkhorn_iterations >= 1;
}

bool is_complete(const Params& p) {
  return p.residual && p.fn && p.scale && p.base && p.post && p.comb && p.layer_input &&
         p.partial_mixes && p.partial_square_sums;
}

plumb_status launch_mhc_pre(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!is_complete(p)) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x || p.splits > device.max_grid_y) return PLUMB_UNSUPPORTED;
  const std::int64_t tiles = (p.tokens + kTileRows - 1) / kTileRows;
  const LaunchShape partials{tiles, p.splits, kWavesPerTile * device.wave_size, 0};
  const plumb_status status = PLUMB_LAUNCH(mhc_pre_partials, partials, p.stream, p);
  if (status != PLUMB_OK) return status;
  const LaunchShape outputs = token_shape(p.tokens, p.hidden, device.wave_size);
  return PLUMB_LAUNCH(mhc_pre_outputs, outputs, p.stream, p);
}

}  // namespace

plumb_op_entry mhc_pre() {
  // One chain, although two or four lanes add up a row between them: the outliers of a channel,
  // which all four streams have, may well fall to one lane. Functions: within 1 ulp; twice that.
  return {"mhc_pre", launch_mhc_pre, {PLUMB_F32, PLUMB_F32, 1, PLUMB_F32, 2, 1, 1}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
