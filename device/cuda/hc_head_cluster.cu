// SPDX-License-Identifier: Apache-2.0
//
// hc_head for processors with thread-block clusters. One block cannot hold the weights (458 KB at
// hidden 7168), and reading them again for every few tokens costs more than the tokens do. Eight
// blocks share the columns: each holds its eighth of the weights for all tokens, sees its eighth of
// a token once, keeps it in registers, and gets the others' sums into its shared memory.
//
// Warp w has columns 64 w .. + 63 of the block's, of all four streams, of sixteen tokens at a time;
// lane l has tokens l / 4 and l / 4 + 8, and of each 32 columns 8 (l % 4) .. + 7. Products go
// through matrix units (matrix_products.h) with the weights on the left: rows 0 to 3 are the
// largest parts of the four mixes, 4 to 7 the middle ones, 8 to 11 the smallest. Gates apply to
// what the lane has, so that the gated sum needs nobody else. While sixteen tokens are in registers
// the next ones are copied to shared memory, each piece to where the lane that copies it is to read
// it. Launch: clusters of kBlocks blocks, hidden / 512 warps.
#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include <utility>

#include "device/cuda/gpu_error.h"
#include "device/cuda/matrix_products.h"
#include "device/kernels/hyper_connection.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_hc_head_params;

constexpr int kBlocks = 8, kLeastWarps = 2, kMostWarps = 14;
constexpr int kGroupTokens = 8, kGroups = 2, kTokens = kGroups * kGroupTokens;
constexpr int kWarpColumns = 64, kHalves = 2;  // of 32 columns, of one stream
constexpr int kSteps = kHalves * kStreams;     // half i / 4 of stream i % 4

// A warp's weights of one step as lanes take them: two vectors of each of the lanes with rows 8 to
// 11, the halves of their columns with the two rows in turn; one of the others, the halves in turn.
constexpr int kFirst = 32, kSecond = 16, kStepVectors = kFirst + kSecond;

// What a warp has of the dynamic shared memory: its weights, and its copied tokens [piece][lane].
constexpr int kWeightVectors = kSteps * kStepVectors, kPieces = kGroups * kSteps;
constexpr int kWarpVectors = kWeightVectors + kPieces * 32;

// Blocks of one cluster need a processor that has them; for others the kernel is empty.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Sums are kept in pairs, of tokens t and t + 8: pair 4 t + j is mix j, pair 32 + t the squares.
constexpr int kSquares = kGroupTokens * kStreams, kPairs = kSquares + kGroupTokens;

struct Shared {
  float2 of_warp[kMostWarps][kPairs];   // zeros of warps that the block lacks
  float2 of_block[2][kBlocks][kPairs];  // which all blocks write to; by turns
};

// What a lane holds of its tokens.
struct LaneTokens {
  uint4 step[kGroups][kSteps];
};

// Which part of the work is a lane's.
struct LanePlace {
  int token, quarter;  // of eight; of 32 columns
  int first_column;
};

__device__ std::int64_t column_of(const LanePlace& place, int step) {
  return place.first_column + step / kStreams * 32;
}

// Starts to copy. Behind the last token: that one again, and not stored.
__device__ void copy_tokens(const Params& p, const LanePlace& place, std::int64_t first_token,
                            uint4* to) {
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const std::int64_t token = min(first_token + group * kGroupTokens + place.token, p.tokens - 1);
    const std::uint16_t* const from = p.hidden_states + token * p.hidden_token_stride;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      __pipeline_memcpy_async(
          to + (group * kSteps + step) * 32,
          from + step % kStreams * p.hidden_slot_stride + column_of(place, step), sizeof(uint4));
    }
  }
  __pipeline_commit();
}

// What this lane has copied.
__device__ LaneTokens own_tokens(const uint4* copied) {
  __pipeline_wait_prior(0);
  LaneTokens tokens;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) tokens.step[i / kSteps][i % kSteps] = copied[i * 32];
  return tokens;
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
    uint4* const to = staged + step * kStepVectors;
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

// What matrix units make of a lane's columns of eight tokens in one step. They truncate where they
// add: each chain starts from zero, and the fp32 units add up the steps.
struct Products {
  float mixes[4], even[4], odd[4];
};

__device__ void multiply_step(Products& products, const uint4& x, const uint4& a, const uint4& b) {
  multiply(products.mixes, a.x, a.y, a.z, a.w, x.x, x.y);
  // Squares: the diagonals of the upper and of the lower eight rows by eight columns.
  multiply(products.even, x.x, x.y, x.x);
  multiply(products.odd, x.x, x.y, x.y);
  multiply(products.mixes, b.x, b.y, b.z, b.w, x.z, x.w);
  multiply(products.even, x.z, x.w, x.z);
  multiply(products.odd, x.z, x.w, x.w);
}

// A lane's sums, of each eight tokens.
struct LaneSums {
  float mixes[kGroups][4], squares[kGroups];
};

// The warp's share of the tokens' mixes and squares. Lanes without rows 8 to 11 take their vector
// twice, for the second half of their columns; rows 12 to 15 are anything.
__device__ LaneSums sum_columns(const LaneTokens& tokens, const LanePlace& place,
                                const uint4* staged) {
  LaneSums sums{};
  const int second = has_second(place) ? kFirst : 0;
  const bool odd_token = place.token % 2 != 0;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const uint4 a = staged[step * kStepVectors];
    uint4 b = staged[step * kStepVectors + second];
    if (second == 0) b.x = b.y, b.z = b.w;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      Products products{};
      multiply_step(products, tokens.step[group][step], a, b);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.mixes[group][i] += products.mixes[i];
      const float even = odd_token ? products.even[1] : products.even[0];
      sums.squares[group] += even + (odd_token ? products.odd[3] : products.odd[2]);
    }
  }
  return sums;
}

// A lane has rows l / 4 and l / 4 + 8 of tokens 2 (l % 4) and + 1 of each eight.
__device__ void spread(const LaneSums& sums, const LanePlace& place, float2* to) {
  const auto mix = [&](int group, int i) {  // the middle parts' row is four below the largest's
    const float(&own)[4] = sums.mixes[group];
    const float middle = shuffle_xor(whole_wave(), own[i], 4 * kStreams);
    return own[i] + (middle + own[2 + i]);
  };
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float2 pair = {mix(0, i), mix(1, i)};
    if (has_second(place)) to[(2 * place.quarter + i) * kStreams + place.token] = pair;
  }
  // Of the diagonals these columns are the lane's own token or none.
  if (place.quarter == place.token / 2) {
    to[kSquares + place.token] = {sums.squares[0], sums.squares[1]};
  }
}

// Adds up this block's warps, for all blocks: a thread one pair, for one block at a time.
__device__ void join_warps(Shared& shared, int turn) {
  const auto cluster = cooperative_groups::this_cluster();
  float2(&own)[kPairs] = shared.of_block[turn][cluster.block_rank()];
  for (int i = thread_index(); i < kBlocks * kPairs; i += block_size()) {
    const int block = i / kPairs, pair = i % kPairs;
    float2 totals[2] = {};
#pragma unroll
    for (int warp = 0; warp < kMostWarps; ++warp) {
      const float2 sums = shared.of_warp[warp][pair];
      totals[warp % 2].x += sums.x;
      totals[warp % 2].y += sums.y;
    }
    *cluster.map_shared_rank(&own[pair], block) = {totals[0].x + totals[1].x,
                                                   totals[0].y + totals[1].y};
  }
}

// Mix l % 4 becomes a gate.
struct MixOfLane {
  float scale, base;
};

// The four gates of this lane's tokens, each made by one of the four lanes that have them.
__device__ void make_gates(const Params& p, const LanePlace& place, const MixOfLane& mix,
                           const float2 (&sums)[kBlocks][kPairs],
                           float (&gates)[kGroups][kStreams]) {
  float products[kGroups] = {}, squares[kGroups] = {};
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    const float2 product = sums[block][lane_index()];
    const float2 square = sums[block][kSquares + place.token];
    products[0] += product.x, products[1] += product.y;
    squares[0] += square.x, squares[1] += square.y;
  }
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const float mean = squares[group] / static_cast<float>(kStreams * p.hidden);
    const float r = rsqrt_approx(mean + p.rms_eps);
    const float gate = sigmoid(products[group] * r * mix.scale + mix.base) + p.hc_eps;
#pragma unroll
    for (int j = 0; j < kStreams; ++j) gates[group][j] = shuffle(whole_wave(), gate, j, kStreams);
  }
}

// `token`: of all.
__device__ void store_token(const Params& p, const uint4 (&steps)[kSteps], const LanePlace& place,
                            std::int64_t token, const float (&gates)[kStreams]) {
  if (token >= p.tokens) return;
  std::uint16_t* const out = p.out + token * p.hidden;
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    StreamColumns streams;
    float sums[kBf16x8];
#pragma unroll
    for (int j = 0; j < kStreams; ++j) decode(steps[half * kStreams + j], streams.at[j]);
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
  const MixOfLane mix = {p.scale[0], p.base[quarter]};
  uint4* const staged = dynamic_shared<uint4>() + wave_index() * kWarpVectors + lane_index();
  uint4* const copied = staged + kWeightVectors;
  const std::int64_t stride = std::int64_t{grid_size_x()} / kBlocks * kTokens;
  std::int64_t first = std::int64_t{block_index_x()} / kBlocks * kTokens;

  copy_tokens(p, place, first, copied);
  stage_weights(p, place, staged);
  for (int i = thread_index(); i < kMostWarps * kPairs; i += block_size()) {
    shared.of_warp[i / kPairs][i % kPairs] = {};
  }
  cluster.sync();  // all blocks have started
  // Nothing is overwritten early. A lane reads its copies before the block's barrier, and the next
  // ones start behind it. Sums of warps are written before that barrier and read between it and the
  // cluster's. Sums of blocks are read behind the cluster's barrier, while a block that is ahead
  // may write its next ones: these go elsewhere, by turns. The next ones but one are written behind
  // the next barrier of the cluster, where all come that have read.
  for (int turn = 0; first < p.tokens; turn ^= 1, first += stride) {
    const LaneTokens tokens = own_tokens(copied);
    spread(sum_columns(tokens, place, staged), place, shared.of_warp[wave_index()]);
    __syncthreads();
    join_warps(shared, turn);
    auto arrival = cluster.barrier_arrive();
    if (first + stride < p.tokens) copy_tokens(p, place, first + stride, copied);
    cluster.barrier_wait(std::move(arrival));
    float gates[kGroups][kStreams];
    make_gates(p, place, mix, shared.of_block[turn], gates);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      store_token(p, tokens.step[group], place, first + group * kGroupTokens + place.token,
                  gates[group]);
    }
  }
}

#else

__global__ void hc_head_cluster_kernel(Params) {}

#endif

LaunchShape shape_for(const Params& p, std::int64_t clusters) {
  const int warps = static_cast<int>(p.hidden / (kBlocks * kWarpColumns));
  return {kBlocks * clusters, 1, 32 * warps, warps * kWarpVectors * sizeof(uint4)};
}

// How many clusters the device holds at once: processors come in groups, and a cluster lies in one
// of them. 0 where there are none, or not with this much shared memory.
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
