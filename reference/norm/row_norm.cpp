// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/row_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "reference/four_doubles.h"
#include "reference/rounding.h"

namespace plumb::reference {

Tracked row_factors(const Tracked& x, double eps, NormRounding rounding) {
  Tracked r = rsqrt(mean(x * x, 1) + eps);
  return rounding == NormRounding::factor ? rounded(std::move(r), Format::bf16) : r;
}

Tracked scaled_rows(Tracked x, Tracked r, NormRounding rounding) {
  Tracked y = std::move(x) * std::move(r);
  return rounding == NormRounding::once ? y : rounded(std::move(y), Format::bf16);
}

Tracked limited_rows(Tracked y, const Tracked& r) {
  // x, r and y may each be rounded to bf16, and the sum has errors of fp32.
  const double rounded = std::pow(1 + kUnitBf16, 4);
  const double limit = rounded * std::sqrt(static_cast<double>(y.sizes().back()));
  // A gated sum may be smaller than its streams, whose squares are past the range.
  constexpr double kNearOverflow = 0x1p-32;
  std::vector<double> sizes;
  for (const double factor : r.centres()) {
    const double squares = static_cast<double>(y.sizes().back()) / (factor * factor);
    sizes.push_back(squares > kNearOverflow * largest_finite(Format::f32) ? limit : kInfinity);
  }
  return limited(std::move(y), sizes);
}

namespace {

Estimate weighted_rows(std::int64_t rows, std::int64_t columns, const RowsOf& normalised,
                       const std::uint16_t* weight, const Numerics& numerics) {
  if (weight == nullptr) return estimate_rows(rows, columns, normalised);
  const Tracked factors =
      decoded_rows(0, 1, columns, [&](std::int64_t) { return weight; }, numerics);
  return estimate_rows(rows, columns, [&](std::int64_t begin, std::int64_t end) {
    return normalised(begin, end) * factors;
  });
}

}  // namespace

Estimate estimate_row_norm(std::int64_t rows, std::int64_t columns, const RowsOf& x,
                           const std::uint16_t* weight, double eps, NormRounding rounding,
                           const Numerics& numerics) {
  const auto normalised = [&](std::int64_t begin, std::int64_t end) {
    const Tracked of_rows = x(begin, end);
    const Tracked r = row_factors(of_rows, eps, rounding);
    return limited_rows(scaled_rows(of_rows, r, rounding), r);
  };
  return weighted_rows(rows, columns, normalised, weight, numerics);
}

Estimate estimate_row_norm(std::int64_t rows, std::int64_t columns, const RowsOf& squared,
                           const RowsOf& x, const std::uint16_t* weight, double eps,
                           NormRounding rounding, const Numerics& numerics) {
  const auto normalised = [&](std::int64_t begin, std::int64_t end) {
    const Tracked r = row_factors(squared(begin, end), eps, rounding);
    return limited_rows(scaled_rows(x(begin, end), r, rounding), r);
  };
  return weighted_rows(rows, columns, normalised, weight, numerics);
}

Estimate estimate_rows(std::int64_t rows, std::int64_t columns, const RowsOf& of_rows) {
  constexpr std::int64_t kElementsOfBlock = 1 << 13;
  const std::int64_t block = std::clamp<std::int64_t>(kElementsOfBlock / columns, 1, 64);
  return estimate_by_blocks(rows, block, Format::bf16, of_rows);
}

Tracked decoded_rows(std::int64_t begin, std::int64_t end, std::int64_t columns,
                     const std::function<const std::uint16_t*(std::int64_t row)>& at,
                     const Numerics& numerics) {
  std::vector<double> values(static_cast<std::size_t>((end - begin) * columns));
  for (std::int64_t row = begin; row < end; ++row) {
    decode_bf16_array(at(row), columns, values.data() + (row - begin) * columns);
  }
  return {std::move(values), {end - begin, columns}, numerics};
}

}  // namespace plumb::reference
