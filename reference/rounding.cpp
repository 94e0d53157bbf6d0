// SPDX-License-Identifier: Apache-2.0
#include "reference/rounding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace plumb::reference {

namespace {

struct RoundingGrid {
  int digits;          // bits of the significand, including the leading one
  int least_exponent;  // smallest exponent of a normal number
};

RoundingGrid grid_of(Format format) {
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

double power_of_two(int exponent) {
  if (exponent < -1022) return std::ldexp(1.0, exponent);
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// The normal distribution, interpolated because the C library's erfc is slow and each tie needs a
// value. Cubic Hermite polynomials over 1/32 have an error of at most (1/32)^4 / 384 of the fourth
// derivative: less than 1e-8.
struct Normal {
  double above = 0, density = 0;  // P(Z > z), phi(z)
};

class NormalTable {
 public:
  NormalTable() {
    for (int i = 0; i <= kIntervals; ++i) {
      const double z = i * kWidth - kReach;
      nodes_[i].above = 0.5 * std::erfc(z / std::numbers::sqrt2);
      nodes_[i].density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    }
  }

  Normal at(double z) const {
    if (z <= -kReach) return {1, 0};
    if (z >= kReach) return {0, 0};
    const int i = static_cast<int>((z + kReach) / kWidth);
    const double left = i * kWidth - kReach, right = left + kWidth;
    const double t = (z - left) / kWidth;
    const Normal &a = nodes_[i], &b = nodes_[i + 1];
    return {hermite(t, a.above, b.above, -a.density, -b.density),
            hermite(t, a.density, b.density, -left * a.density, -right * b.density)};
  }

 private:
  static constexpr double kWidth = 1.0 / 32;
  static constexpr int kIntervals = static_cast<int>(2 * kReach / kWidth);

  static double hermite(double t, double a, double b, double slope_a, double slope_b) {
    const double s = 1 - t;
    return s * s * ((1 + 2 * t) * a + t * kWidth * slope_a) +
           t * t * ((1 + 2 * s) * b - s * kWidth * slope_b);
  }

  std::array<Normal, kIntervals + 1> nodes_;
};

// On a grid of constant spacing the rounding error of x is -step / pi sum_k (-1)^(k+1) sin(2 pi k x
// / step) / k. A normal x damps term k by exp(-2 pi^2 k^2 s^2) with s = sigma / step. For s >= 1/2
// the terms after the first are below 3e-9; for s >= 1 the first one is too.
RoundedError on_even_grid(double centre, double sigma, double step) {
  const double s = sigma / step;
  RoundedError error{0, sigma * sigma + step * step / 12, sigma, step, 0};
  if (s >= 1) return error;
  constexpr double kPi = std::numbers::pi;
  const double damping = std::exp(-2 * kPi * kPi * s * s);
  const double phase = 2 * kPi * std::remainder(centre / step, 1.0);
  const double sine = damping * std::sin(phase), cosine = damping * std::cos(phase);
  error.mean = -step / kPi * sine;
  error.slope = sigma * (1 - 2 * cosine);
  error.variance -=
      4 * sigma * sigma * cosine + step * step / (kPi * kPi) * cosine + error.mean * error.mean;
  return error;
}

// True if the grid around `centre` may be treated as evenly spaced. At a power of two the step
// doubles, which moves the mean by up to (step / sigma) / 8 * density(0) of a step. Only an error
// much wider than a step makes that negligible.
bool sees_even_grid(Format format, double centre, double sigma) {
  const double step = spacing(format, centre);
  if (sigma < step / 2) return false;
  return sigma >= 8 * step || (spacing(format, centre - kReach * sigma) == step &&
                               spacing(format, centre + kReach * sigma) == step);
}

}  // namespace

bool is_power_of_two(double x) {
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  if (bits >> 52 == 0) return std::has_single_bit(bits);
  return (bits & kFraction) == 0 && x > 0 && x < kInfinity;
}

double largest_finite(Format format) {
  const int digits = grid_of(format).digits;
  const int exponent = format == Format::f64 ? 1023 : 127;
  return (2 - power_of_two(1 - digits)) * power_of_two(exponent);
}

double spacing(Format format, double x) {
  const RoundingGrid grid = grid_of(format);
  // Exponent field of the double. It is 0 for subnormal numbers, which are below every format's
  // least exponent.
  const auto field = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff);
  return power_of_two(std::max(field - 1023, grid.least_exponent) - grid.digits + 1);
}

double nearest(Format format, double x) {
  if (format == Format::f64 || !std::isfinite(x)) return x;
  const double step = spacing(format, x);
  if (std::abs(x) > 0x1p900) return std::nearbyint(x / step) * step;
  // Between 2^52 and 2^53 steps the spacing of doubles is one step, so the addition rounds to
  // steps.
  const double anchor = step * 0x1.8p52;
  return std::copysign((x + anchor) - anchor, x);
}

double above(Format format, double x) {
  // The neighbour above a negative number is nearer to zero, perhaps in the next lower binade with
  // its finer spacing.
  return x + spacing(format, x < 0 ? std::nextafter(x, 0.0) : x);
}

RoundedError rounded_error(Format format, double centre, double sigma) {
  static const NormalTable normal;
  const double c = std::abs(centre);
  const double step = spacing(format, c);
  if (sees_even_grid(format, c, sigma)) return on_even_grid(centre, sigma, step);
  const double first = nearest(format, c - kReach * sigma);
  const double last = nearest(format, c + kReach * sigma);
  RoundedError error{.mean = first - c};
  const double scale = 1 / sigma;
  double gain = 0, square = 0;  // mean of (result - first) and of its square
  for (double x = first; x < last;) {
    const double next = above(format, x);
    const double gap = next - x;
    const double tie = (x + gap / 2 - c) * scale;
    const Normal passed = normal.at(tie);
    gain += gap * passed.above;
    square += ((next - first) + (x - first)) * gap * passed.above;
    error.slope += gap * passed.density;
    error.step = std::max(error.step, gap);
    error.square_step = std::max(error.square_step, 2 * gap * std::abs(tie) * sigma);
    x = next;
  }
  error.mean = std::copysign(1.0, centre) * (error.mean + gain);
  error.variance = std::max(0.0, square - gain * gain);
  return error;
}

}  // namespace plumb::reference
