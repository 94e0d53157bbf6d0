// SPDX-License-Identifier: Apache-2.0
//
// The loop over a row that the RMSNorm family shares: a team normalises one bf16 row in fp32.
//
// A team is a wave if that is enough for a row, else a block. Thread t of a team of n has the
// vectors of eight columns t, t + n, .... It adds up the squares of a vector as a tree, and its
// vectors in order. Shuffles add up the threads of a wave, shared memory the waves. The first
// kRowVectors vectors stay in registers between sum and store; only further ones of longer rows are
// read twice. Where all rows of a call are aligned, a vector is one access, else eight: the bits
// are the same. Any hidden size. Launch: row_shape.
#pragma once

#include <initializer_list>

#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kRowVectors = 4;
constexpr int kColumnsOfThread = kRowVectors * kBf16x8;
constexpr int kMostRowThreads = 512, kMostWavesOfRowNorm = 16;
constexpr int kSmallTeams = 4;  // per block, if a team is a wave

// Threads of a team: a wave, or a block. The number depends on the row's size alone, so that a row
// has the same bits in every op.
constexpr int row_threads(std::int64_t hidden, int wave) {
  const std::int64_t waves = (hidden + kColumnsOfThread * wave - 1) / (kColumnsOfThread * wave);
  return waves * wave < kMostRowThreads ? static_cast<int>(waves) * wave : kMostRowThreads;
}

// The team of a row, and this thread's index in it. A thread without work returns.
struct RowTeam {
  std::int64_t row;
  int thread, threads;
  bool has_work;
};

// `block`: index of this block among the blocks for one kind of rows (q_kv_rms_norm has two kinds).
PLUMB_DEVICE inline RowTeam row_team(std::int64_t block, std::int64_t rows, std::int64_t hidden) {
  const int threads = row_threads(hidden, wave_size());
  if (threads > wave_size()) return {block, thread_index(), threads, thread_index() < threads};
  const std::int64_t row = block * (block_size() / wave_size()) + wave_index();
  return {row, lane_index(), wave_size(), row < rows};
}

// Number of blocks of `block` threads for `rows` rows of one kind.
inline std::int64_t row_blocks(std::int64_t rows, std::int64_t hidden, int wave, int block) {
  const std::int64_t teams = row_threads(hidden, wave) > wave ? 1 : block / wave;
  return (rows + teams - 1) / teams;
}

inline LaunchShape row_shape(std::int64_t rows, std::int64_t hidden, int wave) {
  const int threads = row_threads(hidden, wave);
  const int block = threads > wave ? threads : kSmallTeams * wave;
  return {row_blocks(rows, hidden, wave, block), 1, block, 0};
}

// Whether accesses may be whole vectors: all widths and strides are multiples of eight elements,
// all addresses multiples of 16 bytes.
template <class... Tensors>
bool has_whole_vectors(std::initializer_list<std::int64_t> lengths, const Tensors*... tensors) {
  const auto starts = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  for (const std::int64_t length : lengths) {
    if (length % kBf16x8 != 0) return false;
  }
  return (starts(tensors) && ...);
}

PLUMB_DEVICE inline float sum_of_lanes(float value) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    value += shuffle_xor(all_lanes(), value, distance, wave_size());
  }
  return value;
}

// Sum over the team, the same bits in every thread. At most one call per kernel: a second one could
// overwrite wave_partials before all have read them.
PLUMB_DEVICE inline float sum_of_team(const RowTeam& team, float value, float* wave_partials) {
  const float of_wave = sum_of_lanes(value);
  if (team.threads == wave_size()) return of_wave;
  if (lane_index() == 0) wave_partials[wave_index()] = of_wave;
  block_sync();
  float total = 0;
  for (int wave = 0; wave < team.threads / wave_size(); ++wave) total += wave_partials[wave];
  return total;
}

PLUMB_DEVICE inline float sum_of_squares(const float* x) {
  float sums[kBf16x8];
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) sums[i] = x[i] * x[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Parameters of the norm, the same for all rows of a call. A null weight counts as 1.
struct RowNorm {
  const std::uint16_t* weight;
  std::int64_t hidden;
  float eps;
  bool round_twice;
};

// Eight columns of x * r * weight, rounded to bf16.
PLUMB_DEVICE inline Bf16x8 normalized(const RowNorm& norm, const float* x, float r,
                                      std::int64_t column, bool whole) {
  float scaled[kBf16x8], weight[kBf16x8];
  if (norm.weight) {
    decode_bf16x8(load_bf16x8(norm.weight + column, norm.hidden - column, whole), weight);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) {
    scaled[i] = x[i] * r;
    if (norm.round_twice) scaled[i] = load_bf16(store_bf16(scaled[i]));
    if (norm.weight) scaled[i] *= weight[i];
  }
  return round_bf16x8(scaled);
}

// A row that is read from one tensor and stored in another.
struct PlainRow {
  using Bits = Bf16x8;
  const std::uint16_t* x;
  std::uint16_t* out;
  bool keep = true;  // false: x counts as zero
  PLUMB_METHOD Bits load(std::int64_t column, std::int64_t count, bool whole) const {
    return load_bf16x8(x + column, keep ? count : 0, whole);
  }
  PLUMB_METHOD void decode(const Bits& bits, float* values) const { decode_bf16x8(bits, values); }
  PLUMB_METHOD void decode_squared(const Bits& bits, float* values) const { decode(bits, values); }
  PLUMB_METHOD static Bits reload(const Bits& bits) { return reloaded(bits); }
  PLUMB_METHOD void store(std::int64_t column, std::int64_t count, bool whole, const Bits&,
                          const Bf16x8& result) const {
    store_bf16x8(out + column, result, count, whole);
  }
};

// Stores x * r * weight of each column, r = 1 / sqrt(mean(x^2) + eps). Row::decode_squared gives
// the values that are squared, Row::decode gives x. At most one call per kernel.
template <bool whole, class Row>
PLUMB_DEVICE inline void normalize_row(const RowTeam& team, const Row& row, const RowNorm& norm,
                                       float* wave_partials) {
  const std::int64_t hidden = norm.hidden;
  const int first = team.thread * kBf16x8, stride = team.threads * kBf16x8;
  typename Row::Bits kept[kRowVectors];
  float x[kBf16x8], squares = 0;
  PLUMB_UNROLL
  for (int i = 0; i < kRowVectors; ++i) {
    kept[i] = row.load(first + i * stride, hidden - (first + i * stride), whole);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kRowVectors; ++i) {
    row.decode_squared(kept[i], x);
    squares += sum_of_squares(x);
  }
  for (std::int64_t c = first + kRowVectors * stride; c < hidden; c += stride) {
    row.decode_squared(row.load(c, hidden - c, whole), x);
    squares += sum_of_squares(x);
  }
  const float mean = sum_of_team(team, squares, wave_partials) / static_cast<float>(hidden);
  const float r = rsqrt_approx(mean + norm.eps);
  const auto finish = [&](std::int64_t column, const typename Row::Bits& bits) {
    row.decode(bits, x);
    row.store(column, hidden - column, whole, bits, normalized(norm, x, r, column, whole));
  };
  PLUMB_UNROLL
  for (int i = 0; i < kRowVectors; ++i) {
    if (first + i * stride < hidden) finish(first + i * stride, Row::reload(kept[i]));
  }
  for (std::int64_t c = first + kRowVectors * stride; c < hidden; c += stride) {
    finish(c, row.load(c, hidden - c, whole));
  }
}

// fp32 throughout; rsqrt is within 2 ulp on every back end. For every hidden the sum of squares is
// no deeper than 32 chains would be: a vector is a tree of three additions, a wave one of five or
// six, and at most 16 waves are added in order.
inline plumb_numerics row_norm_numerics() {
  return {.product = PLUMB_F32,
          .accumulator = PLUMB_F32,
          .chains = 32,
          .probability = PLUMB_F32,
          .function_ulp = 2.0f,
          .deterministic = 1};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
