// SPDX-License-Identifier: Apache-2.0
//
// The judge: compares what a device stored with what the reference expects, and says which rows are
// wrong. A tensor passes only if every check passes (DESIGN.md, decision 2).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cases/tensors/tensor.h"
#include "reference/bound.h"

namespace plumb::cases {

struct Mismatch {
  std::int64_t row = 0, column = 0;
  std::string coordinates;  // "[3, 17]"
  double expected = 0, got = 0, bound = 0, ratio = 0;
};

// Rows of a problem too large to be judged row by row (cases/drivers/tiled_problem.h).
struct Sample {
  std::int64_t rows = 0;      // of the problem; 0: every row was judged
  std::int64_t judged = 0;    // against the reference
  std::int64_t repeated = 0;  // others, with the inputs and the bits of a judged one
  std::int64_t unjudged() const { return rows - judged - repeated; }
};
std::string text_of(const Sample& sample);

// What came of one tensor of one launch.
struct TensorReport {
  std::string tensor;
  // Rows judged, and how many the tensor has. Rows are numbered as in the tensor that the judged
  // one is an excerpt of (TensorSpec::excerpt).
  std::int64_t rows_compared = 0, elements_compared = 0, rows_total = 0;
  std::int64_t wrong_elements = 0;
  std::vector<std::int64_t> wrong_rows;  // ascending
  std::optional<Mismatch> worst;
  double margin = 0;         // largest error / bound over all elements; infinity where NaN differs
  double observability = 0;  // share of compared elements whose loss (0 instead of y) would be seen
  double zero_share = 0;     // share of compared elements whose expected value is 0
  // Codes on the other side of a rounding boundary, choices other than the exact ones: within the
  // errors, and the first such choice in words.
  std::int64_t flips = 0;
  std::string flip;
  std::vector<std::string> failures;  // one line per failed check; empty = passed
  std::string pattern;                // what the wrong rows look like, if anything known
  Sample sample;
  bool passed() const { return failures.empty(); }
};

// Consecutive rows whose signed mean error is tested together: a head, an expert, a request, 64
// rows.
struct RowGroup {
  std::int64_t begin = 0, end = 0;
  std::string name;  // "token 3", "rows 64-127"
};
std::vector<RowGroup> groups_of(std::int64_t rows, std::int64_t rows_per_group,
                                std::string_view noun);

// Which rows an op promises. Unpromised rows (padding whose inputs were not finite) are not
// compared.
using RowMask = std::vector<bool>;  // empty = all rows
bool is_promised(const RowMask& promised, std::int64_t row);

// Per row, the columns [begin, end) that an op promises; the others hold anything and are not
// looked at. Empty = all columns of all rows.
struct ColumnRange {
  std::int64_t begin = 0, end = 0;
};
using ColumnRanges = std::vector<ColumnRange>;

// Floating-point tensor against an estimate with the same rows and columns. Fails unless
// non-finite values stand at the same places; every element is within its bound; every row agrees
// in norm and in direction; and the signed mean error (towards or away from zero) of each row group
// and of the tensor is within 5 standard errors (cases/judge/row_model.h has the limits and their
// derivation). Where a row has columns that are not promised, the estimate has zeros there, with no
// error.
TensorReport judge_floats(const HostTensor& got, const reference::Estimate& expected,
                          const RowMask& promised, const std::vector<RowGroup>& groups,
                          const ColumnRanges& columns = {});

// Integer or byte tensor, exact. `expected` holds elements() values in row-major order.
TensorReport judge_exact(const HostTensor& got, const std::vector<std::int64_t>& expected,
                         const RowMask& promised);

// Bit-for-bit comparison of two results of the same problem (replay against eager, run against
// run). `what` names the comparison in the failure: "replay differs from eager".
TensorReport judge_bits(const HostTensor& got, const HostTensor& expected, const RowMask& promised,
                        std::string_view what, const ColumnRanges& columns = {});

// The columns of a row that are looked at, and a tensor with zeros in all others.
ColumnRange columns_of(const ColumnRanges& columns, const HostTensor& tensor, std::int64_t row);
HostTensor promised_part(HostTensor tensor, const ColumnRanges& columns);

// Rows as the tensor numbers them that `tensor` is an excerpt of.
std::vector<std::int64_t> original_rows(const HostTensor& tensor, std::vector<std::int64_t> rows);
// "3-6, 9" for a list of rows; shortened with "…" after a few ranges.
std::string row_ranges(const std::vector<std::int64_t>& rows);
// "row 4 of 7", "rows 3-6 of 7"
std::string rows_of(const std::vector<std::int64_t>& rows, std::int64_t total);
// "1 element", "3 elements"
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace plumb::cases
