// SPDX-License-Identifier: Apache-2.0
//
// Parameters that a row of any op can set for a stride of its table: gap_x_row_stride = 3,
// align_x_row_stride = 8, far_x_row_stride = 31 (DESIGN, decision 21).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/op_table.h"

namespace plumb::cases {

// Whether the row has the tensor or scalar with this condition.
inline bool exists(const std::optional<Formula>& when, const FormulaValues& values) {
  return !when || when->value(values) != 0;
}

// `what`: "gap", "align" or "far". 0: the row does not set it.
std::int64_t said_of_stride(const Row& row, std::string_view what, const std::string& member);

// The value of a scalar after gap_ and align_. 1 stays: adjacent elements.
std::int64_t widened(std::int64_t value, const Row& row, const std::string& member);

// How many times as long a stride becomes under the far_ parameters of the row: a far stride, so
// that the second half of its dimension lies past 2^far elements (the last places may be padding),
// and with it the strides of the dimensions in front. 1: it stays.
std::int64_t spread_of(const std::vector<OpTable::Field>& fields, const std::string& stride,
                       const FormulaValues& values);
// Moves the pieces of a tensor apart, as spread_of() says of its strides. Throws BadRow if they are
// no places of one grid.
void place(const std::vector<OpTable::Field>& fields, const TableTensor& tensor,
           const FormulaValues& values, TensorSpec& spec);

// Throws BadRow for an unknown stride or a value out of range.
void check_said_of_strides(const std::vector<OpTable::Field>& fields, const Row& row);
// Throws BadRow for a gap_, align_ or far_ that changes no tensor of the row. Under a contract that
// an implementation declares the row may well lack a tensor that its author had in mind.
void check_widened(const std::vector<OpTable::Field>& fields, const FormulaValues& values);

}  // namespace plumb::cases
