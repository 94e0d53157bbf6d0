// SPDX-License-Identifier: Apache-2.0
//
// hc_head for processors with thread-block clusters. One block cannot hold the weights (458 KB at
// hidden 7168), and reading them again for every few tokens costs more than the tokens do. Eight
// blocks share the columns: each holds its eighth of the weights for all tokens, sees its eighth of
// a token once, keeps it in registers, and gets the others' sums into its shared memory.
//
// Warp w has columns 64 w .. + 63 of the block's, of all four streams, of eight tokens at a time;
// lane l has token l / 4, and of each 32 columns 8 (l % 4) .. + 7. Products go through matrix units
// (matrix_products.h) with the weights on the left: rows 0 to 3 are the largest parts of the four
// mixes, 4 to 7 the middle ones, 8 to 11 the smallest. Gates apply to what the lane has, so that
// the gated sum needs nobody else. While eight tokens are summed the next eight are on their way.
// Launch: clusters of kBlocks blocks, hidden / 512 warps.
#include <cooperative_groups.h>

#include "device/cuda/gpu_error.h"
#include "device/cuda/matrix_products.h"
#include "device/kernels/hyper_connection.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_hc_head_params;

constexpr int kBlocks = 8, kTokens = 8, kMostWarps = 16;
constexpr int kWarpColumns = 64, kHalves = 2;  // of 32 columns, of one stream
constexpr int kSteps = kHalves * kStreams;     // half i / 4 of stream i % 4

// A warp's weights of one step as lanes take them: rows 0 to 7, then 8 to 11.
constexpr int kFront = 32, kRear = 16, kStepVectors = kFront + kRear;

// Blocks of one cluster need a processor that has them; for others the kernel is empty.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

constexpr int kTokenSums = kStreams + 1;  // four mixes and the squares
constexpr int kSums = kTokens * kTokenSums;

struct Shared {
  float of_warp[kMostWarps][kSums];   // zeros of warps that the block lacks
  float of_block[2][kBlocks][kSums];  // which all blocks write to; by turns
};

// What a lane holds of its token.
struct LaneToken {
  uint4 step[kSteps];
};

// Which part of the work is a lane's.
struct LanePlace {
  int token, quarter;  // of eight; of 32 columns
  int first_column;
};

__device__ std::int64_t column_of(const LanePlace& place, int step) {
  return place.first_column + step / kStreams * 32;
}

__device__ LaneToken load_token(const Params& p, const LanePlace& place, std::int64_t first_token) {
  // Behind the last token: that one again, and not stored.
  const std::int64_t token = min(first_token + place.token, p.tokens - 1);
  const std::uint16_t* const from = p.hidden_states + token * p.hidden_token_stride;
  LaneToken bits;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    bits.step[step] = *reinterpret_cast<const uint4*>(
        from + step % kStreams * p.hidden_slot_stride + column_of(place, step));
  }
  return bits;
}

// This lane's eight weights of mix l / 4 % 4: the parts that its rows have. Nobody else reads them.
__device__ void stage_weights(const Params& p, const LanePlace& place, uint4* staged) {
  const int mix = place.token % kStreams;
  const bool has_rear = place.token < kStreams;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const float* from =
        p.fn + (kStreams * mix + step % kStreams) * p.hidden + column_of(place, step);
    float4 a = *reinterpret_cast<const float4*>(from);
    float4 b = *reinterpret_cast<const float4*>(from + 4);
    uint4 parts[3];
#pragma unroll
    for (uint4& part : parts) {
      part = {take_part(a.x, a.y), take_part(a.z, a.w), take_part(b.x, b.y), take_part(b.z, b.w)};
    }
    uint4* const to = staged + step * kStepVectors + lane_index();
    *to = has_rear ? parts[0] : parts[1];
    if (has_rear) to[kFront] = parts[2];
  }
}

__device__ void decode(const uint4& bits, float* values) {
  decode_bf16x8(Bf16x8{{bits.x, bits.y, bits.z, bits.w}}, values);
}

// Even and odd columns apart.
__device__ void add_squares(float2& sums, const uint4& bits) {
  float x[kBf16x8];
  decode(bits, x);
#pragma unroll
  for (int i = 0; i < kBf16x8; i += 2) {
    sums.x = fmaf(x[i], x[i], sums.x);
    sums.y = fmaf(x[i + 1], x[i + 1], sums.y);
  }
}

// The warp's share of eight tokens' mixes and squares.
__device__ void sum_columns(const LaneToken& token, const LanePlace& place, const uint4* staged,
                            float* to) {
  float sums[4] = {};
  float2 both = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const uint4 x = token.step[step];
    const uint4* const weights = staged + step * kStepVectors + lane_index();
    const uint4 front = *weights;
    const uint4 rear = place.token < kStreams ? weights[kFront] : uint4{};
    add_squares(both, x);
    // A matrix unit truncates where it adds: it starts from 0 in each step, and the fp32 units add.
    float products[4] = {};
    multiply(products, front.x, rear.x, front.y, rear.y, x.x, x.y);
    multiply(products, front.z, rear.z, front.w, rear.w, x.z, x.w);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += products[i];
  }
  // The middle parts' row is four below that of the largest.
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float middle = shuffle_xor(whole_wave(), sums[i], 4 * kStreams);
    const float mix = sums[i] + (middle + sums[2 + i]);
    if (place.token < kStreams) to[(2 * place.quarter + i) * kTokenSums + place.token] = mix;
  }
  float squares = both.x + both.y;
  squares += shuffle_xor(whole_wave(), squares, 1, 4);
  squares += shuffle_xor(whole_wave(), squares, 2, 4);
  if (place.quarter == 0) to[place.token * kTokenSums + kStreams] = squares;
}

// Adds up this block's warps, once for each block that is to have the sums.
__device__ void join_warps(Shared& shared, int turn) {
  const auto cluster = cooperative_groups::this_cluster();
  float(&own)[kSums] = shared.of_block[turn][cluster.block_rank()];
  for (int i = thread_index(); i < kBlocks * kSums; i += block_size()) {
    const int block = i / kSums, sum = i % kSums;
    float total = 0;
#pragma unroll
    for (int warp = 0; warp < kMostWarps; ++warp) total += shared.of_warp[warp][sum];
    *cluster.map_shared_rank(&own[sum], block) = total;
  }
}

// The four gates of this lane's token, each made by one of the four lanes that have it. `scale` and
// `base`: that one's.
__device__ void make_gates(const Params& p, const LanePlace& place, float scale, float base,
                           const float (&sums)[kBlocks][kSums], float (&gates)[kStreams]) {
  float product = 0, squares = 0;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    product += sums[block][place.token * kTokenSums + place.quarter];
    squares += sums[block][place.token * kTokenSums + kStreams];
  }
  const float r = rsqrt_approx(squares / static_cast<float>(kStreams * p.hidden) + p.rms_eps);
  const float gate = sigmoid(product * r * scale + base) + p.hc_eps;
#pragma unroll
  for (int j = 0; j < kStreams; ++j) gates[j] = shuffle(whole_wave(), gate, j, kStreams);
}

__device__ void store_columns(const Params& p, const LaneToken& token, const LanePlace& place,
                              std::int64_t first_token, const float (&gates)[kStreams]) {
  if (first_token + place.token >= p.tokens) return;
  std::uint16_t* const out = p.out + (first_token + place.token) * p.hidden;
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    StreamColumns streams;
    float sums[kBf16x8];
#pragma unroll
    for (int j = 0; j < kStreams; ++j) decode(token.step[half * kStreams + j], streams.at[j]);
    gated_sum(streams, gates, sums);
    store_vector(reinterpret_cast<std::uint32_t*>(out + column_of(place, half * kStreams)),
                 round_bf16x8(sums));
  }
}

__global__ void __launch_bounds__(32 * kMostWarps, 1) __cluster_dims__(kBlocks, 1, 1)
    hc_head_cluster_kernel(Params p) {
  __shared__ Shared shared;
  const auto cluster = cooperative_groups::this_cluster();
  const int columns = static_cast<int>(p.hidden / kBlocks), quarter = lane_index() % 4;
  const LanePlace place = {lane_index() / 4, quarter,
                           static_cast<int>(cluster.block_rank()) * columns +
                               wave_index() * kWarpColumns + quarter * kBf16x8};
  uint4* const staged = dynamic_shared<uint4>() + wave_index() * (kSteps * kStepVectors);
  const float scale = p.scale[0], base = p.base[quarter];
  const std::int64_t stride = std::int64_t{grid_size_x()} / kBlocks * kTokens;
  std::int64_t first = std::int64_t{block_index_x()} / kBlocks * kTokens;

  // `token` is first's; what takes its place is on its way while the other one is summed. A turn's
  // sums are written again two barriers later, when all have read them.
  const auto work = [&](LaneToken& token, int turn) {
    sum_columns(token, place, staged, shared.of_warp[wave_index()]);
    __syncthreads();
    join_warps(shared, turn);
    cluster.sync();
    float gates[kStreams];
    make_gates(p, place, scale, base, shared.of_block[turn], gates);
    store_columns(p, token, place, first, gates);
    if (first + 2 * stride < p.tokens) token = load_token(p, place, first + 2 * stride);
    first += stride;
  };
  LaneToken even = load_token(p, place, first), odd = load_token(p, place, first + stride);
  stage_weights(p, place, staged);
  for (int i = thread_index(); i < kMostWarps * kSums; i += block_size()) {
    shared.of_warp[i / kSums][i % kSums] = 0;
  }
  cluster.sync();  // all blocks have started
  while (true) {
    work(even, 0);
    if (first >= p.tokens) break;
    work(odd, 1);
    if (first >= p.tokens) break;
  }
}

#else

__global__ void hc_head_cluster_kernel(Params) {}

#endif

LaunchShape shape_for(const Params& p, std::int64_t clusters) {
  const int warps = static_cast<int>(p.hidden / (kBlocks * kWarpColumns));
  return {kBlocks * clusters, 1, 32 * warps, warps * kSteps * kStepVectors * sizeof(uint4)};
}

// How many clusters the device holds at once: processors come in groups, and a cluster lies in one
// of them. 0 where there are none.
int clusters_at_once(const Params& p) {
  const LaunchShape shape = shape_for(p, 1);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kBlocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(static_cast<unsigned>(shape.block));
  config.dynamicSmemBytes = shape.dynamic_shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaFuncSetAttribute(hc_head_cluster_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(config.dynamicSmemBytes)) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&clusters, hc_head_cluster_kernel, &config) == cudaSuccess) {
    return clusters;
  }
  cuda::forget_last_error();
  return 0;
}

bool suits(const Params& p) {
  constexpr int kColumns = kBlocks * kWarpColumns;
  return p.rounding == PLUMB_ROUND_ONCE && p.tokens >= kTokens && p.hidden % kColumns == 0 &&
         p.hidden >= 2 * kColumns && p.hidden <= kMostWarps * kColumns &&
         are_whole(p.hidden, p.hidden_token_stride, p.hidden_slot_stride) &&
         start_whole(p.hidden_states, p.fn, p.out);
}

}  // namespace

plumb_status launch_clustered_hc_head(const plumb_hc_head_params& p) {
  if (!suits(p)) return PLUMB_UNSUPPORTED;
  const std::int64_t most = clusters_at_once(p), batches = (p.tokens + kTokens - 1) / kTokens;
  if (most == 0) return PLUMB_UNSUPPORTED;
  const LaunchShape shape = shape_for(p, batches < most ? batches : most);
  return PLUMB_LAUNCH(hc_head_cluster_kernel, shape, p.stream, p);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
