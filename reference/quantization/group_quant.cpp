// SPDX-License-Identifier: Apache-2.0
#include "reference/quantization/group_quant.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/formats/bfloat16.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

namespace {

// Number of rows of `columns` elements that fit into a core's cache.
std::int64_t rows_per_block(std::int64_t columns) {
  return std::max<std::int64_t>(1, 1024 / std::max<std::int64_t>(1, columns));
}

// Groups [begin, end), counted over all rows: [end - begin, group]. Missing columns of a row's last
// group are 0.
Tracked groups_of(const Bf16Rows& x, const GroupQuant& how, std::int64_t begin, std::int64_t end,
                  const Numerics& numerics) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>((end - begin) * how.group));
  const std::int64_t groups = how.groups(x.columns);
  for (std::int64_t g = begin; g < end; ++g) {
    const std::uint16_t* row = x.data + g / groups * x.row_stride;
    for (std::int64_t i = g % groups * how.group, last = i + how.group; i < last; ++i) {
      values.push_back(i < x.columns ? decode_bf16(row[i]) : 0);
    }
  }
  return {std::move(values), {end - begin, how.group}, numerics};
}

// Scales before they are rounded to their stored format: [rows, groups].
Estimate exact_scales(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics) {
  const std::int64_t groups = how.groups(x.columns);
  const auto at_least = [&](double floor, Tracked a) {
    return max(std::move(a), Tracked({floor}, {}, numerics));
  };
  const auto scales = [&](std::int64_t begin, std::int64_t end) {
    const Tracked amax = max(abs(groups_of(x, how, begin * groups, end * groups, numerics)), 1);
    const Tracked scale = at_least(how.amax_floor, amax) / how.largest;
    return reshaped(at_least(how.scale_floor, scale), {end - begin, groups});
  };
  Estimate all = estimate_by_blocks(x.rows, rows_per_block(x.columns), Format::f32, scales);
  all.columns = groups;  // even if there are no rows
  return all;
}

// amax / divisor of each group, without error: for a bf16 amax, the quotient reaches a power of two
// exactly if amax reaches the power times the divisor.
Estimate quotients_of_bits(const Bf16Rows& x, const GroupQuant& how) {
  Estimate all;
  all.resize(x.rows, how.groups(x.columns));
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t g = 0; g < all.columns; ++g) {
      double amax = how.amax_floor;
      for (std::int64_t i = g * how.group; i < std::min(x.columns, (g + 1) * how.group); ++i) {
        amax = std::max(amax, std::abs(decode_bf16(x.data[row * x.row_stride + i])));
      }
      all.value[row * all.columns + g] = amax / how.scale_divisor();
    }
  }
  return all;
}

}  // namespace

GroupQuant fp8_quant(Dialect dialect, std::int64_t group) {
  return {.code = code_format(dialect), .largest = e4m3_quantisation_max(dialect), .group = group};
}

Estimate group_scales(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics) {
  Numerics quotient = numerics;
  // The only error of a correctly rounded quotient is the rounding of the output.
  if (numerics.function_ulp <= 0.5) quotient.function_ulp = 0;
  return exact_scales(x, how, quotient);
}

CodeEstimate group_scale_bytes(const Bf16Rows& x, const GroupQuant& how, const Numerics& numerics) {
  if (how.scale_rule != ScaleRule::rceil) {
    return {.format = CodeFormat::ue8m0_down, .before = quotients_of_bits(x, how)};
  }
  GroupQuant from_byte_1 = how;
  constexpr double kLeast = 0x1p-126;  // byte 1: smaller quotients all give this byte
  if (how.amax_floor < how.largest * kLeast) {
    from_byte_1.scale_floor = std::max(how.scale_floor, kLeast);
  }
  return {.format = CodeFormat::ue8m0, .before = exact_scales(x, from_byte_1, numerics)};
}

CodeEstimate group_codes(const Bf16Rows& x, const std::vector<double>& scales,
                         const GroupQuant& how, const Numerics& numerics) {
  const auto is_scale = [](double scale) { return scale > 0 && scale < kInfinity; };
  const auto quotients = [&](std::int64_t begin, std::int64_t end) {
    const Tracked group = groups_of(x, how, begin, end, numerics);
    const Tracked scale({scales.begin() + begin, scales.begin() + end}, {end - begin, 1}, numerics);
    const Tracked one({1}, {}, numerics);
    return clamp(how.by_reciprocal ? group * (one / scale) : group / scale, -how.largest,
                 how.largest);
  };
  CodeEstimate codes{.format = how.code,
                     .before = estimate_by_blocks(std::ssize(scales), rows_per_block(how.group),
                                                  Format::f64, quotients),
                     .shared_error = how.by_reciprocal ? how.group : 1};
  for (std::int64_t g = 0; g < std::ssize(scales); ++g) {
    if (is_scale(scales[g])) continue;
    for (std::vector<double>* of : {&codes.before.sigma, &codes.before.worst}) {
      std::fill_n(of->begin() + g * how.group, how.group, std::nan(""));
    }
  }
  codes.before.rows = x.rows;
  codes.before.columns = how.groups(x.columns) * how.group;
  return codes;
}

}  // namespace plumb::reference
