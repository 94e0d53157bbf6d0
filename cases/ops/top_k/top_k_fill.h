// SPDX-License-Identifier: Apache-2.0
//
// Logits for the top-k operations. What a row's window does not cover (columns in front of it and
// behind it, gaps between columns and rows) holds NaN, infinity and the largest finite number,
// which would win everywhere.
//
//   exact        distinct integers in shuffled order: one right set of indices
//   real         normal, rows of very different norm, one logit in 64 an outlier, one in 8 exactly
//   0 adversarial  one of the patterns below per row, or the one that the case names
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cases/tables/row.h"
#include "cases/tensors/step.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

enum class LogitPattern {
  all_equal,
  two_values,
  few_winners,     // about 100 positive logits, the others 0, as ReLU leaves them
  low_bits,        // 0x3F900000 in the upper 22 bits, random below
  huge,            // above 65504, the largest fp16, of both signs
  special_values,  // NaN, infinity of both signs, signed zeros, subnormals among normal numbers
  threshold_ties,  // about k/2 winners; half of the others share the threshold
  negative,
  ascending,
  descending,
  signed_zeros,
  few_finite,  // about k/5 finite logits, the others -inf
  few_nans,    // about k/4 NaN with payloads
  near_ties,   // a few hundred neighbouring floats, of any size and sign
  clusters,    // k/2 winners side by side in 1 to 8 places, evenly spaced; the others 0 to 1
  count
};
WordParameter pattern_word();
std::optional<LogitPattern> pattern_named(const Row& row);

// What one row's window holds.
struct WindowFill {
  std::uint64_t seed = 0;  // of the step
  Fill fill = Fill::real;
  std::optional<LogitPattern> pattern;  // if set, also instead of the real fill
  std::int32_t k = 0;
  std::int64_t column_stride = 1;  // elements
  bool nan_of_both_signs = false;  // else +NaN alone: where NaN of either sign stands is a choice
};

// Fills live row `row` all over, its window [start, end) as `how` says; an empty window is none.
void fill_logits(HostTensor& logits, std::int64_t row, std::int64_t start, std::int64_t end,
                 const WindowFill& how);
// Rows from `live` on as the step says; the gaps as everywhere.
void fill_dead_logits(HostTensor& logits, const Step& step, std::int64_t live);

}  // namespace plumb::cases
