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
// the gated sum needs nobody else. A processor holds two blocks of different clusters: while one
// waits for its tokens or for its cluster, the other one works.
// Launch: clusters of kBlocks blocks, hidden / 512 warps.
#include <cooperative_groups.h>

#include "device/cuda/gpu_error.h"
#include "device/cuda/matrix_products.h"
#include "device/kernels/hyper_connection.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_hc_head_params;

constexpr int kBlocks = 8, kTokens = 8, kLeastWarps = 2, kMostWarps = 14;
constexpr int kWarpColumns = 64, kHalves = 2;  // of 32 columns, of one stream
constexpr int kSteps = kHalves * kStreams;     // half i / 4 of stream i % 4

// A warp's weights of one step as lanes take them: two vectors of each of the lanes with rows 8 to
// 11, the halves of their columns with the two rows in turn; one of the others, the halves in turn.
constexpr int kFirst = 32, kSecond = 16, kStepVectors = kFirst + kSecond;

// Blocks of one cluster need a processor that has them; for others the kernel is empty.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

constexpr int kTokenSums = kStreams + 1;  // four mixes and the squares
constexpr int kSums = kTokens * kTokenSums;

struct Shared {
  float of_warp[kMostWarps][kSums];   // zeros of warps that the block lacks
  float of_block[2][kBlocks][kSums];  // which all blocks write to; by turns
  float scale, base[kStreams];
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

// Of half of the columns. Behind the last token: that one again, and not stored.
__device__ void load_half(const Params& p, const LanePlace& place, std::int64_t first_token,
                          int half, LaneToken& bits) {
  const std::int64_t token = min(first_token + place.token, p.tokens - 1);
  const std::uint16_t* const from =
      p.hidden_states + token * p.hidden_token_stride + column_of(place, half * kStreams);
#pragma unroll
  for (int j = 0; j < kStreams; ++j) {
    bits.step[half * kStreams + j] =
        *reinterpret_cast<const uint4*>(from + j * p.hidden_slot_stride);
  }
}

__device__ bool has_second(const LanePlace& place) { return place.token < kStreams; }

// This lane's eight weights of mix l / 4 % 4: the parts that its rows have. Nobody else reads them.
__device__ void stage_weights(const Params& p, const LanePlace& place, uint4* staged) {
  const int mix = place.token % kStreams;
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
    const auto& [largest, middle, smallest] = parts;
    uint4* const to = staged + step * kStepVectors + lane_index();
    if (has_second(place)) {
      to[0] = {largest.x, smallest.x, largest.y, smallest.y};
      to[kFirst] = {largest.z, smallest.z, largest.w, smallest.w};
    } else {
      *to = {middle.x, middle.z, middle.y, middle.w};
    }
  }
}

__device__ void decode(const uint4& bits, float* values) {
  decode_bf16x8(Bf16x8{{bits.x, bits.y, bits.z, bits.w}}, values);
}

// What matrix units make of a lane's columns in one step. They truncate where they add: each chain
// starts from zero, and the fp32 units add up the steps.
struct Products {
  float mixes[4], even[4], odd[4];
};

// `second`: how far behind a lane's first vector its second one is. Lanes without rows 8 to 11 take
// the first again, for the second half of their columns; rows 12 to 15 are anything.
__device__ void multiply_step(Products& products, const uint4& x, const uint4* weights,
                              int second) {
  const uint4 a = weights[0];
  uint4 b = weights[second];
  if (second == 0) b.x = b.y, b.z = b.w;
  multiply(products.mixes, a.x, a.y, a.z, a.w, x.x, x.y);
  // Squares: the diagonals of the upper and of the lower eight rows by eight columns.
  multiply(products.even, x.x, x.y, x.x);
  multiply(products.odd, x.x, x.y, x.y);
  multiply(products.mixes, b.x, b.y, b.z, b.w, x.z, x.w);
  multiply(products.even, x.z, x.w, x.z);
  multiply(products.odd, x.z, x.w, x.w);
}

// The warp's share of eight tokens' mixes and squares.
__device__ void sum_columns(const LaneToken& token, const LanePlace& place, const uint4* staged,
                            float* to) {
  float sums[4] = {}, squares = 0;
  const int second = has_second(place) ? kFirst : 0;
  const bool odd_token = place.token % 2 != 0;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    Products products{};
    multiply_step(products, token.step[step], staged + step * kStepVectors + lane_index(), second);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += products.mixes[i];
    const float even = odd_token ? products.even[1] : products.even[0];
    squares += even + (odd_token ? products.odd[3] : products.odd[2]);
  }
  // The middle parts' row is four below that of the largest.
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float middle = shuffle_xor(whole_wave(), sums[i], 4 * kStreams);
    const float mix = sums[i] + (middle + sums[2 + i]);
    if (place.token < kStreams) to[(2 * place.quarter + i) * kTokenSums + place.token] = mix;
  }
  // Of the diagonals a lane has columns 2 (l % 4) and + 1, that is, its own token or none.
  if (place.quarter == place.token / 2) to[place.token * kTokenSums + kStreams] = squares;
}

// Adds up this block's warps, for all blocks.
__device__ void join_warps(Shared& shared, int turn) {
  static_assert(kSums <= kLeastWarps * 32);
  if (thread_index() >= kSums) return;
  float total = 0;
#pragma unroll
  for (int warp = 0; warp < kMostWarps; ++warp) total += shared.of_warp[warp][thread_index()];
  const auto cluster = cooperative_groups::this_cluster();
  float* const own = &shared.of_block[turn][cluster.block_rank()][thread_index()];
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) *cluster.map_shared_rank(own, block) = total;
}

// The four gates of this lane's token, each made by one of the four lanes that have it.
__device__ void make_gates(const Params& p, const LanePlace& place, const Shared& shared, int turn,
                           float (&gates)[kStreams]) {
  const float(&sums)[kBlocks][kSums] = shared.of_block[turn];
  float product = 0, squares = 0;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    product += sums[block][place.token * kTokenSums + place.quarter];
    squares += sums[block][place.token * kTokenSums + kStreams];
  }
  const float r = rsqrt_approx(squares / static_cast<float>(kStreams * p.hidden) + p.rms_eps);
  const float gate = sigmoid(product * r * shared.scale + shared.base[place.quarter]) + p.hc_eps;
#pragma unroll
  for (int j = 0; j < kStreams; ++j) gates[j] = shuffle(whole_wave(), gate, j, kStreams);
}

__device__ void store_half(const Params& p, const LaneToken& token, const LanePlace& place,
                           std::int64_t first_token, int half, const float (&gates)[kStreams]) {
  if (first_token + place.token >= p.tokens) return;
  std::uint16_t* const out = p.out + (first_token + place.token) * p.hidden;
  StreamColumns streams;
  float sums[kBf16x8];
#pragma unroll
  for (int j = 0; j < kStreams; ++j) decode(token.step[half * kStreams + j], streams.at[j]);
  gated_sum(streams, gates, sums);
  store_vector(reinterpret_cast<std::uint32_t*>(out + column_of(place, half * kStreams)),
               round_bf16x8(sums));
}

__global__ void __launch_bounds__(32 * kMostWarps, 2) __cluster_dims__(kBlocks, 1, 1)
    hc_head_cluster_kernel(Params p) {
  __shared__ Shared shared;
  const auto cluster = cooperative_groups::this_cluster();
  const int columns = static_cast<int>(p.hidden / kBlocks), quarter = lane_index() % 4;
  const LanePlace place = {lane_index() / 4, quarter,
                           static_cast<int>(cluster.block_rank()) * columns +
                               wave_index() * kWarpColumns + quarter * kBf16x8};
  uint4* const staged = dynamic_shared<uint4>() + wave_index() * (kSteps * kStepVectors);
  const std::int64_t stride = std::int64_t{grid_size_x()} / kBlocks * kTokens;
  std::int64_t first = std::int64_t{block_index_x()} / kBlocks * kTokens;

  LaneToken token;
  for (int half = 0; half < kHalves; ++half) load_half(p, place, first, half, token);
  stage_weights(p, place, staged);
  for (int i = thread_index(); i < kMostWarps * kSums; i += block_size()) {
    shared.of_warp[i / kSums][i % kSums] = 0;
  }
  if (thread_index() < kStreams) shared.base[thread_index()] = p.base[thread_index()];
  if (thread_index() == 0) shared.scale = p.scale[0];
  cluster.sync();  // all blocks have started
  // Nothing is overwritten early. Sums of warps are written before the block's barrier and read
  // between it and the cluster's. Sums of blocks are read behind the cluster's barrier, while a
  // block that is ahead may write its next ones: these go elsewhere, by turns. The next ones but
  // one are written behind the next barrier of the cluster, where all come that have read.
  for (int turn = 0; first < p.tokens; turn ^= 1, first += stride) {
    sum_columns(token, place, staged, shared.of_warp[wave_index()]);
    __syncthreads();
    join_warps(shared, turn);
    cluster.sync();
    float gates[kStreams];
    make_gates(p, place, shared, turn, gates);
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {  // the next tokens as soon as there is room
      store_half(p, token, place, first, half, gates);
      load_half(p, place, first + stride, half, token);
    }
  }
}

#else

__global__ void hc_head_cluster_kernel(Params) {}

#endif

LaunchShape shape_for(const Params& p, std::int64_t clusters) {
  const int warps = static_cast<int>(p.hidden / (kBlocks * kWarpColumns));
  return {kBlocks * clusters, 1, 32 * warps, warps * kSteps * kStepVectors * sizeof(uint4)};
}

// How many clusters the device holds at once, with two blocks on a processor that has the shared
// memory: processors come in groups, and a cluster lies in one of them. 0 where there are none.
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
      cudaFuncSetAttribute(hc_head_cluster_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                           cudaSharedmemCarveoutMaxShared) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&clusters, hc_head_cluster_kernel, &config) == cudaSuccess) {
    return clusters;
  }
  cuda::forget_last_error();
  return 0;
}

bool suits(const Params& p) {
  constexpr int kColumns = kBlocks * kWarpColumns;
  return p.rounding == PLUMB_ROUND_ONCE && p.tokens >= kTokens && p.hidden % kColumns == 0 &&
         p.hidden >= kLeastWarps * kColumns && p.hidden <= kMostWarps * kColumns &&
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
