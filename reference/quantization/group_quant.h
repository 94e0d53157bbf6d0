// SPDX-License-Identifier: Apache-2.0
//
// Rows of bf16 quantised in groups of consecutive columns that share a scale: the scales, and the
// codes under given scales (operations spec, 9.2 and 9.3).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/codes.h"

namespace plumb::reference {

struct Bf16Rows {
  const std::uint16_t* data = nullptr;
  std::int64_t rows = 0, columns = 0, row_stride = 0;
};

// Bytes of scales under engines' rules, from a = max(amax, amax_floor).
enum class ScaleRule {
  rceil,  // a / largest, rounded up to a power of two
  even,   // a / 3.5, rounded down: a quarter of a, its mantissa rounded to one bit first
  floor   // a / 4, rounded down
};

// scale = max(max(amax, amax_floor) / largest, scale_floor), code = encode(clamp(x / scale)).
struct GroupQuant {
  CodeFormat code = CodeFormat::e4m3fn;
  double largest = 448;
  std::int64_t group = 128;  // columns; the last group of a row may have fewer
  double amax_floor = 0, scale_floor = 0;
  bool by_reciprocal = false;               // x * (1 / scale)
  ScaleRule scale_rule = ScaleRule::rceil;  // of group_scale_bytes; the other two are of E2M1

  // What amax is divided by for the byte of the scale.
  double scale_divisor() const {
    if (scale_rule == ScaleRule::rceil) return largest;
    return scale_rule == ScaleRule::even ? 3.5 : 4;
  }

  std::int64_t groups(std::int64_t columns) const { return (columns + group - 1) / group; }
};
// largest = 448 or 224, by the dialect.
GroupQuant fp8_quant(Dialect dialect, std::int64_t group);

// [rows, groups] fp32.
Estimate group_scales(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics);
// [rows, groups] UE8M0: a power of two, by the rule. Those that round down work on bits: exact.
CodeEstimate group_scale_bytes(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics);

// [rows, groups * group] under the scales [rows, groups] that were stored; none is right under what
// is no positive number. Columns that a row lacks are 0. Exact where the scale is a power of two,
// and where a correctly rounded quotient is an fp32 number.
CodeEstimate group_codes(const Bf16Rows& x, const std::vector<double>& scales,
                         const GroupQuant& how, const Numerics& numerics);

}  // namespace plumb::reference
