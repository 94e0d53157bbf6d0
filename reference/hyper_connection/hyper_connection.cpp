// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/hyper_connection.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/four_doubles.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

std::vector<double> load_token(const Streams& streams, std::int64_t token) {
  std::vector<double> x(static_cast<std::size_t>(kStreams * streams.hidden));
  load_token(streams, token, 0, kStreams * streams.hidden, x.data());
  return x;
}

void load_token(const Streams& streams, std::int64_t token, std::int64_t first, std::int64_t count,
                double* to) {
  for (std::int64_t k = first, n = 0; k < first + count; k += n) {
    const std::int64_t slot = k / streams.hidden, h = k % streams.hidden;
    n = std::min(streams.hidden - h, first + count - k);
    decode_bf16_array(streams.data + token * streams.token_stride + slot * streams.slot_stride + h,
                      n, to + (k - first));
  }
}

Tracked load_tokens(const Streams& streams, std::int64_t begin, std::int64_t end,
                    std::int64_t first, std::int64_t count, const Numerics& numerics) {
  std::vector<double> x(static_cast<std::size_t>((end - begin) * count));
  for (std::int64_t token = begin; token < end; ++token) {
    load_token(streams, token, first, count, x.data() + (token - begin) * count);
  }
  return {std::move(x), {end - begin, count}, numerics};
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

Tracked square_sums(const Tracked& x) {
  const Numerics& numerics = *x.node()->numerics;
  const Tracked squares = x * x;
  Tracked sums = sum(squares, 1);
  if (numerics.unit == SumUnit::fp32) return sums;
  // A kernel that multiplies in a matrix unit may add up its squares in the unit or in fp32.
  const std::int64_t count = x.sizes().back();
  const Tracked ones(std::vector<double>(static_cast<std::size_t>(count), 1), {count, 1}, numerics);
  Numerics in_unit = numerics;
  in_unit.product = Format::f32;
  return with_errors(matmul(squares, ones, in_unit), estimate_of(sums, Format::f32));
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
