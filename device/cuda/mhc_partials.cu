// SPDX-License-Identifier: Apache-2.0
//
// The first stage of mhc_pre and its kin (device/kernels/mhc_mixing.h) on matrix units
// (matrix_products.h). A matrix unit truncates what it adds up: products with the largest parts go
// through it 16 at a time, and the sums of those are added by the fp32 units, which round to
// nearest.
//
// Block (tile, split): 64 tokens and one part of K, 256 columns of it at a time. Warp w takes
// tokens 32 (w % 2) .. + 31 and columns 32 (w / 2) .. + 31 of each 256; eight warps' sums are
// joined at the end, in order. The weights stand on the left, 16 rows of them in a tile; on the
// right eight tokens, of which lane l has token l / 4. A product of 16 columns needs them in a
// certain order over the lanes; as any order will do if weights have the same, lane l takes eight
// neighbouring columns, 8 (l % 4) .. + 7 of its warp's, of tokens l / 4, + 8, + 16, + 24: one
// access each, whose words are operands as they come.
#include "device/cuda/matrix_products.h"
#include "device/kernels/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kThreads = 512, kTokens = 64, kStep = 256, kWarpTokens = 32, kWarpColumns = 32;
constexpr int kWarpsOfStep = kStep / kWarpColumns, kRows = 4;  // tokens of a lane
constexpr std::int64_t kLeastHidden = 1024;

// Tiles of weights: the parts of mixes 0 to 15; the largest and the middle parts of mixes 16 to 23;
// their smallest parts, and zeros.
enum Tile { kLargest, kMiddle, kSmallest, kLastMixes, kLastSmallest, kTiles };

// Weights of one step as lanes take them: [warp][tile][half of 32 columns][lane], two rows by four
// columns each. Halves lie apart such that the threads that write them do not share banks.
constexpr int kHalfVectors = 32 + 4, kTileVectors = 2 * kHalfVectors;
constexpr int kStagedVectors = kWarpsOfStep * kTiles * kTileVectors;
constexpr int kSums = kMixes + 1;  // of a token: 24 mixes and the squares
constexpr std::size_t kSharedBytes = 2 * kStagedVectors * sizeof(uint4);
static_assert(kWarpsOfStep * kTokens * kSums * sizeof(float) <= kSharedBytes);
static_assert(kThreads / 32 == kWarpsOfStep * kTokens / kWarpTokens);

struct LaneRows {
  uint4 row[kRows];
};

// Where the columns of a step start in a token's streams, and how many steps this stream has left.
struct StepPlace {
  std::int64_t at;
  int left;
};

__device__ StepPlace place_of_step(const Mixing& p, std::int64_t k) {
  const std::int64_t slot = k / p.hidden, column = k - slot * p.hidden;
  return {slot * p.slot_stride + column, static_cast<int>(p.hidden - column) / kStep};
}

__device__ void advance(const Mixing& p, StepPlace& place) {
  place.at += kStep;
  if (--place.left > 0) return;
  place.at += p.slot_stride - p.hidden;
  place.left = static_cast<int>(p.hidden) / kStep;
}

// `from`: where the tile starts. `rows`: how far from there this lane's are.
__device__ LaneRows load_rows(const std::uint16_t* from, const unsigned (&rows)[kRows]) {
  LaneRows bits;
#pragma unroll
  for (int i = 0; i < kRows; ++i) bits.row[i] = *reinterpret_cast<const uint4*>(from + rows[i]);
  return bits;
}

// Thread t: columns 4 (t % 64) .. + 3 of mixes t / 64, + 8, + 16.
constexpr int kThreadMixes = kMixes / 8;
struct ThreadWeights {
  float4 mix[kThreadMixes];
};
static_assert(kThreads == 8 * kStep / 4);

// `from`: where this thread's columns of the step and of its first mix are.
__device__ ThreadWeights load_weights(const float* from, std::int64_t depth) {
  ThreadWeights weights;
#pragma unroll
  for (int i = 0; i < kThreadMixes; ++i) {
    weights.mix[i] = *reinterpret_cast<const float4*>(from + i * 8 * depth);
  }
  return weights;
}

// Where this thread's weights go: lane 4 (t / 64) + t % 8 / 2 of warp t % 64 / 8, half t % 2.
__device__ int staged_place() {
  const int mix = threadIdx.x / (kStep / 4), four = threadIdx.x % (kStep / 4);
  return four / 8 * (kTiles * kTileVectors) + four % 2 * kHalfVectors + mix * 4 + four % 8 / 2;
}

// Two rows, a and b, of two pairs of columns.
__device__ uint4 rows_of(const uint2& a, const uint2& b) { return {a.x, b.x, a.y, b.y}; }

__device__ void stage(const ThreadWeights& weights, uint4* to) {
  uint2 parts[3][kThreadMixes];
#pragma unroll
  for (int i = 0; i < kThreadMixes; ++i) {
    float4 left = weights.mix[i];
#pragma unroll
    for (auto& part : parts) {
      part[i] = {take_part(left.x, left.y), take_part(left.z, left.w)};
    }
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    to[(kLargest + i) * kTileVectors] = rows_of(parts[i][0], parts[i][1]);
  }
  to[kLastMixes * kTileVectors] = rows_of(parts[0][2], parts[1][2]);
  to[kLastSmallest * kTileVectors] = rows_of(parts[2][2], {});
}

struct Sums {
  float at[4];
};

// sums += the weights of half a warp's columns, times those columns of eight tokens.
__device__ void multiply_half(Sums& sums, const uint4& weights, const uint4& x, int half) {
  const uint4& a = weights;
  if (half == 0) return multiply(sums.at, a.x, a.y, a.z, a.w, x.x, x.y);
  multiply(sums.at, a.x, a.y, a.z, a.w, x.z, x.w);
}

__device__ void add(Sums& to, const Sums& what) {
#pragma unroll
  for (int i = 0; i < 4; ++i) to.at[i] += what.at[i];
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

// What a lane adds up for each eight tokens: mixes 0 to 15, the tile of the last mixes, and the
// squares of its own token.
struct LaneSums {
  Sums mixes[kRows], last[kRows];
  float squares[kRows];
};

// `staged`: this lane's, of its warp.
__device__ void add_step(LaneSums& sums, const LaneRows& rows, const uint4* staged) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) sums.squares[i] = add_squares(sums.squares[i], rows.row[i]);
  const auto each_half = [&](Tile tile, const auto& visit) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 weights = staged[tile * kTileVectors + half * kHalfVectors];
#pragma unroll
      for (int i = 0; i < kRows; ++i) visit(weights, half, i);
    }
  };
  Sums small[kRows] = {}, last_small[kRows] = {};
  const auto add_small = [&](const uint4& weights, int half, int i) {
    multiply_half(small[i], weights, rows.row[i], half);
  };
  each_half(kSmallest, add_small);
  each_half(kMiddle, add_small);
  each_half(kLastSmallest, [&](const uint4& weights, int half, int i) {
    multiply_half(last_small[i], weights, rows.row[i], half);
  });
  each_half(kLargest, [&](const uint4& weights, int half, int i) {
    Sums products{};
    multiply_half(products, weights, rows.row[i], half);
    add(sums.mixes[i], products);
  });
  each_half(kLastMixes, [&](const uint4& weights, int half, int i) {
    Sums products{};
    multiply_half(products, weights, rows.row[i], half);
    add(sums.last[i], products);
  });
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    add(sums.mixes[i], small[i]);
    sums.last[i].at[0] += last_small[i].at[0];
    sums.last[i].at[1] += last_small[i].at[1];
  }
}

// Each warp's sums into shared memory, [warp of the step][token][mix or squares]. A lane has rows
// l / 4 and l / 4 + 8 of each tile, of tokens 2 (l % 4) and + 1 of each eight.
__device__ void spread(const LaneSums& sums, int warp, int first_row, float* to) {
  const int mix = lane_index() / 4, token = lane_index() % 4 * 2;
  float* const own = to + (warp * kTokens + first_row) * kSums;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float* const eight = own + 8 * i * kSums;
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      float* const mixes = eight + (token + t) * kSums;
      mixes[mix] = sums.mixes[i].at[t];
      mixes[mix + 8] = sums.mixes[i].at[2 + t];
      mixes[mix + 16] = sums.last[i].at[t] + sums.last[i].at[2 + t];
    }
    float squares = sums.squares[i];
    squares += shuffle_xor(whole_wave(), squares, 1, 4);
    squares += shuffle_xor(whole_wave(), squares, 2, 4);
    if (token == 0) eight[mix * kSums + kMixes] = squares;
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
  uint4* const to = staged + staged_place();
  const uint4* const from = staged + warp * (kTiles * kTileVectors) + lane_index();
  LaneSums sums{};
  StepPlace place = place_of_step(p, begin);
  LaneRows even = load_rows(tile + place.at, rows), odd = even;
  if (steps > 1) advance(p, place), odd = load_rows(tile + place.at, rows);
  stage(load_weights(own_weights, p.depth), to);
  ThreadWeights weights = load_weights(own_weights + clamped(1), p.depth);
  __syncthreads();
  // The tokens of the next step but one take the place of those that have been multiplied.
  const auto work = [&](LaneRows& bits, int step, int turn) {
    add_step(sums, bits, from + turn * kStagedVectors);
    if (step + 2 < steps) advance(p, place), bits = load_rows(tile + place.at, rows);
    stage(weights, to + (turn ^ 1) * kStagedVectors);
    weights = load_weights(own_weights + clamped(step + 2), p.depth);
    __syncthreads();
  };
  for (int step = 0; step < steps; step += 2) {
    work(even, step, 0);
    if (step + 1 < steps) work(odd, step + 1, 1);
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
