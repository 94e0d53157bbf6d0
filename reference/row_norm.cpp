// SPDX-License-Identifier: Apache-2.0
//
// Error model. The mean square carries the roundings of the squares, of their sum, of the division
// and of adding eps; the square root halves a relative error; r carries the reciprocal root's own.
// All that is shared by the row. Each element adds the roundings of its two products.
#include "reference/row_norm.h"

#include <algorithm>
#include <cmath>

#include "reference/formats/bfloat16.h"
#include "reference/four_doubles.h"

namespace plumb::reference {

namespace {

// Lanes side by side: one sum would wait for each addition.
double sum_in_lanes(std::int64_t count, const auto& term) {
  constexpr int kLanes = 4;
  double lanes[kLanes] = {};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::int64_t i = whole; i < count; ++i) lanes[0] += term(i);
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// Of r, for squares that sum to `squares` (fourth powers to `fourths`).
RelativeError error_of_reciprocal_root(double squares, double fourths, std::int64_t terms,
                                       double eps, const Numerics& numerics) {
  const double function = numerics.function_ulp * 2 * kUnitF32;  // an ulp is two roundoffs
  const double mean = squares / static_cast<double>(terms);
  RelativeError error{function * kUniformSigma, function};
  // r is exactly infinite or zero, or not a number: its error says nothing.
  if (!(mean + eps > 0) || !std::isfinite(squares)) return error;

  const double share = mean / (mean + eps);  // what eps dilutes
  const SumError sum = sum_error(terms, squares, squares, fourths, numerics);
  const double products_sigma = kUnitF32 * kUniformSigma * std::sqrt(fourths);
  const double sum_sigma = squares > 0 ? std::hypot(sum.sigma, products_sigma) / squares : 0;
  const double sum_worst = squares > 0 ? sum.worst / squares + kUnitF32 : 0;
  // The division by the count may be a product with a rounded constant; then eps is added.
  const double around = 3 * kUnitF32;
  error.sigma = std::hypot(error.sigma, share * sum_sigma / 2, around * kUniformSigma / 2);
  error.worst += (share * sum_worst + around) / 2;
  return error;
}

// What rounding x * r to bf16 in between does to one element: the predictable part, and how much
// more the rounding may move where the error of r can push the product over a tie.
struct InnerRounding {
  double shift = 0, flip = 0;
};

InnerRounding round_in_between(double product, double relative) {
  const double rounded = decode_bf16(encode_bf16(product));
  const double low = decode_bf16(encode_bf16(product * (1 - relative)));
  const double high = decode_bf16(encode_bf16(product * (1 + relative)));
  return {rounded - product, std::max(std::abs(high - rounded), std::abs(low - rounded))};
}

void round_row_in_between(const std::vector<double>& x, const std::vector<double>& weight, double r,
                          double relative, std::int64_t at, Estimate& estimate) {
  for (std::size_t i = 0; i < x.size(); ++i, ++at) {
    const double w = weight.empty() ? 1 : weight[i];
    const InnerRounding inner = round_in_between(x[i] * r, relative);
    estimate.shift[at] = inner.shift * w;
    estimate.sigma[at] += inner.flip * std::abs(w);
    estimate.worst[at] += inner.flip * std::abs(w);
  }
}

RowScale row_scale(const std::vector<double>& x, double eps, const Numerics& numerics) {
  const auto columns = static_cast<std::int64_t>(x.size());
  const auto square = [&x](std::int64_t i) { return x[i] * x[i]; };
  const double squares = sum_in_lanes(columns, square);
  const double fourths =
      sum_in_lanes(columns, [&](std::int64_t i) { return square(i) * square(i); });
  return {1 / std::sqrt(squares / static_cast<double>(columns) + eps),
          error_of_reciprocal_root(squares, fourths, columns, eps, numerics)};
}

}  // namespace

std::vector<double> decode_row(const std::uint16_t* bits, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  decode_bf16_array(bits, count, values.data());
  return values;
}

double sum_of_magnitudes(const double* values, std::int64_t count) {
  return sum_in_lanes(count, [values](std::int64_t i) { return std::abs(values[i]); });
}

RowScale estimate_row_norm(const std::vector<double>& x, const std::vector<double>& weight,
                           double eps, NormRounding rounding, const Numerics& numerics,
                           std::int64_t row, Estimate& estimate, double x_error) {
  const auto columns = static_cast<std::int64_t>(x.size());
  const auto [r, root] = row_scale(x, eps, numerics);
  const double products = weight.empty() ? 1 : 2;
  // An error of x counts in its own element and, with all others', in the mean square: there it
  // averages out unless one element is nearly all of it, and then both shifts nearly cancel.
  const double sigma = std::hypot(root.sigma, kUnitF32 * kUniformSigma * std::sqrt(products),
                                  x_error * kUniformSigma);
  const double worst = root.worst + products * kUnitF32 + 2 * x_error;

  double* const value = estimate.value.data() + row * columns;
  double* const sigmas = estimate.sigma.data() + row * columns;
  double* const worsts = estimate.worst.data() + row * columns;
  for (std::int64_t i = 0; i < columns; ++i) {
    const double y = weight.empty() ? x[i] * r : x[i] * r * weight[i];
    const double size = std::abs(y);
    value[i] = y;
    sigmas[i] = size * sigma;
    worsts[i] = size * worst;
  }
  if (rounding == NormRounding::twice) {
    round_row_in_between(x, weight, r, worst, row * columns, estimate);
  }
  const double mean_magnitude = sum_of_magnitudes(value, columns) / static_cast<double>(columns);
  estimate.row_mean_sigma[row] = mean_magnitude * root.sigma;
  return {r, root};
}

}  // namespace plumb::reference
