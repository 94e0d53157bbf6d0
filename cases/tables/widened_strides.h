// SPDX-License-Identifier: Apache-2.0
//
// Row parameters that change a stride, available to every op's rows: gap_x_row_stride = 3,
// align_x_row_stride = 8, far_x_row_stride = 31 (DESIGN, decision 21).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/op_table.h"

namespace plumb::cases {

// True if a tensor or scalar with this condition exists in the row.
inline bool exists(const std::optional<Formula>& when, const FormulaValues& values) {
  return !when || when->value(values) != 0;
}

// The row's gap_, align_ or far_ value for a stride; `what` is "gap", "align" or "far". 0: not set.
std::int64_t said_of_stride(const Row& row, std::string_view what, const std::string& member);

// A stride after gap_ and align_ are applied. A stride of 1 (adjacent elements) is not changed.
std::int64_t widened(std::int64_t value, const Row& row, const std::string& member);

// Factor by which the row's far_ parameters multiply a stride on the device. A far stride moves the
// second half of its dimension past 2^far elements (rows there may be padding). Strides of the
// dimensions in front of it grow by the same factor. 1: unchanged.
std::int64_t spread_of(const std::vector<OpTable::Field>& fields, const std::string& stride,
                       const FormulaValues& values);
// Places the pieces of a tensor apart by the factor that spread_of() gives for its strides. Throws
// BadRow if the pieces would not lie on one regular grid.
void place(const std::vector<OpTable::Field>& fields, const TableTensor& tensor,
           const FormulaValues& values, TensorSpec& spec);

// Throws BadRow for an unknown stride or a value out of range.
void check_said_of_strides(const std::vector<OpTable::Field>& fields, const Row& row);
// Throws BadRow for a gap_, align_ or far_ that changes no tensor of the row. Does nothing under a
// contract that an implementation declares: there the row may lack a tensor that it has otherwise.
void check_widened(const std::vector<OpTable::Field>& fields, const FormulaValues& values);

}  // namespace plumb::cases
