// SPDX-License-Identifier: Apache-2.0
//
// Error model. The mean square carries the roundings of the squares, of their sum, of the division
// and of adding eps; the square root halves a relative error; r carries the reciprocal root's own.
// All that is shared by the row. Each element adds the roundings of its two products.
#include "reference/norm/row_norm.h"

#include <algorithm>
#include <cmath>

#include "reference/formats/bfloat16.h"
#include "reference/four_doubles.h"

namespace plumb::reference {

namespace {

// Sums in four lanes, which are joined at the end: one sum would wait for each addition. What is
// left over goes to the first.
double joined(const Four& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

struct PowerSums {
  double squares = 0, fourths = 0;
};
PLUMB_FOR_ANY_TARGET void sum_powers(const double* x, std::int64_t count, PowerSums& sums) {
  Four squares = {}, fourths = {};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four four;
    load(x + i, four);
    const Four square = four * four;
    squares += square;
    fourths += square * square;
  }
  for (; i < count; ++i) {
    squares[0] += x[i] * x[i];
    fourths[0] += x[i] * x[i] * (x[i] * x[i]);
  }
  sums = {joined(squares), joined(fourths)};
}
PLUMB_WIDE_TARGET void wide_sum_powers(const double* x, std::int64_t count, PowerSums& sums) {
  sum_powers(x, count, sums);
}
void narrow_sum_powers(const double* x, std::int64_t count, PowerSums& sums) {
  sum_powers(x, count, sums);
}

PLUMB_FOR_ANY_TARGET double magnitudes_of(const double* values, std::int64_t count) {
  Four sums = {};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four four, size;
    load(values + i, four);
    magnitude_of(four, size);
    sums += size;
  }
  for (; i < count; ++i) sums[0] += std::abs(values[i]);
  return joined(sums);
}

// What a row's elements are made of, and where they go.
struct Scaling {
  const double* x;
  const double* weight;  // nullptr: 1
  double r, sigma, worst;
  double *values, *sigmas, *worsts;
};
PLUMB_FOR_ANY_TARGET void scale_row(const Scaling& row, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four value, size;
    load(row.x + i, value);
    value *= row.r;
    if (row.weight != nullptr) {
      Four weight;
      load(row.weight + i, weight);
      value *= weight;
    }
    magnitude_of(value, size);
    store(value, row.values + i);
    store(size * row.sigma, row.sigmas + i);
    store(size * row.worst, row.worsts + i);
  }
  for (; i < count; ++i) {
    const double value =
        row.weight != nullptr ? row.x[i] * row.r * row.weight[i] : row.x[i] * row.r;
    row.values[i] = value;
    row.sigmas[i] = std::abs(value) * row.sigma;
    row.worsts[i] = std::abs(value) * row.worst;
  }
}
PLUMB_WIDE_TARGET void wide_scale_row(const Scaling& row, std::int64_t count) {
  scale_row(row, count);
}
void narrow_scale_row(const Scaling& row, std::int64_t count) { scale_row(row, count); }

// As std::hypot, which takes several times as long to survive squares that no row here has.
double root_of_squares(double a, double b, double c) { return std::sqrt(a * a + b * b + c * c); }

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
  const double sum_sigma =
      squares > 0 ? root_of_squares(sum.sigma, products_sigma, 0) / squares : 0;
  const double sum_worst = squares > 0 ? sum.worst / squares + kUnitF32 : 0;
  // The division by the count may be a product with a rounded constant; then eps is added.
  const double around = 3 * kUnitF32;
  error.sigma = root_of_squares(error.sigma, share * sum_sigma / 2, around * kUniformSigma / 2);
  error.worst += (share * sum_worst + around) / 2;
  return error;
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
  PowerSums sums;
  (has_wide_registers() ? wide_sum_powers : narrow_sum_powers)(x.data(), columns, sums);
  return {1 / std::sqrt(sums.squares / static_cast<double>(columns) + eps),
          error_of_reciprocal_root(sums.squares, sums.fourths, columns, eps, numerics), 0};
}

}  // namespace

std::vector<double> decode_row(const std::uint16_t* bits, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  decode_row(bits, values);
  return values;
}

void decode_row(const std::uint16_t* bits, std::vector<double>& values) {
  decode_bf16_array(bits, static_cast<std::int64_t>(values.size()), values.data());
}

InnerRounding round_in_between(double product, double relative) {
  const double rounded = decode_bf16(encode_bf16(product));
  const double low = decode_bf16(encode_bf16(product * (1 - relative)));
  const double high = decode_bf16(encode_bf16(product * (1 + relative)));
  return {rounded - product, std::max(std::abs(high - rounded), std::abs(low - rounded))};
}

double sum_of_magnitudes(const double* values, std::int64_t count) {
  return magnitudes_of(values, count);
}

RowScale estimate_row_norm(const std::vector<double>& x, const std::vector<double>& weight,
                           double eps, NormRounding rounding, const Numerics& numerics,
                           std::int64_t row, Estimate& estimate, double x_error) {
  const auto columns = static_cast<std::int64_t>(x.size());
  RowScale scale = row_scale(x, eps, numerics);
  const double r = scale.value;
  const RelativeError& root = scale.error;
  const double products = weight.empty() ? 1 : 2;
  // An error of x counts in its own element and, with all others', in the mean square: there it
  // averages out unless one element is nearly all of it, and then both shifts nearly cancel.
  const double sigma = root_of_squares(root.sigma, kUnitF32 * kUniformSigma * std::sqrt(products),
                                       x_error * kUniformSigma);
  const double worst = root.worst + products * kUnitF32 + 2 * x_error;

  const std::int64_t first = row * columns;
  double* const value = estimate.value.data() + first;
  const Scaling scaling{x.data(),
                        weight.empty() ? nullptr : weight.data(),
                        r,
                        sigma,
                        worst,
                        value,
                        estimate.sigma.data() + first,
                        estimate.worst.data() + first};
  (has_wide_registers() ? wide_scale_row : narrow_scale_row)(scaling, columns);
  if (rounding == NormRounding::twice) {
    round_row_in_between(x, weight, r, worst, row * columns, estimate);
  }
  scale.magnitudes = magnitudes_of(value, columns);
  estimate.row_mean_sigma[row] = scale.magnitudes / static_cast<double>(columns) * root.sigma;
  return scale;
}

}  // namespace plumb::reference
