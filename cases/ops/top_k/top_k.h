// SPDX-License-Identifier: Apache-2.0
//
// Shared by the cases of both top-k ops: the verdict on the indices of every row, and the sentence
// that names a known kind of error.
#pragma once

#include <plumb/ops/top_k.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tables/row.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/tensor.h"
#include "reference/top_k/top_k_per_row.h"

namespace plumb::cases {

// The values stand in the order of reference::NanOrder.
inline const ContractChoice kNanOrder{
    "nan_order",
    {"all_nan_top", "sign_ordered", "unspecified"},
    "NaN: above +inf and all equal, by sign above +inf and below -inf, or a row with NaN is free",
    {{"*", "unspecified", "a row with a NaN is free"},
     {"unspecified", "all_nan_top", "plumb's kernel of unspecified takes every NaN first"}}};

inline const Parameter kLogitsInBf16{"bf16", 0, 0, 1, "1: logits in bf16; 0: in fp32"};

// The values stand in the order of plumb_zero_order.
inline const ContractChoice kZeroOrder{
    "zeros", {"by_sign", "equal"}, "-0: below +0, as bits are ordered, or equal to it"};

// Adds logits with gaps between columns and rows, and the indices of each row's largest logits.
template <class P>
void add_selection(TablePart<P>& t, const Formula& num_rows, const Formula& all_columns) {
  const Formula rows = t.scalar("rows", &P::rows, num_rows);
  const Formula columns = t.scalar("columns", &P::columns, all_columns);
  const Formula k = t.scalar("k", &P::k);
  const Formula width = columns * t.scalar("logits_column_stride", &P::logits_column_stride,
                                           parameter("column_stride"));
  const Formula stride =
      t.scalar("logits_row_stride", &P::logits_row_stride, width + parameter("row_gap"));
  const Formula bf16 = parameter("bf16");
  t.scalar("logits_format", &P::logits_format,
           bf16 * (PLUMB_LOGITS_BF16 - PLUMB_LOGITS_F32) + PLUMB_LOGITS_F32);
  t.input("logits", &P::logits, {rows, width}, "rows to select from")
      .elements(dtype_if(bf16, Dtype::bf16, Dtype::f32))
      .strides({stride, 1});
  t.choice("nan_order", &P::nan_order, kNanOrder);
  t.choice("zeros", &P::zeros, kZeroOrder);
  t.output("indices", &P::indices, {rows, k}, "columns of the window, then -1");
  t.strides({{"indices_row_stride", &P::indices_row_stride}});
}

// The windows of columns from which the rows of one launch select.
struct TopKWindows {
  std::vector<reference::LogitWindow> windows;
  std::vector<std::int64_t> starts;  // first column of each window
  std::int64_t columns = 0;          // of the logits
  std::int32_t k = 0;
};

// Judges every row of indices [rows, k]. A row has to name a set of the k largest logits, with any
// choice among equal ones. If the implementation declares an order, or a choice among equal logits,
// the row also has to keep these. Rows with an empty window, such as padded ones, are all -1.
TensorReport judge_top_k(const HostTensor& indices, const TopKWindows& selection,
                         const plumb_numerics& declared);
// Expects right indices in the tensors of add_selection().
Expectation expect_top_k(const TensorSet& tensors, TopKWindows selection,
                         const plumb_numerics& declared);

// Throws BadRow unless the row is marked trivial exactly as its shape is: "zero" if all windows are
// empty, "identity" if none is longer than k. `longest`: longest window of a live row.
void check_trivial(const Row& row, std::int64_t longest, std::int64_t k);

// Simulated work of selecting k of `length` columns by one block, as
// device/kernels/top_k/top_k_select.h does it. It takes wider blocks for logits with more columns.
double top_k_row_cost(std::int64_t columns, std::int64_t length, std::int64_t k);
inline constexpr double kTopKCheckedFactor = 4;
inline constexpr double kTopKReferenceCost = 4;  // nanoseconds per column

}  // namespace plumb::cases
