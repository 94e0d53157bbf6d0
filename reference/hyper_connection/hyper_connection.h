// SPDX-License-Identifier: Apache-2.0
//
// What the hyper-connection ops share: four residual streams per token, their products with the
// mixing weights, the RMS scale and sigmoid gates. Every quantity
// carries the first-order error that the declared numerics allow, with the errors that a token's
// results have in common (its RMS scale, its gates) kept apart from the independent ones.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

inline constexpr int kStreams = 4;

// A computed scalar: exact value; variance and largest size of its error; predictable part of it;
// and how far an error that has the same sign in every token may go.
struct Uncertain {
  double value = 0, variance = 0, worst = 0, shift = 0, systematic = 0;
};

// bf16 [tokens, 4, hidden]; strides in elements.
struct Streams {
  const std::uint16_t* data = nullptr;
  std::int64_t tokens = 0, hidden = 0, token_stride = 0, slot_stride = 0;
};
// K order (slot, hidden).
std::vector<double> load_token(const Streams& streams, std::int64_t token);
void load_token(const Streams& streams, std::int64_t token, double* to);
// How many tokens of so many elements are computed at a time.
std::int64_t tokens_per_block(std::int64_t elements);

// Variance of a rounding error of relative size at most `unit`, and the same of a function.
double rounding_variance(double unit);

// sum_k x_k^2 of k in [begin, end). Squares of bf16 numbers are not spread evenly over the spacing
// of the running sum (an odd significand's square is 1 modulo 8, a small square is swallowed), so
// the roundings have a mean, which is estimated from the terms.
Uncertain square_sum(const std::vector<double>& x, std::int64_t begin, std::int64_t end,
                     const Numerics& numerics);

// Parts of a split reduction, added in order in fp32.
Uncertain add_in_order(const std::vector<Uncertain>& parts);

// 1/sqrt(sum / count + eps); all but the value are of its relative error.
Uncertain rms_scale(const Uncertain& square_sum, std::int64_t count, double eps,
                    const Numerics& numerics);

// mix * r * scale + base. Its error is `common` times r's relative error, and an independent one.
// `systematic` is of the mix alone.
struct Logit {
  double value = 0, variance = 0, common = 0, worst = 0, shift = 0, systematic = 0;
};
Logit logit(const Uncertain& mix, const Uncertain& r, double scale, double base);

// sigmoid(logit) * factor + eps of four streams.
struct Gates {
  std::array<double, kStreams> value{}, worst{}, systematic{}, shift{};
  std::array<std::array<double, kStreams>, kStreams> covariance{};
};
Gates sigmoid_gates(const Logit* logits, const Uncertain& r, double factor, double eps,
                    const Numerics& numerics);

}  // namespace plumb::reference
