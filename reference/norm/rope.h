// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding of adjacent elements, as in GPT-J: pair i is (x[2i], x[2i + 1]), rotated by the
// angle whose cosine and sine are cos_sin[i] and cos_sin[32 + i] (operations spec, 2.11).
#pragma once

#include <cstdint>
#include <functional>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

inline constexpr int kHeadDim = 512, kRopeDim = 64, kNopeDim = kHeadDim - kRopeDim;

enum class Rotation {
  forward,  // even' = even cos - odd sin, odd' = even sin + odd cos
  inverse   // as forward, with -sin
};

// Rotates x, [n, kRopeDim], which holds rows first .. first + n - 1. turns(row) returns the cos_sin
// of a row.
Tracked rotate(Tracked x, std::int64_t first,
               const std::function<const float*(std::int64_t row)>& turns, Rotation rotation);

}  // namespace plumb::reference
