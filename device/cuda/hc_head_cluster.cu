// SPDX-License-Identifier: Apache-2.0
//
// hc_head with thread-block clusters: the weights (458 KB at hidden 7168) do not fit into one
// block. Eight blocks share the columns. Each keeps its eighth of the weights for all tokens, reads
// its eighth of a token once, and receives the others' sums in shared memory.
//
// Each turn handles eight tokens. Roles of the warps:
// - One copies tokens to shared memory, three turns ahead.
// - Workers sum. Worker w has columns 64 w .. + 63 of the block's, in all four streams. Lane l has
//   token l / 4, and columns 8 (l % 4) .. + 7 of each 32. Matrix units multiply (matrix_products.h)
//   with the weights as left operand: rows 0 to 3 are the largest parts of the four mixes' weights,
//   rows 4 to 7 the middle parts, rows 8 to 11 the smallest.
// - One adds up the workers' sums, exchanges totals with the other blocks and computes gates: lane
//   l has gate l % 4 of token l / 4. Meanwhile the workers sum the next turn's tokens; then they
//   apply the gates to their columns of the previous turn's tokens.
// Each warp waits only for the data that it needs (arrivals.h).
// Launch: clusters of kBlocks blocks, each with hidden / 512 workers and two more warps.
#include <cooperative_groups.h>

#include "device/cuda/arrivals.h"
#include "device/cuda/gpu_error.h"
#include "device/cuda/matrix_products.h"
#include "device/kernels/hyper_connection/hyper_connection.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_hc_head_params;

constexpr int kBlocks = 8, kLeastWorkers = 2, kMostWorkers = 14, kOtherWarps = 2, kTokens = 8;
constexpr int kWorkerColumns = 64, kHalves = 2;  // a worker's columns of a stream: 2 x 32
constexpr int kSteps = kStreams * kHalves;       // step i: half i % 2 of stream i / 2

// Tokens of a turn, [stream][token][column]. Eight lanes read at once half a 128-byte line of each
// of two tokens. The four vectors of padding put these halves into different banks.
constexpr int kRowVectors = kMostWorkers * kWorkerColumns / 8 + 4;
constexpr int kTurnVectors = kStreams * kTokens * kRowVectors, kCopiedTurns = 3;

// A lane keeps its weights of the first steps in registers, those of the others in shared memory.
// Lanes of rows 8 to 11 have two vectors per step, for the halves of their columns: words of their
// two rows alternate. Others have one vector: words of the two halves alternate.
constexpr int kHeldSteps = 4, kFirst = 32, kSecond = 16, kStepVectors = kFirst + kSecond;
constexpr int kWeightVectors = (kSteps - kHeldSteps) * kStepVectors;
constexpr std::size_t kDynamicBytes =
    (kCopiedTurns * kTurnVectors + kMostWorkers * kWeightVectors) * sizeof(uint4);

// Clusters need compute capability 9.0. For older processors the kernel is empty.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Sum 4 t + j is mix j of token t, sum 32 + t is the sum of squares of token t.
constexpr int kGates = kTokens * kStreams, kSums = kGates + kTokens;
constexpr int kTotalsBytes = kBlocks * kSums * sizeof(float);

struct Shared {
  float of_worker[2][kMostWorkers][kSums];  // [2]: alternates by turn; zero if no such worker
  float of_block[2][kBlocks][kSums];
  float4 gates[2][kTokens];
  Arrivals copied[kCopiedTurns], read[kCopiedTurns];  // one per buffer of tokens
  Arrivals summed[2], totals[2], gated[2];
};

// A worker lane's part of the work.
struct LanePlace {
  int worker, lane, token, quarter;  // index in the block; the warp; the turn; 32 columns
  int column;                        // first of the lane's columns, within the block's columns
};

// Computed again at each use, because there are no registers to keep it.
__device__ LanePlace own_place() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  const int worker = thread / 32, lane = thread % 32, quarter = lane % 4;
  return {worker, lane, lane / 4, quarter, worker * kWorkerColumns + quarter * kBf16x8};
}

__device__ int block_rank() {
  return static_cast<int>(cooperative_groups::this_cluster().block_rank());
}
__device__ int block_columns(const Params& p) { return static_cast<int>(p.hidden / kBlocks); }

// Clusters take groups of eight tokens in turn.
__device__ std::int64_t first_token(int turn) {
  const std::int64_t cluster = block_index_x() / kBlocks, clusters = grid_size_x() / kBlocks;
  return (cluster + turn * clusters) * kTokens;
}

// Role of one warp: lane l copies stream l % 4 of token l / 4. If there is no such token, the last
// token is copied again, and its result is not stored.
__device__ void copy_tokens(const Params& p, Shared& shared) {
  const int stream = lane_index() % kStreams, token = lane_index() / kStreams;
  const int bytes = block_columns(p) * static_cast<int>(sizeof *p.hidden_states);
  const std::uint16_t* const from =
      p.hidden_states + stream * p.hidden_slot_stride + block_rank() * block_columns(p);
  uint4* const to = dynamic_shared<uint4>() + (stream * kTokens + token) * kRowVectors;
  for (int turn = 0; first_token(turn) < p.tokens; ++turn) {
    const int place = place_of<kCopiedTurns>(turn);
    Arrivals& copied = shared.copied[place];
    wait_for(shared.read[place], !is_odd_phase<kCopiedTurns>(turn));  // passes the first time
    if (lane_index() == 0) expect(copied, kTokens * kStreams * bytes);
    __syncwarp();
    const std::int64_t row = min(first_token(turn) + token, p.tokens - 1);
    copy_bytes(from + row * p.hidden_token_stride, to + place * kTurnVectors, bytes, copied);
  }
}

__device__ bool has_smallest(const LanePlace& place) { return place.token < kStreams; }

// A lane's weights of a step: its two rows, for the first and the second half of its columns.
struct StepWeights {
  uint4 first, second;
};
struct LaneWeights {
  StepWeights step[kHeldSteps];
};

__device__ uint4 take_parts(float4& a, float4& b) {
  return {take_part(a.x, a.y), take_part(a.z, a.w), take_part(b.x, b.y), take_part(b.z, b.w)};
}

// Loads a step's weights of mix l / 4 % 4. Lanes below 16 get the largest and smallest parts, the
// others the middle parts and unused values.
__device__ StepWeights load_step(const Params& p, const LanePlace& place, int step) {
  const int row = kStreams * (place.token % kStreams) + step / kHalves;
  const float* const from =
      p.fn + row * p.hidden + block_rank() * block_columns(p) + place.column + step % kHalves * 32;
  float4 a = *reinterpret_cast<const float4*>(from);
  float4 b = *reinterpret_cast<const float4*>(from + 4);
  const uint4 largest = take_parts(a, b), middle = take_parts(a, b), lower = take_parts(a, b);
  const uint4 upper = has_smallest(place) ? largest : middle;
  return {{upper.x, lower.x, upper.y, lower.y}, {upper.z, lower.z, upper.w, lower.w}};
}

// Where this lane's weights in shared memory start. No other lane reads them.
__device__ uint4* staged_weights(const LanePlace& place) {
  return dynamic_shared<uint4>() + kCopiedTurns * kTurnVectors + place.worker * kWeightVectors +
         place.lane;
}
__device__ void put(const StepWeights& weights, const LanePlace& place, uint4* to) {
  const auto& [first, second] = weights;
  *to = has_smallest(place) ? first : uint4{first.x, second.x, first.z, second.z};
  if (has_smallest(place)) to[kFirst] = second;
}
__device__ StepWeights put_weights(const LanePlace& place, const uint4* from) {
  StepWeights weights = {from[0], from[has_smallest(place) ? kFirst : 0]};
  uint4& second = weights.second;
  if (!has_smallest(place)) second.x = second.y, second.z = second.w;
  return weights;
}

// Where this lane's part of the tokens starts. `turn`: number of the buffer.
__device__ const uint4* copied_tokens(const LanePlace& place, int turn) {
  return dynamic_shared<uint4>() + turn * kTurnVectors + place.token * kRowVectors +
         place.column / kBf16x8;
}
__device__ uint4 columns_of(const uint4* copied, int step) {
  return copied[step / kHalves * kTokens * kRowVectors + step % kHalves * 4];
}

// Matrix products of a lane's columns of one step. Matrix units truncate when they add. So each
// step starts from zero, and the fp32 units add up the steps.
struct Products {
  float mixes[4], squares[4];
};

__device__ Products multiply_step(const uint4& x, const StepWeights& weights) {
  const auto& [a, b] = weights;
  Products products{};
  multiply(products.mixes, a.x, a.y, a.z, a.w, x.x, x.y);
  multiply_by_itself(products.squares, x.x, x.y);
  multiply(products.mixes, b.x, b.y, b.z, b.w, x.z, x.w);
  multiply_by_itself(products.squares, x.z, x.w);
  return products;
}

// A lane's sums of tokens 2 (l % 4) and + 1, in rows l / 4 and l / 4 + 8. squares: used in the
// lanes for which token l / 4 is one of these two.
struct LaneSums {
  float mixes[4], squares;
};

// Sums over this worker's columns, for all tokens of the turn.
__device__ LaneSums sum_columns(const LanePlace& place, const LaneWeights& weights,
                                const uint4* copied) {
  const uint4* const staged = staged_weights(place);
  LaneSums sums{};
  const bool odd_token = place.token % 2 != 0;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const StepWeights of_step =
        step < kHeldSteps ? weights.step[step]
                          : put_weights(place, staged + (step - kHeldSteps) * kStepVectors);
    const Products products = multiply_step(columns_of(copied, step), of_step);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.mixes[i] += products.mixes[i];
    sums.squares += odd_token ? products.squares[1] : products.squares[0];
  }
  return sums;
}

__device__ void spread(const LaneSums& sums, const LanePlace& place, float* to) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {  // lane l + 16 has the middle parts
    const float middle = shuffle_xor(whole_wave(), sums.mixes[i], 4 * kStreams);
    const float mix = sums.mixes[i] + (middle + sums.mixes[2 + i]);
    if (has_smallest(place)) to[(2 * place.quarter + i) * kStreams + place.token] = mix;
  }
  if (place.quarter == place.token / 2) to[kGates + place.token] = sums.squares;
}

__device__ void store_columns(const uint4* copied, const float4& gates, std::uint16_t* out) {
  const float gate[kStreams] = {gates.x, gates.y, gates.z, gates.w};
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    StreamColumns streams;
    float sums[kBf16x8];
#pragma unroll
    for (int j = 0; j < kStreams; ++j) {
      const uint4 bits = columns_of(copied, j * kHalves + half);
      decode_bf16x8(Bf16x8{{bits.x, bits.y, bits.z, bits.w}}, streams.at[j]);
    }
    gated_sum(streams, gate, sums);
    store_vector(reinterpret_cast<std::uint32_t*>(out + half * 32), round_bf16x8(sums));
  }
}

// A worker's loop. While the gates of a turn are computed, the workers sum the next turn.
__device__ void work(const Params& p, Shared& shared, const LaneWeights& weights) {
  const auto sum = [&](int turn) {
    const LanePlace place = own_place();
    const int copied = place_of<kCopiedTurns>(turn), summed = place_of<2>(turn);
    wait_for(shared.copied[copied], is_odd_phase<kCopiedTurns>(turn));
    const LaneSums sums = sum_columns(place, weights, copied_tokens(place, copied));
    spread(sums, place, shared.of_worker[summed][place.worker]);
    __syncwarp();
    if (place.lane == 0) arrive(shared.summed[summed]);
  };
  const auto finish = [&](int turn) {
    const LanePlace place = own_place();
    const int copied = place_of<kCopiedTurns>(turn), gated = place_of<2>(turn);
    wait_for(shared.gated[gated], is_odd_phase<2>(turn));
    const std::int64_t token = first_token(turn) + place.token;
    if (token < p.tokens) {
      store_columns(
          copied_tokens(place, copied), shared.gates[gated][place.token],
          p.out + token * p.out_row_stride + block_rank() * block_columns(p) + place.column);
    }
    __syncwarp();
    if (place.lane == 0) arrive(shared.read[copied]);
  };
  for (int turn = 0;; ++turn) {
    const bool more = first_token(turn) < p.tokens;
    if (more) sum(turn);
    if (turn > 0) finish(turn - 1);
    if (!more) break;
  }
}

// Adds up the sums of this block's workers and sends the totals to all blocks.
__device__ void send_sums(Shared& shared, int turn) {
  const int rank = block_rank();
  for (int sum = lane_index(); sum < kSums; sum += 32) {
    float totals[2] = {};
#pragma unroll
    for (int i = 0; i < kMostWorkers; ++i) totals[i % 2] += shared.of_worker[turn][i][sum];
    const float total = totals[0] + totals[1];
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      send(total, &shared.of_block[turn][rank][sum], shared.totals[turn], block);
    }
  }
}

// This lane's gate, from the totals of all blocks.
__device__ float gate_of(const Params& p, const float (&sums)[kBlocks][kSums], float scale,
                         float base) {
  float product = 0, square = 0;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    product += sums[block][lane_index()];
    square += sums[block][kGates + lane_index() / kStreams];
  }
  const float r = rsqrt_approx(square / static_cast<float>(kStreams * p.hidden) + p.rms_eps);
  return sigmoid(product * r * scale + base) + p.hc_eps;
}

// Role of one warp. No buffer is overwritten too early: workers write sums of turn t + 2 only after
// the gates of turn t. Other blocks send totals of turn t + 2 only after they have received this
// block's totals of turn t + 1, which it sends after the gates of turn t.
__device__ void make_gates(const Params& p, Shared& shared) {
  const float scale = p.scale[0], base = p.base[lane_index() % kStreams];
  for (int i = 0; first_token(i) < p.tokens; ++i) {
    const int turn = place_of<2>(i);
    const bool odd = is_odd_phase<2>(i);
    wait_for(shared.summed[turn], odd);
    send_sums(shared, turn);
    wait_for(shared.totals[turn], odd);
    if (lane_index() == 0) expect(shared.totals[turn], kTotalsBytes);
    const float gate = gate_of(p, shared.of_block[turn], scale, base);
    reinterpret_cast<float*>(shared.gates[turn])[lane_index()] = gate;
    __syncwarp();
    if (lane_index() == 0) arrive(shared.gated[turn]);
  }
}

__device__ void start_all(Shared& shared, int workers) {
  if (thread_index() == 0) {
    for (Arrivals& copied : shared.copied) start(copied, 1);
    for (Arrivals& read : shared.read) start(read, workers);
    for (int turn = 0; turn < 2; ++turn) {
      start(shared.summed[turn], workers);
      start(shared.totals[turn], 1), expect(shared.totals[turn], kTotalsBytes);
      start(shared.gated[turn], 1);
    }
  }
  for (int i = thread_index(); i < 2 * kMostWorkers * kSums; i += block_size()) {
    shared.of_worker[0][0][i] = 0;
  }
}

__global__ void __launch_bounds__(32 * (kMostWorkers + kOtherWarps), 1)
    __cluster_dims__(kBlocks, 1, 1) hc_head_cluster_kernel(Params p) {
  __shared__ Shared shared;
  const int workers = block_columns(p) / kWorkerColumns;
  const bool works = wave_index() < workers;
  start_all(shared, workers);
  LaneWeights weights;
  if (works) {
    const LanePlace place = own_place();
#pragma unroll
    for (int i = 0; i < kHeldSteps; ++i) weights.step[i] = load_step(p, place, i);
#pragma unroll
    for (int i = kHeldSteps; i < kSteps; ++i) {
      put(load_step(p, place, i), place, staged_weights(place) + (i - kHeldSteps) * kStepVectors);
    }
  }
  cooperative_groups::this_cluster().sync();  // all blocks have started and can receive
  if (works) {
    work(p, shared, weights);
  } else if (wave_index() == workers) {
    copy_tokens(p, shared);
  } else {
    make_gates(p, shared);
  }
  // No other block accesses this block's memory any more: it has received everything.
}

#else

__global__ void hc_head_cluster_kernel(Params) {}

#endif

LaunchShape shape_for(const Params& p, std::int64_t clusters) {
  const int warps = static_cast<int>(p.hidden / (kBlocks * kWorkerColumns));
  return {kBlocks * clusters, 1, 32 * (warps + kOtherWarps), kDynamicBytes};
}

// Number of clusters that the device holds at once. A cluster lies in one group of multiprocessors.
// 0: no clusters, or not with this much shared memory.
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
  constexpr int kColumns = kBlocks * kWorkerColumns;
  return p.rounding == PLUMB_ROUND_ONCE && p.tokens >= kTokens && p.hidden % kColumns == 0 &&
         p.hidden >= kLeastWorkers * kColumns && p.hidden <= kMostWorkers * kColumns &&
         are_whole({p.hidden, p.hidden_token_stride, p.hidden_slot_stride, p.out_row_stride}) &&
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
