// SPDX-License-Identifier: Apache-2.0
//
// Finds where the rows of a problem (its tokens, its requests) lie in a tensor: in the dimension
// that grows with their number. Found by comparing the shapes of an op's tensors at two numbers of
// rows, so no op has to declare it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct RowAxis {
  std::size_t dimension = 0;
  std::int64_t per_row = 1;  // indices of the dimension that belong to one row
};

// The row dimension of a tensor that has shape `spec` for `rows` rows and `smaller` for `fewer`
// rows. nullopt: the shapes are equal, so all rows share the tensor. Throws std::logic_error if the
// shapes differ in another way.
std::optional<RowAxis> find_row_axis(const TensorSpec& spec, std::int64_t rows,
                                     const TensorSpec& smaller, std::int64_t fewer);

// The elements of one row, as contiguous pieces of equal length.
class RowPieces {
 public:
  RowPieces(const TensorSpec& spec, RowAxis axis);
  std::int64_t length() const { return length_; }
  std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()); }
  // Offset in elements of a piece of a row.
  std::int64_t offset(std::int64_t row, std::int64_t piece) const {
    return row * step_ + offsets_[static_cast<std::size_t>(piece)];
  }

 private:
  std::int64_t length_ = 1, step_ = 0;
  std::vector<std::int64_t> offsets_;  // of the pieces of row 0
};

// tensor_rows: the rows of the last dimension (HostTensor::row) that belong to a row of the
// problem. problem_row: the inverse. The axis must not be the last dimension.
std::vector<std::int64_t> tensor_rows(const TensorSpec& spec, RowAxis axis, std::int64_t row);
std::int64_t problem_row(const TensorSpec& spec, RowAxis axis, std::int64_t tensor_row);

// Marks `few`, a spec with rows.size() rows, as an excerpt that holds these rows of `whole`.
TensorSpec excerpt_spec(const TensorSpec& whole, TensorSpec few, RowAxis axis,
                        const std::vector<std::int64_t>& rows);

// Copies row rows[i] of `from` to row i of `to`. Skips i if rows[i] is -1.
void copy_rows(const HostTensor& from, HostTensor& to, RowAxis axis,
               const std::vector<std::int64_t>& rows);

}  // namespace plumb::cases
