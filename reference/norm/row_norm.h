// SPDX-License-Identifier: Apache-2.0
//
// Rows of the RMSNorm family, as tracked arrays.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

enum class NormRounding {
  once,   // fp32 throughout, rounded at the store
  twice,  // x * r is rounded to bf16 before the product with the weight
  factor  // r is rounded to bf16, then as twice
};

// r = 1 / sqrt(mean(x^2) + eps) of each row, rounded as said. x: [rows, columns]; r: [rows, 1].
Tracked row_factors(const Tracked& x, double eps, NormRounding rounding);
// x * r, rounded as said but for the store. Non-finite x propagate as IEEE arithmetic has it.
Tracked scaled_rows(Tracked x, Tracked r, NormRounding rounding);

using RowsOf = std::function<Tracked(std::int64_t begin, std::int64_t end)>;
// bf16 [rows, columns]: rows of x(begin, end), which are [end - begin, columns], normalised and
// multiplied by the weight. weight: bf16 [columns]; nullptr: 1.
Estimate estimate_row_norm(std::int64_t rows, std::int64_t columns, const RowsOf& x,
                           const std::uint16_t* weight, double eps, NormRounding rounding,
                           const Numerics& numerics);

// The same, where r is of other rows than those that it multiplies: the squares are of
// squared(begin, end), as a sum before it is stored is.
Estimate estimate_row_norm(std::int64_t rows, std::int64_t columns, const RowsOf& squared,
                           const RowsOf& x, const std::uint16_t* weight, double eps,
                           NormRounding rounding, const Numerics& numerics);

// An estimate of bf16 rows by blocks of a size that a core's cache holds.
Estimate estimate_rows(std::int64_t rows, std::int64_t columns, const RowsOf& of_rows);

// bf16 rows [begin, end) of `columns` elements, which begin at at(row).
Tracked decoded_rows(std::int64_t begin, std::int64_t end, std::int64_t columns,
                     const std::function<const std::uint16_t*(std::int64_t row)>& at,
                     const Numerics& numerics);

}  // namespace plumb::reference
