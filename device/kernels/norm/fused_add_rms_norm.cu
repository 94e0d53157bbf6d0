// SPDX-License-Identifier: Apache-2.0
//
// fused_add_rms_norm: a team per row (row_norm.h). A thread overwrites only elements that it alone
// has read. Rows of x may be strided. Legal: any tokens that fit the grid's x, any hidden >= 1.
#include <plumb/ops/norm.h>

#include "device/kernels/norm/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// A row of x and of the residual, both updated in place. Between its loads and stores a thread
// keeps the input of the norm: the rounded sum here, both terms in Fp32Sum.
struct RoundedSum {
  using Bits = Bf16x8;
  std::uint16_t* x;
  std::uint16_t* residual;
  PLUMB_METHOD Bits load(std::int64_t column, std::int64_t count, bool whole) const {
    float sums[kBf16x8];
    add(load_bf16x8(x + column, count, whole), load_bf16x8(residual + column, count, whole), sums);
    return round_bf16x8(sums);
  }
  PLUMB_METHOD static Bits reload(const Bits& bits) { return reloaded(bits); }
  PLUMB_METHOD void decode(const Bits& bits, float* values) const { decode_bf16x8(bits, values); }
  PLUMB_METHOD void decode_squared(const Bits& bits, float* values) const { decode(bits, values); }
  PLUMB_METHOD void store(std::int64_t column, std::int64_t count, bool whole, const Bits& bits,
                          const Bf16x8& result) const {
    store_bf16x8(residual + column, bits, count, whole);
    store_bf16x8(x + column, result, count, whole);
  }
  PLUMB_METHOD static void add(const Bf16x8& a, const Bf16x8& b, float* sums) {
    float terms[kBf16x8];
    decode_bf16x8(a, sums);
    decode_bf16x8(b, terms);
    PLUMB_UNROLL
    for (int i = 0; i < kBf16x8; ++i) sums[i] += terms[i];
  }
};

struct Fp32Sum {
  struct Bits {
    Bf16x8 x, residual;
  };
  std::uint16_t* x;
  std::uint16_t* residual;
  PLUMB_METHOD Bits load(std::int64_t column, std::int64_t count, bool whole) const {
    return {load_bf16x8(x + column, count, whole), load_bf16x8(residual + column, count, whole)};
  }
  PLUMB_METHOD static Bits reload(const Bits& bits) {
    return {reloaded(bits.x), reloaded(bits.residual)};
  }
  PLUMB_METHOD void decode(const Bits& bits, float* values) const {
    RoundedSum::add(bits.x, bits.residual, values);
  }
  PLUMB_METHOD void decode_squared(const Bits& bits, float* values) const { decode(bits, values); }
  PLUMB_METHOD void store(std::int64_t column, std::int64_t count, bool whole, const Bits& bits,
                          const Bf16x8& result) const {
    float sums[kBf16x8];
    decode(bits, sums);
    RoundedSum{x, residual}.store(column, count, whole, round_bf16x8(sums), result);
  }
};

// Squares are computed from the fp32 sum, the normalised row from the rounded sum.
struct Fp32Squares {
  using Bits = Fp32Sum::Bits;
  std::uint16_t* x;
  std::uint16_t* residual;
  PLUMB_METHOD Bits load(std::int64_t column, std::int64_t count, bool whole) const {
    return Fp32Sum{x, residual}.load(column, count, whole);
  }
  PLUMB_METHOD static Bits reload(const Bits& bits) { return Fp32Sum::reload(bits); }
  PLUMB_METHOD void decode(const Bits& bits, float* values) const {
    float sums[kBf16x8];
    decode_squared(bits, sums);
    decode_bf16x8(round_bf16x8(sums), values);
  }
  PLUMB_METHOD void decode_squared(const Bits& bits, float* values) const {
    RoundedSum::add(bits.x, bits.residual, values);
  }
  PLUMB_METHOD void store(std::int64_t column, std::int64_t count, bool whole, const Bits& bits,
                          const Bf16x8& result) const {
    Fp32Sum{x, residual}.store(column, count, whole, bits, result);
  }
};

template <class Sum, bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostRowThreads,
                          1) void fused_add_rms_norm_kernel(plumb_fused_add_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const RowTeam team = row_team(block_index_x(), p.tokens, p.hidden);
  if (!team.has_work) return;
  const Sum row{p.x + team.row * p.x_row_stride, p.residual + team.row * p.residual_row_stride};
  const RowNorm norm{p.weight, p.hidden, p.eps, p.rounding == PLUMB_ROUND_TWICE};
  normalize_row<whole>(team, row, norm, wave_partials);
}

template <class Sum>
plumb_status launch_sum(const plumb_fused_add_rms_norm_params& p) {
  const int wave = stream_properties(p.stream).wave_size;
  const LaunchShape shape = row_shape(p.tokens, p.hidden, wave);
  if (has_whole_vectors({p.hidden, p.x_row_stride, p.residual_row_stride}, p.x, p.residual,
                        p.weight)) {
    return PLUMB_LAUNCH((fused_add_rms_norm_kernel<Sum, true>), shape, p.stream, p);
  }
  return PLUMB_LAUNCH((fused_add_rms_norm_kernel<Sum, false>), shape, p.stream, p);
}

inline plumb_status launch_fused_add_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_fused_add_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.x_row_stride < p.hidden ||
      p.residual_row_stride < p.hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.residual || !p.weight) return PLUMB_INVALID_ARGUMENT;
  if (p.sum == PLUMB_SUM_FP32_SQUARES) return launch_sum<Fp32Squares>(p);
  return p.sum == PLUMB_SUM_FP32 ? launch_sum<Fp32Sum>(p) : launch_sum<RoundedSum>(p);
}

OpEntry fused_add_rms_norm() {
  return {"fused_add_rms_norm", launch_fused_add_rms_norm, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
