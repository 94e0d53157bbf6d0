// SPDX-License-Identifier: Apache-2.0
//
// RoPE of adjacent dimensions (2i, 2i + 1) with row `position` of a cos | sin cache.
#pragma once

#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kHeadDim = 512;
constexpr int kRopeDim = 64;
constexpr int kNopeDim = kHeadDim - kRopeDim;
constexpr int kRopePairs = kRopeDim / 2;

// Cosine and sine of the angle of one pair.
struct Turn {
  float cosine, sine;
};

PLUMB_DEVICE inline Turn turn_of(const float* cos_sin, std::int64_t position, int pair) {
  const float* row = cos_sin + position * kRopeDim;
  return {row[pair], row[kRopePairs + pair]};
}

struct Pair {
  float even, odd;
};

PLUMB_DEVICE inline Pair rotate(Pair x, Turn turn) {
  return {x.even * turn.cosine - x.odd * turn.sine, x.even * turn.sine + x.odd * turn.cosine};
}

PLUMB_DEVICE inline Pair rotate_back(Pair x, Turn turn) {
  return {x.even * turn.cosine + x.odd * turn.sine, x.odd * turn.cosine - x.even * turn.sine};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
