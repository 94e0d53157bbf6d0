// SPDX-License-Identifier: Apache-2.0
//
// The first stage of mhc_pre and its kin (device/kernels/mhc_mixing.h) on matrix units
// (matrix_products.h). A matrix unit truncates what it adds up. It adds up 32 columns at a time,
// from zero and in two halves, the products with the smallest parts of the weights first: only the
// last two of a chain truncate at the scale of the result. The fp32 units, which round to nearest,
// add up the results. Squares are such products, of tokens by themselves.
//
// Block (tile, split): 64 tokens and one part of K, 256 columns of it at a time. Warp w takes
// tokens 32 (w % 2) .. + 31 and columns 32 (w / 2) .. + 31 of each 256; eight warps' sums are
// joined at the end, in order. The weights stand on the left, 16 rows of them in a tile; on the
// right eight tokens, of which lane l has token l / 4. A product of 16 columns needs them in a
// certain order over the lanes; as any order will do if weights have the same, lane l takes eight
// neighbouring columns, 8 (l % 4) .. + 7 of its warp's, of tokens l / 4, + 8, + 16, + 24: one
// access each, whose words are operands as they come. Tokens are copied to shared memory two steps
// ahead, each to where the lane that copies it is to read it: nobody waits for another lane's.
#include <cuda_pipeline_primitives.h>

#include "device/cuda/matrix_products.h"
#include "device/kernels/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kThreads = 512, kTokens = 64, kStep = 256, kWarpTokens = 32, kWarpColumns = 32;
constexpr int kWarpsOfStep = kStep / kWarpColumns, kRows = 4;  // tokens of a lane
constexpr std::int64_t kLeastHidden = 1024;

// Tiles of weights: the parts of mixes 0 to 15; the largest and the middle parts of mixes 16 to 23;
// their smallest parts, eight rows, below which the tokens themselves are to stand.
enum Tile { kLargest, kMiddle, kSmallest, kLastMixes, kLastSmallest };

// Weights of one step as lanes take them: [warp][tile][half of 32 columns][lane], two rows by four
// columns each; of the last tile [lane][half], one row. Halves lie apart, and warps too, such that
// the threads that write them do not share banks.
constexpr int kHalfVectors = 32 + 4, kTileVectors = 2 * kHalfVectors;
constexpr int kWarpVectors = kLastSmallest * kTileVectors + 32 + 4;
constexpr int kStagedVectors = kWarpsOfStep * kWarpVectors;
// Two steps are multiplied while the weights of two are staged and the tokens of two are copied.
constexpr int kPair = 2, kPairVectors = kPair * kStagedVectors;
constexpr int kCopiedVectors = kRows * kThreads;  // of a step's tokens: [row of a lane][thread]
constexpr int kSums = kMixes + 1;                 // of a token: 24 mixes and the squares
constexpr std::size_t kSharedBytes = (2 * kPairVectors + kPair * kCopiedVectors) * sizeof(uint4);
static_assert(kWarpsOfStep * kTokens * kSums * sizeof(float) <= kSharedBytes);
static_assert(kThreads / 32 == kWarpsOfStep * kTokens / kWarpTokens);

// Unsigned: cheap enough to be made again where registers are short.
__device__ unsigned own_lane() { return threadIdx.x % 32; }
__device__ unsigned own_columns() { return threadIdx.x / 64; }  // which 32 of a step
__device__ unsigned first_row() { return threadIdx.x / 32 % 2 * kWarpTokens; }

struct LaneRows {
  uint4 row[kRows];
};

// Where this lane's columns of a step start, of the first of its tokens, and how many steps this
// stream has left.
struct StepPlace {
  const std::uint16_t* at;
  int left;
};

__device__ StepPlace place_of_step(const Mixing& p, std::int64_t first_token, std::int64_t k) {
  int slot = 0;
  for (int i = 1; i < kStreams; ++i) slot += k >= i * p.hidden;
  const std::int64_t column = k - slot * p.hidden;
  const std::int64_t token = first_token + first_row() + own_lane() / 4;
  const std::uint16_t* const at = p.streams + token * p.token_stride + slot * p.slot_stride;
  return {at + column + own_columns() * kWarpColumns + own_lane() % 4 * 8,
          static_cast<int>(p.hidden - column) / kStep};
}

__device__ void advance(const Mixing& p, StepPlace& place) {
  const bool ends = --place.left == 0;
  place.at += ends ? p.slot_stride - p.hidden + kStep : kStep;
  if (ends) place.left = static_cast<int>(p.hidden) / kStep;
}

// Starts to copy this lane's part of a step. `rows`: how many of its rows are tokens; what memory
// holds for others is multiplied too, and not stored.
__device__ void copy_rows(const Mixing& p, const std::uint16_t* from, int rows, uint4* to) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (i < rows) __pipeline_memcpy_async(to + i * kThreads, from, sizeof(uint4));
    from += 8 * p.token_stride;
  }
}

// What has been copied.
__device__ LaneRows own_rows(const uint4* copied) {
  LaneRows bits;
#pragma unroll
  for (int i = 0; i < kRows; ++i) bits.row[i] = copied[i * kThreads];
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
struct StagedPlace {
  unsigned tiles, last_smallest;  // in vectors; in halves of them
};

__device__ StagedPlace staged_place() {
  const unsigned mix = threadIdx.x / (kStep / 4), four = threadIdx.x % (kStep / 4), half = four % 2;
  const unsigned warp = four / 8 * kWarpVectors, lane = mix * 4 + four % 8 / 2;
  return {warp + half * kHalfVectors + lane,
          2 * (warp + kLastSmallest * kTileVectors + lane) + half};
}

// Two rows, a and b, of two pairs of columns.
__device__ uint4 rows_of(const uint2& a, const uint2& b) { return {a.x, b.x, a.y, b.y}; }

// `staged`: the step's.
__device__ void stage(const ThreadWeights& weights, uint4* staged, const StagedPlace& place) {
  uint2 parts[3][kThreadMixes];
#pragma unroll
  for (int i = 0; i < kThreadMixes; ++i) {
    float4 left = weights.mix[i];
#pragma unroll
    for (auto& part : parts) {
      part[i] = {take_part(left.x, left.y), take_part(left.z, left.w)};
    }
  }
  uint4* const to = staged + place.tiles;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    to[(kLargest + i) * kTileVectors] = rows_of(parts[i][0], parts[i][1]);
  }
  to[kLastMixes * kTileVectors] = rows_of(parts[0][2], parts[1][2]);
  reinterpret_cast<uint2*>(staged)[place.last_smallest] = parts[2][2];
}

// A lane's sums of one tile, for each eight tokens: in its own row of the tile, in the one eight
// below.
struct TileSums {
  float at[kRows][4];
};

// The eight tokens i of a lane: their columns of one half.
__device__ uint2 half_of(const LaneRows& rows, int i, int half) {
  const uint4& x = rows.row[i];
  return half == 0 ? uint2{x.x, x.y} : uint2{x.z, x.w};
}

// sums += a tile of weights times the warp's tokens.
__device__ void multiply_tile(TileSums& sums, const uint4* tile, const LaneRows& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 a = tile[half * kHalfVectors];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const uint2 x = half_of(rows, i, half);
      multiply(sums.at[i], a.x, a.y, a.z, a.w, x.x, x.y);
    }
  }
}

// The last tile. Below the weights stand the tokens, whose squares are the diagonal of these eight
// rows by eight columns.
__device__ void multiply_last_smallest(TileSums& sums, const uint4& a, const LaneRows& rows) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const uint2 x = half_of(rows, i, 0);
    multiply(sums.at[i], a.x, x.x, a.y, x.y, x.x, x.y);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const uint2 x = half_of(rows, i, 1);
    multiply(sums.at[i], a.z, x.x, a.w, x.y, x.x, x.y);
  }
}

// What a lane adds up for each eight tokens. Of the diagonal it may have one of two columns.
struct LaneSums {
  float mixes[kRows][4], last[kRows][2], squares[kRows];
};

__device__ unsigned diagonal_column() { return threadIdx.x / 4 % 2; }

// `staged`: this lane's, of its warp.
__device__ void add_step(LaneSums& sums, const LaneRows& rows, const uint4* staged) {
  TileSums products{};
  multiply_tile(products, staged + kSmallest * kTileVectors, rows);
  multiply_tile(products, staged + kMiddle * kTileVectors, rows);
  multiply_tile(products, staged + kLargest * kTileVectors, rows);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) sums.mixes[i][j] += products.at[i][j];
  }
  products = {};
  multiply_last_smallest(products, staged[kLastSmallest * kTileVectors], rows);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float(&at)[4] = products.at[i];
    sums.last[i][0] += at[0];
    sums.last[i][1] += at[1];
    sums.squares[i] += diagonal_column() == 0 ? at[2] : at[3];
  }
  products = {};
  multiply_tile(products, staged + kLastMixes * kTileVectors, rows);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {  // the largest parts and, eight rows below, the middle ones
    sums.last[i][0] += products.at[i][0] + products.at[i][2];
    sums.last[i][1] += products.at[i][1] + products.at[i][3];
  }
}

// Each warp's sums into shared memory, [warp of the step][token][mix or squares]. A lane has rows
// l / 4 and l / 4 + 8 of each tile, of tokens 2 (l % 4) and + 1 of each eight; the diagonal's
// column of row l / 4 is among these where l % 4 is l / 8.
__device__ void spread(const LaneSums& sums, float* to) {
  const unsigned mix = own_lane() / 4, token = own_lane() % 4 * 2;
  float* const own = to + (own_columns() * kTokens + first_row()) * kSums;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float* const eight = own + 8 * i * kSums;
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      float* const mixes = eight + (token + t) * kSums;
      mixes[mix] = sums.mixes[i][t];
      mixes[mix + 8] = sums.mixes[i][2 + t];
      mixes[mix + 16] = sums.last[i][t];
    }
    const unsigned own_token = token + diagonal_column();
    if (own_token == mix) eight[own_token * kSums + kMixes] = sums.squares[i];
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
  const int split = block_index_y();
  const std::int64_t first_token = std::int64_t{block_index_x()} * kTokens;
  const std::int64_t first_own = first_token + first_row() + own_lane() / 4;
  const int rows = static_cast<int>((p.tokens - first_own + 7) / 8);
  const std::int64_t begin = part_begin(p, split);
  const int steps = static_cast<int>((part_begin(p, split + 1) - begin) / kStep);

  const float* next_weights =
      p.fn + begin + threadIdx.x / (kStep / 4) * p.depth + threadIdx.x % (kStep / 4) * 4;
  const auto take_weights = [&](int step) {  // behind the last step, that one's again
    const ThreadWeights weights = load_weights(next_weights, p.depth);
    if (step + 1 < steps) next_weights += kStep;
    return weights;
  };
  const StagedPlace to = staged_place();
  const uint4* const from = staged + own_columns() * kWarpVectors + own_lane();
  uint4* const copied = staged + 2 * kPairVectors + threadIdx.x;
  LaneSums sums{};
  StepPlace place = place_of_step(p, first_token, begin);
  // Each step has a group of copies, be it empty, so that the latest but one is what a step needs.
  const auto copy = [&](int step, int odd) {
    if (step < steps) {
      copy_rows(p, place.at, rows, copied + odd * kCopiedVectors);
      advance(p, place);
    }
    __pipeline_commit();
  };
#pragma unroll
  for (int step = 0; step < kPair; ++step) {
    copy(step, step);
    stage(take_weights(step), staged + step * kStagedVectors, to);
  }
  ThreadWeights weights = take_weights(kPair);
  __syncthreads();
  // The tokens of the next step but one take the place of those that have been read; its weights go
  // where all have read before the last barrier.
  const auto work = [&](int step, int odd, int turn) {
    __pipeline_wait_prior(1);
    const LaneRows bits = own_rows(copied + odd * kCopiedVectors);
    copy(step + kPair, odd);
    add_step(sums, bits, from + turn * kPairVectors + odd * kStagedVectors);
    stage(weights, staged + (turn ^ 1) * kPairVectors + odd * kStagedVectors, to);
    weights = take_weights(step + kPair + 1);
  };
  for (int step = 0, turn = 0; step < steps; step += kPair, turn ^= 1) {
    work(step, 0, turn);
    if (step + 1 < steps) work(step + 1, 1, turn);
    __syncthreads();
  }
  float* const spread_sums = dynamic_shared<float>();
  spread(sums, spread_sums);
  __syncthreads();
  store_sums(p, first_token, split, spread_sums);
}

bool suits(const Mixing& m, const Properties& device) {
  return kSharedBytes <= device.shared_bytes_per_block && m.tokens >= kTokens / 2 &&
         m.hidden >= kLeastHidden && m.hidden % kStep == 0 &&
         m.depth % (std::int64_t{kStep} * m.splits) == 0 &&
         are_whole(m.hidden, m.token_stride, m.slot_stride) && start_whole(m.streams, m.fn);
}

}  // namespace

plumb_status launch_matrix_partials(const Mixing& m, plumb_stream stream) {
  if (!suits(m, stream_properties(stream))) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{(m.tokens + kTokens - 1) / kTokens, m.splits, kThreads, kSharedBytes};
  return PLUMB_LAUNCH(mhc_matrix_partials, shape, stream, m);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
