// SPDX-License-Identifier: Apache-2.0
//
// Row computations of the RMSNorm family, as tracked arrays.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

enum class NormRounding {
  once,   // fp32 throughout, rounded at the store
  twice,  // x * r is rounded to bf16 before the product with the weight
  factor  // r is rounded to bf16, and then x * r as well
};

// r = 1 / sqrt(mean(x^2) + eps) of each row, rounded as `rounding` says. x: [rows, columns]; r:
// [rows, 1].
Tracked row_factors(const Tracked& x, double eps, NormRounding rounding);
// x * r, rounded as `rounding` says, without the rounding of the store. Non-finite x propagate as
// in IEEE arithmetic.
Tracked scaled_rows(Tracked x, Tracked r, NormRounding rounding);
// y = x * r, with limited errors in rows whose sum of squares is near the end of fp32's range or
// past it, so that r is 0 in some kernels: there, |y| is at most the root of the number of columns.
// Errors without a limit stay in other rows, where r may be infinite, or the numerics explain
// anything.
Tracked limited_rows(Tracked y, const Tracked& r);

using RowsOf = std::function<Tracked(std::int64_t begin, std::int64_t end)>;
// Normalises rows and multiplies them by the weight. x(begin, end) returns rows [begin, end) as
// [end - begin, columns]. weight: bf16 [columns]; nullptr: 1. Returns bf16 [rows, columns].
Estimate estimate_row_norm(std::int64_t rows, std::int64_t columns, const RowsOf& x,
                           const std::uint16_t* weight, double eps, NormRounding rounding,
                           const Numerics& numerics);

// Like above, but r comes from other rows than those that it multiplies: the mean square is taken
// of squared(begin, end), such as a sum before it is rounded.
Estimate estimate_row_norm(std::int64_t rows, std::int64_t columns, const RowsOf& squared,
                           const RowsOf& x, const std::uint16_t* weight, double eps,
                           NormRounding rounding, const Numerics& numerics);

// Estimate of bf16 rows, computed in blocks that fit into a core's cache.
Estimate estimate_rows(std::int64_t rows, std::int64_t columns, const RowsOf& of_rows);

// Rows [begin, end) of bf16, `columns` elements each. at(row) points to the first element of a row.
Tracked decoded_rows(std::int64_t begin, std::int64_t end, std::int64_t columns,
                     const std::function<const std::uint16_t*(std::int64_t row)>& at,
                     const Numerics& numerics);

}  // namespace plumb::reference
