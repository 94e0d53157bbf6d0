// SPDX-License-Identifier: Apache-2.0
#include "reference/quantization/group_quant.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/formats/bfloat16.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

// Error of an fp32 quotient; NaN for a divisor that is no scale, under which no code is right. A
// function's error of `function_ulp` is 2 u function_ulp of its value; one of half a unit is
// correct rounding, which leaves alone what needs none.
SumError quotient_error(double x, double divisor, bool by_reciprocal, const Numerics& numerics) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (!(divisor > 0) || std::isinf(divisor)) return {kNan, kNan};
  const double quotient = x / divisor;
  if (is_power_of_two(divisor) || !std::isfinite(quotient)) return {};
  const double division = 2 * kUnitF32 * std::max(numerics.function_ulp, 0.5);
  if (by_reciprocal) {
    return {kUniformSigma * std::hypot(division, kUnitF32) * std::abs(quotient),
            (division + kUnitF32) * std::abs(quotient)};
  }
  const bool needs_no_rounding = double{static_cast<float>(quotient)} == quotient;
  if (numerics.function_ulp <= 0.5 && needs_no_rounding) return {};
  return {kUniformSigma * division * std::abs(quotient), division * std::abs(quotient)};
}

double group_amax(const Bf16Rows& x, std::int64_t row, std::int64_t begin, std::int64_t end) {
  double amax = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    amax = std::max(amax, std::abs(decode_bf16(x.data[row * x.row_stride + i])));
  }
  return amax;
}

// Scales before any rounding to a format.
Estimate exact_scales(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics) {
  Estimate scales;
  const std::int64_t groups = how.groups(x.columns);
  scales.resize(x.rows, groups);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t begin = g * how.group, end = std::min(x.columns, begin + how.group);
      const double amax = std::max(group_amax(x, row, begin, end), how.amax_floor);
      const SumError error = quotient_error(amax, how.largest, false, numerics);
      const std::int64_t i = row * groups + g;
      scales.value[i] = std::max(amax / how.largest, how.scale_floor);
      scales.sigma[i] = error.sigma;
      scales.worst[i] = error.worst;
    }
  }
  return scales;
}

}  // namespace

GroupQuant fp8_quant(Dialect dialect, std::int64_t group) {
  return {.code = code_format(dialect), .largest = e4m3_quantisation_max(dialect), .group = group};
}

Estimate group_scales(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics) {
  Estimate scales = exact_scales(x, how, numerics);
  scales.output = Format::f32;
  // A correctly rounded quotient has the output's rounding and no other.
  if (numerics.function_ulp <= 0.5) {
    std::ranges::fill(scales.sigma, 0);
    std::ranges::fill(scales.worst, 0);
  }
  return scales;
}

CodeEstimate group_scale_bytes(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics) {
  return {.format = CodeFormat::ue8m0, .before = exact_scales(x, how, numerics)};
}

CodeEstimate group_codes(const Bf16Rows& x, const std::vector<double>& scales,
                         const GroupQuant& how, const Numerics& numerics) {
  CodeEstimate codes{.format = how.code, .before = {}};
  const std::int64_t groups = how.groups(x.columns), columns = groups * how.group;
  codes.before.resize(x.rows, columns);
  if (how.by_reciprocal) codes.shared_error = how.group;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t c = 0; c < x.columns; ++c) {
      const double scale = scales[row * groups + c / how.group];
      const double value = decode_bf16(x.data[row * x.row_stride + c]);
      const SumError error = quotient_error(value, scale, how.by_reciprocal, numerics);
      const std::int64_t i = row * columns + c;
      // Written so that NaN stays.
      const double quotient = value / scale;
      codes.before.value[i] = quotient > how.largest    ? how.largest
                              : quotient < -how.largest ? -how.largest
                                                        : quotient;
      codes.before.sigma[i] = error.sigma;
      codes.before.worst[i] = error.worst;
    }
  }
  return codes;
}

}  // namespace plumb::reference
