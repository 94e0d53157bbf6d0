// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding of neighbours, GPT-J's: pair i is (x[2i], x[2i + 1]), turned by the angle whose
// cosine and sine are cos_sin[i] and cos_sin[32 + i]   (operations spec, 2.11)
#pragma once

#include <cstdint>
#include <functional>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

inline constexpr int kHeadDim = 512, kRopeDim = 64, kNopeDim = kHeadDim - kRopeDim;

enum class Rotation {
  forward,  // even' = even cos - odd sin, odd' = even sin + odd cos
  inverse   // the same with -sin
};

// x: [rows, kRopeDim], rows from `first` on. turns(row): the row's cos_sin.
Tracked rotate(Tracked x, std::int64_t first,
               const std::function<const float*(std::int64_t row)>& turns, Rotation rotation);

}  // namespace plumb::reference
