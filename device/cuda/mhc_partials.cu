// SPDX-License-Identifier: Apache-2.0
//
// The first stage of mhc_pre and its kin (device/kernels/mhc_mixing.h) on matrix units, whose
// operands are bf16 and whose sums are fp32. The streams are bf16 as they are; a weight is the sum
// of three bf16 numbers, exactly, so that every product is exact and no operand is rounded. A
// matrix unit truncates what it adds up: products with the largest parts go through it 16 at a
// time, and the sums of those are added by the fp32 units, which round to nearest.
//
// Block (tile, split): 64 tokens and one part of K, 256 columns of it at a time. Warp w takes
// tokens 32 (w % 2) .. + 31 and columns 32 (w / 2) .. + 31 of each 256; eight warps' sums are
// joined at the end, in order. A product of 16 columns needs them in a certain order over the
// lanes; as any order will do if weights have the same, lane l takes eight neighbouring columns, 8
// (l % 4) .. + 7 of its warp's, of rows l / 4, + 8, + 16, + 24: one access each.
#include "device/kernels/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kThreads = 512, kTokens = 64, kStep = 256, kWarpTokens = 32, kWarpColumns = 32;
constexpr int kWarpsOfStep = kStep / kWarpColumns, kRows = 4;  // rows of a lane
constexpr int kParts = 3, kTiles = kMixes / 8;                 // of a weight; of eight mixes
constexpr std::int64_t kLeastHidden = 1024;

// Weights of one step as lanes take them: [warp][tile of mixes][part][lane], eight columns each.
constexpr int kStagedVectors = kWarpsOfStep * kTiles * kParts * 32;
constexpr int kSums = kMixes + 1;  // of a token: 24 mixes and the squares
constexpr std::size_t kSharedBytes = 2 * kStagedVectors * sizeof(uint4);
static_assert(kWarpsOfStep * kTokens * kSums * sizeof(float) <= kSharedBytes);
static_assert(kThreads / 32 == kWarpsOfStep * kTokens / kWarpTokens);

struct LaneRows {
  uint4 row[kRows];
};

// Where the columns of a step start in a row of streams; a step lies in one of them.
__device__ std::int64_t start_of(const Mixing& p, std::int64_t k) {
  const auto slot = static_cast<unsigned>(k) / static_cast<unsigned>(p.hidden);
  return slot * p.slot_stride + (k - slot * p.hidden);
}

// `from`: where the tile starts. `rows`: how far from there this lane's are.
__device__ LaneRows load_rows(const std::uint16_t* from, const unsigned (&rows)[kRows]) {
  LaneRows bits;
#pragma unroll
  for (int i = 0; i < kRows; ++i) bits.row[i] = *reinterpret_cast<const uint4*>(from + rows[i]);
  return bits;
}

// Thread t: columns 4 (t % 64) .. + 3 of mix t / 64 of each tile.
struct ThreadWeights {
  float4 tile[kTiles];
};
static_assert(kThreads == 8 * kStep / 4);

// `from`: where this thread's columns of the step and of its mix in the first tile are.
__device__ ThreadWeights load_weights(const float* from, std::int64_t depth) {
  ThreadWeights weights;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    weights.tile[i] = *reinterpret_cast<const float4*>(from + i * 8 * depth);
  }
  return weights;
}

// Takes its nearest pair of bf16 numbers off two numbers; what is left is exact.
__device__ unsigned take_part(float& low, float& high) {
  const unsigned pair = native_bf16_pair(low, high);
  low -= __uint_as_float(pair << 16);
  high -= __uint_as_float(pair & 0xffff0000u);
  return pair;
}

__device__ void stage(const ThreadWeights& weights, uint4* staged) {
  const int mix = threadIdx.x / (kStep / 4), four = threadIdx.x % (kStep / 4);
  uint4* const vectors = staged + four / 8 * (kTiles * kParts * 32) + mix * 4 + four % 8 / 2;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    float4 left = weights.tile[i];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const uint2 pairs = {take_part(left.x, left.y), take_part(left.z, left.w)};
      reinterpret_cast<uint2*>(vectors + (i * kParts + part) * 32)[four % 2] = pairs;
    }
  }
}

struct Sums {
  float at[4];
};

// sums += 16 rows by 16 columns, times 16 columns by 8 mixes.
__device__ void multiply(Sums& sums, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                         unsigned b0, unsigned b1) {
  float(&d)[4] = sums.at;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ void add(Sums& to, const Sums& what) {
#pragma unroll
  for (int i = 0; i < 4; ++i) to.at[i] += what.at[i];
}

// 16 rows, of which this lane has two, by 32 columns, times one part of eight mixes.
__device__ void multiply_part(Sums& sums, const uint4& a, const uint4& b, const uint4& weights) {
  multiply(sums, a.x, b.x, a.y, b.y, weights.x, weights.y);
  multiply(sums, a.z, b.z, a.w, b.w, weights.z, weights.w);
}

// The same with the largest part: its 16 columns at a time.
__device__ void add_largest(Sums& sums, const uint4& a, const uint4& b, const uint4& weights) {
  Sums first{}, second{};
  multiply(first, a.x, b.x, a.y, b.y, weights.x, weights.y);
  multiply(second, a.z, b.z, a.w, b.w, weights.z, weights.w);
  add(sums, first);
  add(sums, second);
}

__device__ float add_squares(float sum, const uint4& bits) {
  const unsigned pairs[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (const unsigned pair : pairs) {
    const float low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000u);
    sum = fmaf(low, low, sum);
    sum = fmaf(high, high, sum);
  }
  return sum;
}

// What a lane adds up: two tiles of 16 rows by three tiles of eight mixes, and its rows' squares.
struct LaneSums {
  Sums mixes[kRows / 2][kTiles];
  float squares[kRows];
};

__device__ void add_step(LaneSums& sums, const LaneRows& rows, const uint4* staged) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) sums.squares[i] = add_squares(sums.squares[i], rows.row[i]);
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    Sums small[kRows / 2] = {};
#pragma unroll
    for (int part = kParts - 1; part >= 0; --part) {
      const uint4 weights = staged[(tile * kParts + part) * 32];
#pragma unroll
      for (int m = 0; m < kRows / 2; ++m) {
        const uint4 &a = rows.row[2 * m], &b = rows.row[2 * m + 1];
        if (part > 0) {
          multiply_part(small[m], a, b, weights);
        } else {
          add_largest(sums.mixes[m][tile], a, b, weights);
          add(sums.mixes[m][tile], small[m]);
        }
      }
    }
  }
}

// Each warp's sums into shared memory, [warp of the step][token][mix or squares].
__device__ void spread(const LaneSums& sums, int warp, int first_row, float* to) {
  const int row = first_row + lane_index() / 4, column = lane_index() % 4 * 2;
  float* const own = to + (warp * kTokens + row) * kSums;
#pragma unroll
  for (int m = 0; m < kRows / 2; ++m) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        own[(16 * m + i / 2 * 8) * kSums + tile * 8 + column + i % 2] = sums.mixes[m][tile].at[i];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float squares = sums.squares[i];
    squares += shuffle_xor(all_lanes(), squares, 1, 4);
    squares += shuffle_xor(all_lanes(), squares, 2, 4);
    if (lane_index() % 4 == 0) own[8 * i * kSums + kMixes] = squares;
  }
}

__device__ void store_sums(const Mixing& p, std::int64_t first_token, int split,
                           const float* spread_sums) {
  for (int i = threadIdx.x; i < kTokens * kSums; i += kThreads) {
    const std::int64_t token = first_token + i / kSums;
    if (token >= p.tokens) break;
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarpsOfStep; ++warp) sum += spread_sums[warp * kTokens * kSums + i];
    const std::int64_t row = split * p.tokens + token;
    const int mix = i % kSums;
    (mix < kMixes ? p.partial_mixes[row * kMixes + mix] : p.partial_square_sums[row]) = sum;
  }
}

__global__ void __launch_bounds__(kThreads, 1) mhc_matrix_partials(Mixing p) {
  uint4* const staged = dynamic_shared<uint4>();
  const int warp = wave_index() / 2, first_row = wave_index() % 2 * kWarpTokens;
  const int split = block_index_y();
  const std::int64_t first_token = std::int64_t{block_index_x()} * kTokens;
  const std::uint16_t* const tile = p.streams + first_token * p.token_stride;
  const auto last_row = static_cast<int>(min(std::int64_t{kTokens}, p.tokens - first_token)) - 1;
  unsigned rows[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {  // rows behind the last token repeat it, and are not stored
    const int row = min(first_row + lane_index() / 4 + 8 * i, last_row);
    rows[i] =
        row * static_cast<unsigned>(p.token_stride) + warp * kWarpColumns + lane_index() % 4 * 8;
  }
  const std::int64_t begin = part_begin(p, split);
  const int steps = static_cast<int>((part_begin(p, split + 1) - begin) / kStep);
  const auto clamped = [&](int step) { return min(step, steps - 1) * kStep; };

  const float* const own_weights =
      p.fn + begin + threadIdx.x / (kStep / 4) * p.depth + threadIdx.x % (kStep / 4) * 4;
  LaneSums sums{};
  LaneRows now = load_rows(tile + start_of(p, begin), rows);
  LaneRows next = load_rows(tile + start_of(p, begin + clamped(1)), rows);
  stage(load_weights(own_weights, p.depth), staged);
  ThreadWeights weights = load_weights(own_weights + clamped(1), p.depth);
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const LaneRows after_next = load_rows(tile + start_of(p, begin + clamped(step + 2)), rows);
    add_step(sums, now,
             staged + step % 2 * kStagedVectors + warp * kTiles * kParts * 32 + lane_index());
    stage(weights, staged + (step + 1) % 2 * kStagedVectors);
    weights = load_weights(own_weights + clamped(step + 2), p.depth);
    now = next;
    next = after_next;
    __syncthreads();
  }
  float* const spread_sums = dynamic_shared<float>();
  spread(sums, warp, first_row, spread_sums);
  __syncthreads();
  store_sums(p, first_token, split, spread_sums);
}

bool suits(const Mixing& m) {
  return m.tokens >= kTokens / 2 && m.hidden >= kLeastHidden && m.hidden % kStep == 0 &&
         m.depth % (std::int64_t{kStep} * m.splits) == 0 && m.token_stride < 1 << 25 &&
         are_whole(m.hidden, m.token_stride, m.slot_stride) && start_whole(m.streams, m.fn);
}

}  // namespace

plumb_status launch_matrix_partials(const Mixing& m, plumb_stream stream) {
  if (!suits(m)) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{(m.tokens + kTokens - 1) / kTokens, m.splits, kThreads, kSharedBytes};
  return PLUMB_LAUNCH(mhc_matrix_partials, shape, stream, m);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
