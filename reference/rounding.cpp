// SPDX-License-Identifier: Apache-2.0
#include "reference/rounding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plumb::reference {

namespace {

struct Grid {
  int digits;          // of the significand, the leading one included
  int least_exponent;  // of a normal number
};

Grid grid_of(Format format) {
  switch (format) {
    case Format::f64: return {53, -1022};
    case Format::f32: return {24, -126};
    case Format::tf32:
    case Format::tf32_truncated: return {11, -126};
    case Format::bf16: return {8, -126};
  }
  return {53, -1022};
}

constexpr double kReach = 8;

double probability_above(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

double density(double z) {
  return std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// An error wider than a step leaves no trace of an even grid: the mean rounding error is below
// 2 exp(-2 pi^2) / pi of the step. At a power of two, where the step doubles, it is up to
// (step / sigma) / 8 * density(0) of it, so there the error has to be wider.
bool is_dither(Format format, double centre, double sigma) {
  const double step = spacing(format, centre);
  if (sigma < step) return false;
  return sigma >= 8 * step || (spacing(format, centre - kReach * sigma) == step &&
                               spacing(format, centre + kReach * sigma) == step);
}

}  // namespace

double largest_finite(Format format) {
  const int digits = grid_of(format).digits;
  const int exponent = format == Format::f64 ? 1023 : 127;
  return std::scalbn(2 - std::scalbn(1.0, 1 - digits), exponent);
}

double spacing(Format format, double x) {
  const Grid grid = grid_of(format);
  const int exponent = x == 0 ? grid.least_exponent : std::max(std::ilogb(x), grid.least_exponent);
  return std::scalbn(1.0, exponent - grid.digits + 1);
}

double nearest(Format format, double x) {
  if (!std::isfinite(x)) return x;
  const double step = spacing(format, x);
  return std::nearbyint(x / step) * step;
}

double above(Format format, double x) {
  // Below zero the neighbour is nearer to zero, perhaps on the finer grid of the next binade.
  return x + spacing(format, x < 0 ? std::nextafter(x, 0.0) : x);
}

RoundedError rounded_error(Format format, double centre, double sigma) {
  const double step = spacing(format, centre);
  if (is_dither(format, centre, sigma)) {
    return {0, sigma * sigma + step * step / 12, sigma, step, 0};
  }
  const double first = nearest(format, centre - kReach * sigma);
  const double last = nearest(format, centre + kReach * sigma);
  if (first == last) return {first - centre, 0, 0, 0, 0};
  RoundedError error;
  double mean = 0, square = 0;  // of the result - first
  for (double x = first; x < last;) {
    const double next = above(format, x);
    const double tie = ((x + next) / 2 - centre) / sigma;
    const double passed = probability_above(tie);
    mean += (next - x) * passed;
    square += ((next - first) + (x - first)) * (next - x) * passed;
    error.slope += (next - x) * density(tie);
    error.step = std::max(error.step, next - x);
    error.square_step = std::max(error.square_step, 2 * (next - x) * std::abs(tie) * sigma);
    x = next;
  }
  error.mean = (first - centre) + mean;
  error.variance = std::max(0.0, square - mean * mean);
  return error;
}

}  // namespace plumb::reference
