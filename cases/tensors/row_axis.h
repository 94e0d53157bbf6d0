// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of a problem (its tokens, its requests) lie in a tensor: the dimension that grows
// with their number. Found by comparing an op's tensors at two numbers of rows, so no op has to say
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct RowAxis {
  std::size_t dimension = 0;
  std::int64_t per_row = 1;  // places of the dimension that belong to one row
};

// Of a tensor that has these two shapes in problems of `rows` and `fewer` rows. None: all rows
// share it. Throws std::logic_error where the shapes differ otherwise.
std::optional<RowAxis> find_row_axis(const TensorSpec& spec, std::int64_t rows,
                                     const TensorSpec& smaller, std::int64_t fewer);

// The elements of a row, as pieces of memory of one length.
class RowPieces {
 public:
  RowPieces(const TensorSpec& spec, RowAxis axis);
  std::int64_t length() const { return length_; }
  std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()); }
  // Element at which a piece of a row begins.
  std::int64_t offset(std::int64_t row, std::int64_t piece) const {
    return row * step_ + offsets_[static_cast<std::size_t>(piece)];
  }

 private:
  std::int64_t length_ = 1, step_ = 0;
  std::vector<std::int64_t> offsets_;  // of row 0
};

// Rows of the last dimension (HostTensor::row) that belong to a row of the problem, and the other
// way round. The axis may not be the last dimension.
std::vector<std::int64_t> tensor_rows(const TensorSpec& spec, RowAxis axis, std::int64_t row);
std::int64_t problem_row(const TensorSpec& spec, RowAxis axis, std::int64_t tensor_row);

// `few`, the spec of a tensor of rows.size() rows, as an excerpt: these rows of `whole`.
TensorSpec excerpt_spec(const TensorSpec& whole, TensorSpec few, RowAxis axis,
                        const std::vector<std::int64_t>& rows);

// Copies row rows[i] of `from` to row i of `to`, of which -1 leaves out one.
void copy_rows(const HostTensor& from, HostTensor& to, RowAxis axis,
               const std::vector<std::int64_t>& rows);

}  // namespace plumb::cases
