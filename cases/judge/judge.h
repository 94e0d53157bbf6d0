// SPDX-License-Identifier: Apache-2.0
//
// The judge compares what a device stored with the reference's expectation, and reports which rows
// are wrong. A tensor passes only if every check passes (DESIGN.md, decision 2).
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

// Row counts of a verdict that judged a sample, because the problem was too large for all rows
// (cases/drivers/tiled_problem.h).
struct Sample {
  std::int64_t rows = 0;      // all rows of the problem; 0: no sample, every row was judged
  std::int64_t judged = 0;    // rows compared with the reference
  std::int64_t repeated = 0;  // further rows that have the inputs and the bits of a judged row
  std::int64_t unjudged() const { return rows - judged - repeated; }
};
std::string text_of(const Sample& sample);

// Verdict on one tensor of one launch.
struct TensorReport {
  std::string tensor;
  // Counts of compared rows, compared elements, and all rows. If the judged tensor is an excerpt,
  // row numbers are those of the original tensor (TensorSpec::excerpt).
  std::int64_t rows_compared = 0, elements_compared = 0, rows_total = 0;
  std::int64_t wrong_elements = 0;
  std::vector<std::int64_t> wrong_rows;  // ascending
  std::optional<Mismatch> worst;
  // Largest error / bound over all elements; infinity if non-finite values are at other places.
  double margin = 0;
  // Share of compared elements for which storing 0 instead of the value would be detected.
  double observability = 0;
  double zero_share = 0;  // share of compared elements whose expected value is 0
  // Codes that are on the other side of a rounding boundary, or choices that differ from the exact
  // ones, all within the error model. `flip` describes the first such choice.
  std::int64_t flips = 0;
  std::string flip;
  std::vector<std::string> failures;  // one line per failed check; empty: passed
  // Sentence about what the wrong rows look like; "" if no known pattern fits.
  std::string pattern;
  Sample sample;
  bool passed() const { return failures.empty(); }
};

// Consecutive rows whose signed mean errors are tested for bias together: a head, an expert, a
// request, or 64 rows.
struct RowGroup {
  std::int64_t begin = 0, end = 0;
  std::string name;  // "token 3", "rows 64-127"
};
std::vector<RowGroup> groups_of(std::int64_t rows, std::int64_t rows_per_group,
                                std::string_view noun);

// Rows that an op promises. Other rows (padding whose inputs are not finite) are not compared.
using RowMask = std::vector<bool>;  // empty: all rows
bool is_promised(const RowMask& promised, std::int64_t row);

// Columns [begin, end) that an op promises, per row. Columns outside may hold anything and are not
// compared. Empty: all columns of all rows.
struct ColumnRange {
  std::int64_t begin = 0, end = 0;
};
using ColumnRanges = std::vector<ColumnRange>;

// Compares a floating-point tensor with an estimate of the same shape. Passes only if: non-finite
// values are at the same places; every element is within its bound; every row agrees in norm and in
// direction; the signed mean error (towards or away from zero) of each row group and of the tensor
// is within 5 standard errors (cases/judge/row_model.h has the limits and their derivation). In
// columns that are not promised, the estimate must have zeros without error.
TensorReport judge_floats(const HostTensor& got, const reference::Estimate& expected,
                          const RowMask& promised, const std::vector<RowGroup>& groups,
                          const ColumnRanges& columns = {});

// Compares an integer or byte tensor exactly. `expected` holds elements() values in row-major
// order.
TensorReport judge_exact(const HostTensor& got, const std::vector<std::int64_t>& expected,
                         const RowMask& promised);

// Bit-for-bit comparison of two results of the same problem (replay against eager, run against
// run). `what` names the comparison in the failure: "replay differs from eager".
TensorReport judge_bits(const HostTensor& got, const HostTensor& other, const RowMask& promised,
                        std::string_view what, const ColumnRanges& columns = {});
// The same with the right bits.
TensorReport judge_right_bits(const HostTensor& got, const HostTensor& right,
                              const RowMask& promised, std::string_view what,
                              const ColumnRanges& columns);

// columns_of: the promised columns of a row. promised_part: a copy of the tensor with zeros in all
// other columns.
ColumnRange columns_of(const ColumnRanges& columns, const HostTensor& tensor, std::int64_t row);
HostTensor promised_part(HostTensor tensor, const ColumnRanges& columns);

// Translates row numbers of an excerpt into those of the original tensor.
std::vector<std::int64_t> original_rows(const HostTensor& tensor, std::vector<std::int64_t> rows);
// Text for a list of rows: "3-6, 9". Shortened with "…" after a few ranges.
std::string row_ranges(const std::vector<std::int64_t>& rows);
// Text for a list of rows of a tensor with `total` rows: "4 of 7 rows (rows 3-6)".
std::string rows_of(const std::vector<std::int64_t>& rows, std::int64_t total);
// Text with a count and a noun: "1 element", "3 elements".
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace plumb::cases
