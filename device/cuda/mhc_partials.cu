// SPDX-License-Identifier: Apache-2.0
//
// The first stage of mhc_pre and related ops (device/kernels/hyper_connection/mhc_mixing.h) on
// matrix units (matrix_products.h). A matrix unit truncates when it adds. So it adds up only 32
// columns, from zero and in two halves, products with the smallest parts of the weights first: only
// the last two additions truncate at the scale of the result. The fp32 units, which round to
// nearest, add up the results. Squares are such products too, of tokens with themselves.
//
// Two blocks share a tile of 128 tokens and one part of K. Each has half of that part, takes 256
// columns at a time, and at the end adds up both halves' sums for half of the tokens. Warp w takes
// tokens 32 (w % 4) .. + 31 and columns 64 (w / 4) .. + 63 of each 256, 32 at a time. Weights are
// the left operand, 16 rows in a tile. The right operand is eight tokens, and lane l has token
// l / 4. Products of 16 columns allow any order of columns over the lanes, if weights and tokens
// have the same. So lane l takes eight adjacent columns, 8 (l % 4) .. + 7 of the 32, of tokens
// l / 4, + 8, + 16, + 24: one access each, whose words are operands without conversion. Each warp
// copies its tokens to shared memory two steps ahead, and waits for no other warp's copies.
#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include "device/cuda/matrix_products.h"
#include "device/kernels/hyper_connection/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kThreads = 512, kBlocks = 2, kTokens = 128, kStep = 256;
constexpr int kWarpTokens = 32, kWarpsOfColumns = kTokens / kWarpTokens;
constexpr int kWarpColumns = 64, kWarpsOfTokens = kStep / kWarpColumns;
constexpr int kColumns = 32;  // each chain of products adds this many columns
static_assert(kThreads == 32 * kWarpsOfColumns * kWarpsOfTokens);
constexpr std::int64_t kLeastTokens = 32, kLeastHidden = 1024;

// Tiles of weights: three parts of mixes 0 to 15; the largest and the middle parts of mixes 16 to
// 23; their smallest parts, which fill eight rows. The other eight rows of that product are the
// tokens.
enum WeightTile { kLargest, kMiddle, kSmallest, kLastMixes, kLastSmallest };

// Weights of one step in the order in which lanes load them: [32 columns][tile][half of the
// columns][lane], two rows by four columns each; for the last tile [lane][half], one row. The
// padding behind each half and each 32 columns prevents bank conflicts of the threads that write.
constexpr int kHalfVectors = 32 + 4, kTileVectors = 2 * kHalfVectors;
constexpr int kPartVectors = kLastSmallest * kTileVectors + 32 + 4;
constexpr int kStagedVectors = kStep / kColumns * kPartVectors;
// A warp's tokens of one step, [token][eight columns]. Loads: four lanes read half of a token's
// columns. Copies: eight lanes write all of them, a line of 128 bytes. The two halves of odd tokens
// are swapped, so that neither access has bank conflicts.
constexpr int kEights = kWarpColumns / 8, kCopiedVectors = kWarpTokens * kEights;
// While a step is multiplied, weights of the next step are staged and tokens of two are copied.
constexpr int kTurns = 2, kWarps = kThreads / 32;
constexpr int kSums = kMixes + 1;  // per token: 24 mixes and the sum of squares
constexpr std::size_t kSharedBytes =
    kTurns * (kStagedVectors + kWarps * kCopiedVectors) * sizeof(uint4);
static_assert(kWarpsOfTokens * kTokens * kSums * sizeof(float) <= kSharedBytes);

// Clusters need compute capability 9.0. For older processors the kernel is empty.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

constexpr int kParts = kWarpColumns / kColumns;
constexpr int kRows = 4;                      // tokens per lane
constexpr int kCopies = kCopiedVectors / 32;  // per lane; each time the warp copies four tokens

// Unsigned arithmetic: cheap enough to compute these again where registers are short.
__device__ unsigned own_lane() { return threadIdx.x % 32; }
__device__ unsigned own_warp() { return threadIdx.x / 32; }
// which 64 columns of a step
__device__ unsigned own_columns() { return own_warp() / kWarpsOfColumns; }
__device__ unsigned first_row() { return own_warp() % kWarpsOfColumns * kWarpTokens; }

struct LaneRows {
  uint4 row[kRows];
};

// Where this lane's copy of a step starts, in its first token, and how many steps this stream has
// left.
struct StepPlace {
  const std::uint16_t* at;
  int left;
};

__device__ unsigned first_copied() { return first_row() + own_lane() / kEights; }

__device__ StepPlace place_of_step(const Mixing& p, std::int64_t first_token, std::int64_t k) {
  int slot = 0;
  for (int i = 1; i < kStreams; ++i) slot += k >= i * p.hidden;
  const std::int64_t column = k - slot * p.hidden;
  const std::uint16_t* const at =
      p.streams + (first_token + first_copied()) * p.token_stride + slot * p.slot_stride;
  return {at + column + own_columns() * kWarpColumns + own_lane() % kEights * 8,
          static_cast<int>(p.hidden - column) / kStep};
}

__device__ void advance(const Mixing& p, StepPlace& place) {
  const bool ends = --place.left == 0;
  place.at += ends ? p.slot_stride - p.hidden + kStep : kStep;
  if (ends) place.left = static_cast<int>(p.hidden) / kStep;
}

__device__ unsigned exchanged(unsigned token) { return token % 2 * (kEights / 2); }

// Where this lane copies its first token's columns to.
__device__ unsigned copied_to() {
  const unsigned token = own_lane() / kEights, eight = own_lane() % kEights;
  return token * kEights + (eight ^ exchanged(token));
}
// Where this lane reads the first columns of its first token. The other columns are half a row
// away.
__device__ unsigned read_from() {
  const unsigned token = own_lane() / 4;
  return token * kEights + exchanged(token) + own_lane() % 4;
}

// Starts to copy this lane's part of a step. `rows`: how many of its rows are tokens. Old contents
// of shared memory are multiplied in place of the others, and not stored.
__device__ void copy_rows(const Mixing& p, const std::uint16_t* from, int rows, uint4* to) {
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    if (i < rows) __pipeline_memcpy_async(to + i * 32, from, sizeof(uint4));
    from += 4 * p.token_stride;
  }
}

// Tokens that the warp has copied. `copied`: where this lane's first token is.
__device__ LaneRows own_rows(const uint4* copied) {
  LaneRows bits;
#pragma unroll
  for (int i = 0; i < kRows; ++i) bits.row[i] = copied[i * 8 * kEights];
  return bits;
}

// Thread t has columns 4 (t % 64) .. + 3 of mixes t / 64, t / 64 + 8 and t / 64 + 16.
constexpr int kThreadMixes = kMixes / 8;
struct ThreadWeights {
  float4 mix[kThreadMixes];
};
static_assert(kThreads == 8 * kStep / 4);

// `from`: this thread's columns of the step, in the row of its first mix.
__device__ ThreadWeights load_weights(const float* from, std::int64_t depth) {
  ThreadWeights weights;
#pragma unroll
  for (int i = 0; i < kThreadMixes; ++i) {
    weights.mix[i] = *reinterpret_cast<const float4*>(from + i * 8 * depth);
  }
  return weights;
}

// Where this thread stages its weights: lane 4 (t / 64) + t % 8 / 2 of 32-column group t % 64 / 8,
// half t % 2.
struct StagedPlace {
  unsigned tiles, last_smallest;  // offset in uint4; offset in uint2
};

__device__ StagedPlace staged_place() {
  const unsigned mix = threadIdx.x / (kStep / 4), four = threadIdx.x % (kStep / 4), half = four % 2;
  const unsigned part = four / 8 * kPartVectors, lane = mix * 4 + four % 8 / 2;
  return {part + half * kHalfVectors + lane,
          2 * (part + kLastSmallest * kTileVectors + lane) + half};
}

// Interleaves two rows, a and b, of two pairs of columns.
__device__ uint4 rows_of(const uint2& a, const uint2& b) { return {a.x, b.x, a.y, b.y}; }

// `staged`: where the step's weights start.
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

// A lane's sums of one tile for each eight tokens: of row l / 4 of the tile, then of row l / 4 + 8.
struct TileSums {
  float at[kRows][4];
};

// Token group i of a lane: its columns of one half.
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

// The last tile. Its lower eight rows are the tokens themselves, so that the diagonal of these rows
// by eight columns holds squares.
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

// A lane's sums for each eight tokens. Of its two columns, at most one is on the diagonal
// (squares).
struct MixSums {
  float mixes[kRows][4], last[kRows][2], squares[kRows];
};

__device__ unsigned diagonal_column() { return threadIdx.x / 4 % 2; }

// `staged`: this lane's weights of these columns.
__device__ void add_part(MixSums& sums, const LaneRows& rows, const uint4* staged) {
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
  for (int i = 0; i < kRows; ++i) {  // the largest parts and, eight rows below, the middle parts
    sums.last[i][0] += products.at[i][0] + products.at[i][2];
    sums.last[i][1] += products.at[i][1] + products.at[i][3];
  }
}

// Writes each warp's sums to shared memory, [warp's columns][token][mix or squares]. A lane has
// rows l / 4 and l / 4 + 8 of each tile, for tokens 2 (l % 4) and + 1 of each eight. It has the
// diagonal element of row l / 4 if l % 4 is l / 8.
__device__ void spread(const MixSums& sums, float* to) {
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

// For half of the tokens: adds up the sums of both blocks' warps in the order of columns, and
// stores them.
__device__ void store_sums(const Mixing& p, std::int64_t first_token, int split, float* own) {
  constexpr int kHalf = kTokens * kSums / kBlocks;
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  for (int i = rank * kHalf + threadIdx.x; i < (rank + 1) * kHalf; i += kThreads) {
    const std::int64_t token = first_token + i / kSums;
    if (token >= p.tokens) break;
    float sum = 0;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const float* const sums = cluster.map_shared_rank(own, block);
#pragma unroll
      for (int warp = 0; warp < kWarpsOfTokens; ++warp) sum += sums[warp * kTokens * kSums + i];
    }
    const std::int64_t row = split * p.tokens + token;
    const int mix = i % kSums;
    (mix < kMixes ? p.partial_mixes[row * kMixes + mix] : p.partial_square_sums[row]) = sum;
  }
}

__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kBlocks, 1, 1)
    mhc_matrix_partials(Mixing p) {
  const auto cluster = cooperative_groups::this_cluster();
  uint4* const staged = dynamic_shared<uint4>();
  const int split = block_index_y();
  const std::int64_t first_token = std::int64_t{block_index_x()} / kBlocks * kTokens;
  const int rows = static_cast<int>((p.tokens - first_token - first_copied() + 3) / 4);
  const std::int64_t columns = (part_begin(p, split + 1) - part_begin(p, split)) / kBlocks;
  const std::int64_t begin = part_begin(p, split) + cluster.block_rank() * columns;
  const int steps = static_cast<int>(columns / kStep);

  const float* next_weights =
      p.fn + begin + threadIdx.x / (kStep / 4) * p.depth + threadIdx.x % (kStep / 4) * 4;
  const auto take_weights = [&](int step) {  // after the last step: loads its weights again
    const ThreadWeights weights = load_weights(next_weights, p.depth);
    if (step + 1 < steps) next_weights += kStep;
    return weights;
  };
  // Half of the warps stage while the other half multiplies: the two jobs use different units.
  const bool stages_first = wave_index() / 4 % 2 == 0;
  const StagedPlace to = staged_place();
  const uint4* const from = staged + own_columns() * kParts * kPartVectors + own_lane();
  uint4* const copied = staged + kTurns * kStagedVectors + own_warp() * kTurns * kCopiedVectors;
  MixSums sums{};
  StepPlace place = place_of_step(p, first_token, begin);
  // Each step commits a group of copies, even an empty one. All groups but the latest are then
  // complete when a step needs its tokens.
  const auto copy = [&](int step, int turn) {
    if (step < steps) {
      copy_rows(p, place.at, rows, copied + turn * kCopiedVectors + copied_to());
      advance(p, place);
    }
    __pipeline_commit();
  };
  copy(0, 0);
  copy(1, 1);
  stage(take_weights(0), staged, to);
  ThreadWeights weights = take_weights(1);
  __syncthreads();
  for (int step = 0, turn = 0; step < steps; ++step, turn ^= 1) {
    const auto stage_next = [&] {  // into the buffer that all have read before the last barrier
      stage(weights, staged + (turn ^ 1) * kStagedVectors, to);
      weights = take_weights(step + 2);
    };
    if (stages_first) stage_next();
    __pipeline_wait_prior(1);
    __syncwarp();
    const uint4* const own = copied + turn * kCopiedVectors;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const LaneRows bits = own_rows(own + (read_from() ^ part * (kEights / 2)));
      if (part + 1 == kParts) {
        __syncwarp();  // all lanes have read: the buffer may be filled again
        copy(step + kTurns, turn);
      }
      add_part(sums, bits, from + turn * kStagedVectors + part * kPartVectors);
    }
    if (!stages_first) stage_next();
    __syncthreads();
  }
  float* const spread_sums = dynamic_shared<float>();
  spread(sums, spread_sums);
  cluster.sync();
  store_sums(p, first_token, split, spread_sums);
  cluster.sync();  // the other block has read this block's sums
}

#else

__global__ void mhc_matrix_partials(Mixing) {}

#endif

}  // namespace

bool suits_matrix_units(const Mixing& m) {
  return !m.bf16_split && m.tokens >= kLeastTokens && m.hidden >= kLeastHidden &&
         m.hidden % kStep == 0 && m.depth % (std::int64_t{kBlocks} * kStep * m.splits) == 0 &&
         are_whole({m.hidden, m.token_stride, m.slot_stride}) && start_whole(m.streams, m.fn);
}

plumb_status launch_matrix_partials(const Mixing& m, plumb_stream stream) {
  if (kSharedBytes > stream_properties(stream).shared_bytes_per_block || !suits_matrix_units(m)) {
    return PLUMB_UNSUPPORTED;
  }
  const LaunchShape shape{(m.tokens + kTokens - 1) / kTokens * kBlocks, m.splits, kThreads,
                          kSharedBytes};
  return PLUMB_LAUNCH(mhc_matrix_partials, shape, stream, m);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
