// SPDX-License-Identifier: Apache-2.0
//
// Code shared by the hyper-connection ops: four residual streams per token, their square sums, the
// RMS scale and sigmoid gates.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

inline constexpr int kStreams = 4;

// A number whose errors are derived by hand: its exact value, the variance and largest size of its
// error, and the predictable part of the error.
struct Uncertain {
  double value = 0, variance = 0, worst = 0, shift = 0;
};
// Stores `from` as element i of `to`.
void write(const Uncertain& from, std::int64_t i, Estimate& to);

// bf16 [tokens, 4, hidden]; strides in elements.
struct Streams {
  const std::uint16_t* data = nullptr;
  std::int64_t tokens = 0, hidden = 0, token_stride = 0, slot_stride = 0;
};
// The 4 * hidden elements of a token, in K order (slot, hidden), or `count` of them from `first`
// on.
std::vector<double> load_token(const Streams& streams, std::int64_t token);
void load_token(const Streams& streams, std::int64_t token, std::int64_t first, std::int64_t count,
                double* to);
// Elements [first, first + count) of tokens [begin, end).
Tracked load_tokens(const Streams& streams, std::int64_t begin, std::int64_t end,
                    std::int64_t first, std::int64_t count, const Numerics& numerics);
// Number of tokens that are computed together if each token has `elements` elements.
std::int64_t tokens_per_block(std::int64_t elements);

// Variance of a uniform error of relative size at most `unit`, of a rounding or of a function.
double rounding_variance(double unit);

// Sum of the squares of each row of x: [rows, 1].
Tracked square_sums(const Tracked& x);

// 1/sqrt(sum / count + eps)
Tracked rms_scale(Tracked square_sums, std::int64_t count, double eps);

// sigmoid of logits, as 1 / (1 + exp2(-z log2(e))).
Tracked gates(Tracked logits);

}  // namespace plumb::reference
