// SPDX-License-Identifier: Apache-2.0
//
// Quantises rows of bf16 in groups of consecutive columns that share a scale: computes the scales,
// and the codes under given scales (operations spec, 9.2 and 9.3).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/codes.h"

namespace plumb::reference {

struct Bf16Rows {
  const std::uint16_t* data = nullptr;
  std::int64_t rows = 0, columns = 0, row_stride = 0;
};

// How engines compute the byte of a scale from a = max(amax, amax_floor).
enum class ScaleRule {
  rceil,  // a / largest, rounded up to a power of two
  even,   // a / 3.5, rounded down: equal to a / 4 with its mantissa first rounded to one bit
  floor   // a / 4, rounded down
};

// scale = max(max(amax, amax_floor) / largest, scale_floor), code = encode(clamp(x / scale)).
struct GroupQuant {
  CodeFormat code = CodeFormat::e4m3fn;
  double largest = 448;
  std::int64_t group = 128;  // columns; the last group of a row may have fewer
  double amax_floor = 0, scale_floor = 0;
  bool by_reciprocal = false;               // code of x * (1 / scale)
  ScaleRule scale_rule = ScaleRule::rceil;  // for group_scale_bytes; only E2M1 uses the other two

  // amax is divided by this number to get the byte of the scale.
  double scale_divisor() const {
    if (scale_rule == ScaleRule::rceil) return largest;
    return scale_rule == ScaleRule::even ? 3.5 : 4;
  }

  std::int64_t groups(std::int64_t columns) const { return (columns + group - 1) / group; }
};
// largest = 448 (e4m3fn) or 224 (e4m3fnuz).
GroupQuant fp8_quant(Dialect dialect, std::int64_t group);

// Returns fp32 [rows, groups].
Estimate group_scales(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics);
// Returns UE8M0 [rows, groups]: a power of two, rounded as `scale_rule` says. Kernels of the rules
// that round down work on bits, so these scales have no error.
CodeEstimate group_scale_bytes(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics);

// Codes [rows, groups * group] under the stored `scales` [rows, groups]. If a scale is not a
// positive finite number, no code is right. Missing columns of a row are 0. Codes are exact if the
// scale is a power of two, or if the correctly rounded quotient is an fp32 number.
CodeEstimate group_codes(const Bf16Rows& x, const std::vector<double>& scales,
                         const GroupQuant& how, const Numerics& numerics);

}  // namespace plumb::reference
