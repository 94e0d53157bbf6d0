// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding of neighbours, GPT-J's: pair i is (x[2i], x[2i + 1]), turned by the angle whose
// cosine and sine are cos_sin[i] and cos_sin[32 + i]   (operations spec, 2.11)
#pragma once

#include <array>

#include "reference/bound.h"

namespace plumb::reference {

inline constexpr int kHeadDim = 512, kRopeDim = 64, kNopeDim = kHeadDim - kRopeDim;

enum class Rotation {
  forward,  // even' = even cos - odd sin, odd' = even sin + odd cos
  inverse   // the same with -sin
};

// An element and the errors of its own roundings: of two products and their sum.
struct Rotated {
  double value = 0, variance = 0, worst = 0;
  double magnitude = 0;        // |even cos| + |odd sin|, or the other way round
  double product_squares = 0;  // the sum of their squares
};
// x: kRopeDim exact numbers; cos_sin: kRopeDim.
std::array<Rotated, kRopeDim> rotate(const double* x, const float* cos_sin, Rotation rotation);

}  // namespace plumb::reference
