// SPDX-License-Identifier: Apache-2.0
//
// Logits of the top-k ops, fp32 or bf16. All columns outside of a row's window, and the gaps
// between columns and rows, hold NaN, infinity and the largest finite number of fp32, which is
// infinity in bf16: a kernel that reads them selects them. Numbers are rounded to bf16, so that
// rows of bf16 have many equal logits.
//
//   exact: distinct integers in shuffled order, or distinct numbers in bf16 (if a row has at most
//          65,000 columns): one set of indices is right
//   real: normal numbers, norms differ between rows; one logit in 64 an outlier, one in 8 exactly 0
//   adversarial: each row has one of the patterns below, or the one that the case names
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
  low_bits,        // upper 22 bits those of 0x3F900000, lower 10 bits random; bf16: 1 to 2
  huge,            // above 65504, the largest fp16, of both signs
  special_values,  // NaN, infinity of both signs, signed zeros, subnormals among normal numbers
  threshold_ties,  // about k/2 winners; half of the others share the threshold
  negative,
  ascending,
  descending,
  signed_zeros,
  few_finite,  // about k/5 finite logits, the others -inf
  few_nans,    // about k/4 NaN with payloads
  near_ties,   // up to 200 neighbouring numbers of the format, of any size and sign
  clusters,    // k/2 winners side by side in 1 to 8 places, evenly spaced; the others 0 to 1
  count
};
WordParameter pattern_word();
std::optional<LogitPattern> pattern_named(const Row& row);

// How to fill the window of one row.
struct WindowFill {
  std::uint64_t seed = 0;  // of the step
  Fill fill = Fill::real;
  std::optional<LogitPattern> pattern;  // if set, real and adversarial fills have it
  std::int32_t k = 0;
  std::int64_t column_stride = 1;  // elements
  bool nan_of_both_signs = false;  // -NaN too: the row names its nan_order
};

// Fills live row `row`: its window [start, end) as `how` says, all else with garbage. end <= start:
// the window is empty.
void fill_logits(HostTensor& logits, std::int64_t row, std::int64_t start, std::int64_t end,
                 const WindowFill& how);
// Fills rows from `live` on as the step says, and their gaps with garbage.
void fill_dead_logits(HostTensor& logits, const Step& step, std::int64_t live);

}  // namespace plumb::cases
