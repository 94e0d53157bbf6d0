// SPDX-License-Identifier: Apache-2.0
#include "reference/codes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/formats/bfloat16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e8m0.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

constexpr std::uint16_t kNanE8m0 = 255;

// UE8M0 code of the least power of two that is not below `value`. The value is not rounded to a
// float first.
std::uint16_t encode_scale(double value) {
  if (!(value >= 0)) return kNanE8m0;
  if (std::isinf(value)) return 254;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // in [0.5, 1), or 0
  if (mantissa == 0) return 1;
  return static_cast<std::uint16_t>(
      std::clamp((mantissa == 0.5 ? exponent - 1 : exponent) + 127, 1, 254));
}

std::uint16_t encode_scale_down(double value) {
  if (!(value >= 0)) return kNanE8m0;
  if (std::isinf(value)) return 254;
  if (value == 0) return 0;
  return static_cast<std::uint16_t>(std::clamp(std::ilogb(value) + 127, 0, 254));
}

bool is_e2m1(CodeFormat format) {
  return format >= CodeFormat::e2m1 && format <= CodeFormat::e2m1_away_unsigned_zero;
}

std::uint16_t sign_bit(CodeFormat format) {
  if (is_e2m1(format)) return 8;
  return format == CodeFormat::bf16 ? 0x8000 : 0x80;
}

std::uint16_t code_of(const CodeEstimate& estimate, double x) {
  return encode(estimate.format,
                estimate.through == Format::f64 ? x : nearest(estimate.through, x));
}

int order_at(const CodeEstimate& estimate, double x) {
  return order_of(estimate.format, code_of(estimate, x));
}

// Centre of element i, as Estimate::centre, but without adding 0 if there is no shift: -0 + 0 is
// +0, which has another code than -0.
double centre_of(const Estimate& before, std::int64_t i) {
  return before.shift.empty() ? before.value[i] : before.value[i] + before.shift[i];
}

// Distance from `inside` to the rounding boundary between `inside` and `outside`, where
// is_inside(order) becomes false, found by bisection to `resolution`. Callers pass a thousandth of
// sigma, which changes a probability by less than a thousandth, or of the largest error.
double distance_to_boundary(const CodeEstimate& estimate, double inside, double outside,
                            double resolution, const auto& is_inside) {
  double in = inside, out = outside;
  while (std::abs(out - in) > resolution) {
    const double middle = in + (out - in) / 2;
    if (middle == in || middle == out) break;
    (is_inside(order_at(estimate, middle)) ? in : out) = middle;
  }
  return std::abs(out - inside);
}

double normal_beyond(double sigmas) { return 0.5 * std::erfc(sigmas / std::numbers::sqrt2); }

}  // namespace

CodeFormat code_format(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? CodeFormat::e4m3fn : CodeFormat::e4m3fnuz;
}

std::uint16_t encode(CodeFormat format, double value) {
  switch (format) {
    case CodeFormat::e4m3fn: return encode_e4m3(value, Dialect::e4m3fn);
    case CodeFormat::e4m3fnuz: return encode_e4m3(value, Dialect::e4m3fnuz);
    case CodeFormat::e2m1: return encode_e2m1(value);
    case CodeFormat::e2m1_down: return encode_e2m1(value, {E2m1Ties::toward_zero});
    case CodeFormat::e2m1_unsigned_zero: return encode_e2m1(value, {E2m1Ties::even, false});
    case CodeFormat::e2m1_down_unsigned_zero:
      return encode_e2m1(value, {E2m1Ties::toward_zero, false});
    case CodeFormat::e2m1_away: return encode_e2m1(value, {E2m1Ties::away});
    case CodeFormat::e2m1_away_unsigned_zero: return encode_e2m1(value, {E2m1Ties::away, false});
    case CodeFormat::ue8m0: return encode_scale(value);
    case CodeFormat::ue8m0_down: return encode_scale_down(value);
    case CodeFormat::bf16: return encode_bf16(value);
  }
  return 0;
}

double decode(CodeFormat format, std::uint16_t code) {
  const auto byte = static_cast<std::uint8_t>(code);
  switch (format) {
    case CodeFormat::e4m3fn: return decode_e4m3(byte, Dialect::e4m3fn);
    case CodeFormat::e4m3fnuz: return decode_e4m3(byte, Dialect::e4m3fnuz);
    case CodeFormat::e2m1:
    case CodeFormat::e2m1_down:
    case CodeFormat::e2m1_unsigned_zero:
    case CodeFormat::e2m1_down_unsigned_zero:
    case CodeFormat::e2m1_away:
    case CodeFormat::e2m1_away_unsigned_zero: return decode_e2m1(byte);
    case CodeFormat::ue8m0:
    case CodeFormat::ue8m0_down: return decode_e8m0(byte);
    case CodeFormat::bf16: return decode_bf16(code);
  }
  return 0;
}

int order_of(CodeFormat format, std::uint16_t code) {
  if (format == CodeFormat::ue8m0 || format == CodeFormat::ue8m0_down) return code;
  const std::uint16_t sign = sign_bit(format);
  const int size = code & (sign - 1);
  return code & sign ? -size - 1 : size;
}

bool is_nan(CodeFormat format, std::uint16_t code) { return std::isnan(decode(format, code)); }

HonestCodes honest_codes(const CodeEstimate& estimate, std::int64_t i) {
  HonestCodes codes;
  const double centre = centre_of(estimate.before, i);
  codes.exact = code_of(estimate, centre);
  codes.nan = std::isnan(centre) && is_nan(estimate.format, codes.exact);
  double error = estimate.before.arithmetic(i);
  if (!(error >= 0)) {  // the error is NaN: no code is right
    codes.nan = false;
    return codes;
  }
  if (!std::isfinite(centre)) error = 0;
  codes.least = codes.most = order_of(estimate.format, codes.exact);
  if (error == 0) return codes;
  const int exact = codes.least;
  codes.least = order_at(estimate, centre - error);
  codes.most = order_at(estimate, centre + error);
  if (codes.least == codes.most) return codes;
  if (estimate.before.structured) {
    codes.flip = 1;
    return codes;
  }
  const double sigma = estimate.before.sigma[i];
  const auto beyond = [&](double outside, const auto& is_inside) {
    return normal_beyond(distance_to_boundary(estimate, centre, outside, sigma * 1e-3, is_inside) /
                         sigma);
  };
  if (codes.least < exact) {
    codes.flip += beyond(centre - error, [=](int order) { return order >= exact; });
  }
  if (codes.most > exact) {
    codes.flip += beyond(centre + error, [=](int order) { return order <= exact; });
  }
  return codes;
}

double flip_effort(const CodeEstimate& estimate, std::int64_t i, int order) {
  const double centre = centre_of(estimate.before, i);
  const int exact = order_at(estimate, centre);
  if (order == exact) return 0;
  const double error = estimate.before.arithmetic(i);
  const double outside = order < exact ? centre - error : centre + error;
  const double distance =
      distance_to_boundary(estimate, centre, outside, error * 1e-3,
                           [=](int at) { return order < exact ? at > order : at < order; });
  return distance / error;
}

std::int64_t most_honest_flips(double expected, std::int64_t together) {
  if (!(expected > 0)) return 0;
  constexpr double kUnlikely = 18;
  const auto unlikelihood = [&](double k) {
    return (k * std::log(k / expected) - k + expected) / static_cast<double>(together);
  };
  auto most = static_cast<std::int64_t>(expected);
  while (unlikelihood(static_cast<double>(most + 1)) <= kUnlikely) ++most;
  return most;
}

}  // namespace plumb::reference
