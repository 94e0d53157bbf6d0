// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/hyper_connection.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/four_doubles.h"
#include "reference/interleaved_sums.h"
#include "reference/matrix_error.h"
#include "reference/rounding_bias.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Sum of squares of bf16 numbers that a matrix unit adds up.
Uncertain squares_of_unit(const TermSums& squares, std::int64_t terms, const Numerics& numerics) {
  constexpr int kSquareBits = 16;
  const MatrixError error = matrix_sum_error(terms, squares, kSquareBits, numerics);
  const double sigma = error.sigma + error.bias / 6;
  return {squares.sum, sigma * sigma, error.worst, 0, error.bias};
}

// The larger of two error models. A kernel that multiplies in a matrix unit may add up its squares
// in the unit or in fp32.
Uncertain wider(const Uncertain& a, const Uncertain& b) {
  return {a.value, std::max(a.variance, b.variance), std::max(a.worst, b.worst), a.shift,
          std::max(a.systematic, b.systematic)};
}

}  // namespace

std::vector<double> load_token(const Streams& streams, std::int64_t token) {
  std::vector<double> x(static_cast<std::size_t>(kStreams * streams.hidden));
  load_token(streams, token, x.data());
  return x;
}

void load_token(const Streams& streams, std::int64_t token, double* to) {
  for (int slot = 0; slot < kStreams; ++slot) {
    const std::uint16_t* from =
        streams.data + token * streams.token_stride + slot * streams.slot_stride;
    decode_bf16_array(from, streams.hidden, to + slot * streams.hidden);
  }
}

void write(const Uncertain& from, std::int64_t i, Estimate& to) {
  to.value[i] = from.value;
  to.sigma[i] = std::sqrt(from.variance);
  to.worst[i] = from.worst;
  if (!to.shift.empty()) to.shift[i] = from.shift;
}

std::int64_t tokens_per_block(std::int64_t elements) {
  constexpr std::int64_t kElements = 1 << 12;
  return std::max<std::int64_t>(1, kElements / elements);
}

double rounding_variance(double unit) { return unit * unit / 3; }

Uncertain square_sum(const std::vector<double>& x, std::int64_t begin, std::int64_t end,
                     const Numerics& numerics) {
  std::vector<double> terms(x.begin() + begin, x.begin() + end);
  double sum = 0, squares = 0, flushed = 0;
  InterleavedSums<double> orders;
  const auto count = std::ssize(terms);
  const std::int64_t length = block_length(count);
  for (std::int64_t first = 0; first < count; first += length) {
    const std::int64_t last = std::min(first + length, count);
    double lanes[4] = {}, fourths = 0;
    for (std::int64_t k = first; k < last; ++k) {
      const double term = terms[k] * terms[k];
      terms[k] = term;
      lanes[(k - first) % 4] += term;
      fourths += term * term;
      flushed += term < kLeastNormalF32 ? term : 0;
    }
    orders.add_block(last - first, lanes, fourths);
    sum += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    squares += fourths;
  }
  // The square of a bf16 number is exact in fp32, unless it is subnormal and the device flushes it.
  const SumError added = mean_sum_error(end - begin, sum, sum, squares, numerics);
  const double ordered =
      std::sqrt(rounding_variance(unit_roundoff(numerics.accumulator)) *
                largest_of_orders(numerics.chains, orders.one(), orders.two(), orders.four()));
  const double chains =
      std::clamp<double>(numerics.chains, 1, static_cast<double>(std::max(count, std::int64_t{1})));
  const RoundingBias bias = rounding_bias(terms.data(), terms.size(), chains, sum / chains,
                                          unit_roundoff(numerics.accumulator));
  // bias / 6 in sigma, so that a bound of 6 sigma includes the bias.
  const double sigma = std::max(added.sigma, ordered) + bias.of_terms / 6;
  const Uncertain by_fp32{.value = sum,
                          .variance = sigma * sigma + flushed * flushed,
                          .worst = added.worst + flushed,
                          .systematic = bias.all()};
  if (numerics.unit == SumUnit::fp32) return by_fp32;
  return wider(by_fp32, squares_of_unit({sum, sum, squares}, end - begin, numerics));
}

Tracked rms_scale(Tracked square_sums, std::int64_t count, double eps) {
  return rsqrt(std::move(square_sums) / static_cast<double>(count) + eps);
}

Tracked gates(Tracked logits) {
  const double function = function_error(*logits.node()->numerics);
  Estimate exponents;  // errors of exp2, expressed as errors of its argument
  exponents.resize(1, elements_of(logits.sizes()));
  exponents.row_systematic[0] = function;
  for (std::int64_t i = 0; i < exponents.columns; ++i) {
    // Two roundings: the product with log2(e), and the constant log2(e).
    const double rounded = kUnitF32 * std::abs(logits.centres()[static_cast<std::size_t>(i)]);
    write({.variance = 2 * rounding_variance(rounded) + rounding_variance(function),
           .worst = 2 * rounded + function},
          i, exponents);
  }
  // The rounding of the sum 1 + exp2 is at most that of a product with 1.
  return sigmoid(with_errors(std::move(logits), exponents)) * 1.0;
}

}  // namespace plumb::reference
