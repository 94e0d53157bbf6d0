// SPDX-License-Identifier: Apache-2.0
//
// hc_head: the gated sum of the four streams before the LM head. Block b takes token b. Its threads
// share the columns, eight at a time, in three passes: mean square, four mixes, sum. Launch:
// token_shape.
#include "device/kernels/hyper_connection/hyper_connection.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// The kernel with clusters of blocks, if the back end has it (PLUMB_CLUSTERED_HEAD:
// device/cuda/hc_head_cluster.cu). Its numerics are those below. PLUMB_UNSUPPORTED: not for this
// shape.
#ifdef PLUMB_CLUSTERED_HEAD
plumb_status launch_clustered_hc_head(const plumb_hc_head_params& p);
#else
inline plumb_status launch_clustered_hc_head(const plumb_hc_head_params&) {
  return PLUMB_UNSUPPORTED;
}
#endif

namespace {

using Params = plumb_hc_head_params;

// Calls visit(h, streams) for each eight columns of this thread, of which h is the first.
template <class Visit>
PLUMB_DEVICE void each_columns(const Params& p, bool whole, const Visit& visit) {
  const std::uint16_t* streams = p.hidden_states + block_index_x() * p.hidden_token_stride;
  for (std::int64_t h = thread_index() * kBf16x8; h < p.hidden; h += block_size() * kBf16x8) {
    visit(h, load_streams(streams, p.hidden_slot_stride, h, p.hidden, whole));
  }
}

PLUMB_DEVICE float sum_of_streams(const float* sums) {
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

PLUMB_DEVICE float inverse_rms(const Params& p, bool whole, float* per_wave) {
  float square_sum = 0;
  each_columns(p, whole, [&](std::int64_t, const StreamColumns& streams) {
    float sums[kStreams];
    PLUMB_UNROLL
    for (int slot = 0; slot < kStreams; ++slot) {
      float squares[kBf16x8];
      PLUMB_UNROLL
      for (int i = 0; i < kBf16x8; ++i) squares[i] = streams.at[slot][i] * streams.at[slot][i];
      sums[slot] = tree_sum_of_8(squares);
    }
    square_sum += sum_of_streams(sums);
  });
  const float total = block_tree_sum(square_sum, per_wave);
  return rsqrt_approx(total / static_cast<float>(kStreams * p.hidden) + p.rms_eps);
}

// Loads eight weights. Those behind the row's end are 0.
PLUMB_DEVICE void load_weights(const float* from, std::int64_t count, bool whole, float* weights) {
  if (whole) {
    const Vector<float> low = load_vector(from), high = load_vector(from + 4);
    PLUMB_UNROLL
    for (int i = 0; i < 4; ++i) weights[i] = low.at[i], weights[i + 4] = high.at[i];
    return;
  }
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) weights[i] = i < count ? from[i] : 0;
}

// Adds this thread's part of the four mixes. PLUMB_ROUND_TWICE multiplies x * r rounded to bf16.
PLUMB_DEVICE void add_products(const Params& p, bool whole, float r, float* mixes) {
  each_columns(p, whole, [&](std::int64_t h, StreamColumns streams) {
    if (p.rounding == PLUMB_ROUND_TWICE) {
      PLUMB_UNROLL
      for (int i = 0; i < kStreams * kBf16x8; ++i) {
        float& x = streams.at[i / kBf16x8][i % kBf16x8];
        x = load_bf16(store_bf16(x * r));
      }
    }
    PLUMB_UNROLL
    for (int j = 0; j < kStreams; ++j) {
      float sums[kStreams];
      PLUMB_UNROLL
      for (int slot = 0; slot < kStreams; ++slot) {
        float products[kBf16x8];
        load_weights(p.fn + (kStreams * j + slot) * p.hidden + h, p.hidden - h, whole, products);
        PLUMB_UNROLL
        for (int i = 0; i < kBf16x8; ++i) products[i] *= streams.at[slot][i];
        sums[slot] = tree_sum_of_8(products);
      }
      mixes[j] += sum_of_streams(sums);
    }
  });
}

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostTokenThreads, 1) void hc_head_kernel(Params p) {
  PLUMB_SHARED(float, per_wave, (kStreams + 1) * kMostWaves);
  const float r = inverse_rms(p, whole, per_wave);
  float mixes[kStreams] = {}, gates[kStreams];
  add_products(p, whole, r, mixes);
  PLUMB_UNROLL
  for (int j = 0; j < kStreams; ++j) {
    const float sum = block_tree_sum(mixes[j], per_wave + (j + 1) * kMostWaves);
    const float mix = p.rounding == PLUMB_ROUND_TWICE ? sum : sum * r;
    gates[j] = sigmoid(mix * p.scale[0] + p.base[j]) + p.hc_eps;
  }
  std::uint16_t* out = p.out + block_index_x() * p.out_row_stride;
  each_columns(p, whole, [&](std::int64_t h, const StreamColumns& streams) {
    float sums[kBf16x8];
    gated_sum(streams, gates, sums);
    store_bf16x8(out + h, round_bf16x8(sums), p.hidden - h, whole);
  });
}

plumb_status launch_hc_head(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.out_row_stride < p.hidden) return PLUMB_INVALID_ARGUMENT;
  if (p.rounding != PLUMB_ROUND_ONCE && p.rounding != PLUMB_ROUND_TWICE) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.hidden_states || !p.fn || !p.scale || !p.base || !p.out) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const plumb_status clustered = launch_clustered_hc_head(p);
  if (clustered != PLUMB_UNSUPPORTED) return clustered;
  const LaunchShape shape = token_shape(p.tokens, p.hidden, device.wave_size);
  if (are_whole({p.hidden, p.hidden_token_stride, p.out_row_stride, p.hidden_slot_stride}) &&
      start_whole(p.hidden_states, p.fn, p.out)) {
    return PLUMB_LAUNCH(hc_head_kernel<true>, shape, p.stream, p);
  }
  return PLUMB_LAUNCH(hc_head_kernel<false>, shape, p.stream, p);
}

}  // namespace

OpEntry hc_head() {
  // A thread adds 32 products as a tree and the results of its vectors in order, and a tree adds up
  // at most 256 threads. For every `hidden` this is no deeper than 64 chains.
  return {"hc_head",
          launch_hc_head,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 64,
           .probability = PLUMB_F32,
           .function_ulp = 2,
           .deterministic = 1}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
