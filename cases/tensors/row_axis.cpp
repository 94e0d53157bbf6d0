// SPDX-License-Identifier: Apache-2.0
#include "cases/tensors/row_axis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <stdexcept>

#include "reference/bound.h"

namespace plumb::cases {

namespace {

[[noreturn]] void refuse(const TensorSpec& spec, std::int64_t rows, const TensorSpec& smaller,
                         std::int64_t fewer) {
  throw std::logic_error(fmt::format(
      "{} is [{}] for {} rows and [{}] for {}: not one dimension that grows with them", spec.name,
      fmt::join(spec.shape, ", "), rows, fmt::join(smaller.shape, ", "), fewer));
}

// Appends the offset, plus `begin`, of every index combination of the dimensions [from, to).
void walk(const TensorSpec& spec, std::size_t from, std::size_t to, std::int64_t begin,
          const std::vector<std::int64_t>& sizes, std::vector<std::int64_t>& offsets) {
  if (from == to) return offsets.push_back(begin);
  for (std::int64_t i = 0; i < sizes[from]; ++i) {
    walk(spec, from + 1, to, begin + i * spec.strides[from], sizes, offsets);
  }
}

std::vector<std::int64_t> sizes_of_row(const TensorSpec& spec, RowAxis axis) {
  std::vector<std::int64_t> sizes = spec.shape;
  sizes[axis.dimension] = axis.per_row;
  return sizes;
}

}  // namespace

std::optional<RowAxis> find_row_axis(const TensorSpec& spec, std::int64_t rows,
                                     const TensorSpec& smaller, std::int64_t fewer) {
  if (spec.shape == smaller.shape) return std::nullopt;
  if (spec.shape.size() != smaller.shape.size()) refuse(spec, rows, smaller, fewer);
  std::optional<RowAxis> axis;
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    if (spec.shape[i] == smaller.shape[i]) continue;
    const std::int64_t per_row = spec.shape[i] / rows;
    if (axis || per_row * rows != spec.shape[i] || per_row * fewer != smaller.shape[i]) {
      refuse(spec, rows, smaller, fewer);
    }
    axis = RowAxis{i, per_row};
  }
  return axis;
}

RowPieces::RowPieces(const TensorSpec& spec, RowAxis axis)
    : step_(axis.per_row * spec.strides[axis.dimension]) {
  const std::vector<std::int64_t> sizes = sizes_of_row(spec, axis);
  std::size_t end = spec.shape.size();
  // Merge contiguous inner dimensions into one piece, up to one row of the problem.
  while (end > axis.dimension && spec.strides[end - 1] == length_) length_ *= sizes[--end];
  walk(spec, 0, end, 0, sizes, offsets_);
}

std::vector<std::int64_t> tensor_rows(const TensorSpec& spec, RowAxis axis, std::int64_t row) {
  std::vector<std::int64_t> rows{0};
  for (std::size_t i = 0; i + 1 < spec.shape.size(); ++i) {
    const bool own = i == axis.dimension;
    const std::int64_t begin = own ? row * axis.per_row : 0;
    const std::int64_t count = own ? axis.per_row : spec.shape[i];
    std::vector<std::int64_t> inner;
    for (const std::int64_t outer : rows) {
      for (std::int64_t place = begin; place < begin + count; ++place) {
        inner.push_back(outer * spec.shape[i] + place);
      }
    }
    rows = std::move(inner);
  }
  return rows;
}

std::int64_t problem_row(const TensorSpec& spec, RowAxis axis, std::int64_t tensor_row) {
  for (std::size_t i = spec.shape.size() - 1; i > axis.dimension + 1; --i) {
    tensor_row /= spec.shape[i - 1];
  }
  return tensor_row % spec.shape[axis.dimension] / axis.per_row;
}

TensorSpec excerpt_spec(const TensorSpec& whole, TensorSpec few, RowAxis axis,
                        const std::vector<std::int64_t>& rows) {
  few.clues = whole.clues;
  few.excerpt = {axis.dimension, {}, whole.shape[axis.dimension]};
  for (const std::int64_t row : rows) {
    for (std::int64_t i = 0; i < axis.per_row; ++i) {
      few.excerpt->places.push_back(row * axis.per_row + i);
    }
  }
  return few;
}

void copy_rows(const HostTensor& from, HostTensor& to, RowAxis axis,
               const std::vector<std::int64_t>& rows) {
  constexpr std::int64_t kRowsWorthAThread = 16;
  const RowPieces source(from.spec(), axis), target(to.spec(), axis);
  const std::size_t size = size_of(from.spec().dtype);
  const auto bytes = static_cast<std::size_t>(source.length()) * size;
  const auto copy_row = [&](std::int64_t row, std::int64_t to_row) {
    for (std::int64_t piece = 0; piece < source.count(); ++piece) {
      std::memcpy(to.bytes().data() + static_cast<std::size_t>(target.offset(to_row, piece)) * size,
                  from.bytes().data() + static_cast<std::size_t>(source.offset(row, piece)) * size,
                  bytes);
    }
  };
  reference::parallel_for(std::ssize(rows), kRowsWorthAThread,
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t i = begin; i < end; ++i) {
                              if (rows[i] >= 0) copy_row(rows[i], i);
                            }
                          });
}

}  // namespace plumb::cases
