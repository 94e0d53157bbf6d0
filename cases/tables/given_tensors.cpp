// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "cases/tables/given_call.h"
#include "cases/tables/op_table.h"

namespace plumb::cases {

namespace {

// A void* member accepts every type of the right size.
bool may_hold(const OpDefinition& op, const TensorSpec& spec, Dtype dtype) {
  if (spec.dtype == dtype) return true;
  return std::any_of(op.table->fields().begin(), op.table->fields().end(), [&](const auto& field) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    return tensor != nullptr && spec.name.starts_with(tensor->name) && tensor->dtype_of_row &&
           tensor->dtype_of_row->depends_on_engine() && size_of(dtype) == size_of(spec.dtype);
  });
}

// True if all bytes are zero. Zeros are not copied: the target is zero already, and pages that are
// never written take no memory.
bool is_zero(const std::byte* bytes, std::size_t size) {
  return size == 0 || (bytes[0] == std::byte{} && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

// Copies rows of the last dimension, in order, from row `row` of `to` on.
void copy_rows(const GivenTensor& from, std::size_t dimension, const std::byte* at, HostTensor& to,
               std::int64_t& row) {
  const std::size_t size = size_of(to.spec().dtype);
  if (dimension + 1 < from.shape.size()) {
    for (std::int64_t i = 0; i < from.shape[dimension]; ++i) {
      copy_rows(from, dimension + 1, at + i * from.strides[dimension], to, row);
    }
    return;
  }
  // If the caller chose the stride, its rows may be longer or shorter than those of the case.
  std::byte* out = to.bytes().data() + static_cast<std::size_t>(to.row_offset(row++)) * size;
  const std::int64_t columns = std::min(from.shape.back(), to.columns());
  if (from.strides.back() == static_cast<std::int64_t>(size)) {
    const std::size_t bytes = static_cast<std::size_t>(columns) * size;
    if (!is_zero(at, bytes)) std::memcpy(out, at, bytes);
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i, out += size) {
    std::memcpy(out, at + i * from.strides.back(), size);
  }
}

void copy_places(const GivenTensor& from, const std::vector<std::int64_t>& places, HostTensor& to) {
  std::int64_t rows_of_place = 1;
  for (std::size_t i = 1; i + 1 < from.shape.size(); ++i) rows_of_place *= from.shape[i];
  for (const std::int64_t place : places) {
    std::int64_t row = place * rows_of_place;
    copy_rows(from, 1, from.data + place * from.strides.front(), to, row);
  }
}

}  // namespace

TensorSpec with_rows(TensorSpec spec, std::int64_t rows) {
  spec.shape.front() = rows;
  spec.sparse = false;
  spec.piece = 0;
  spec.placement.clear();
  return spec;
}

bool has_stored(const GivenCall& call, const Expectation& expectation) {
  const TensorSpec& spec = expectation.stored->spec();
  return call.tensors.contains(spec.origin ? spec.origin->tensor : spec.name);
}

TensorSet tensors_of(const OpDefinition& op, const Problem& problem, const GivenCall& call,
                     const NeededPlaces& needed) {
  TensorSet tensors = problem.make_tensors();
  for (HostTensor& tensor : tensors.all()) {
    const auto given = call.tensors.find(tensor.spec().name);
    if (given == call.tensors.end() || tensor.elements() == 0) continue;
    if (!may_hold(op, tensor.spec(), given->second.dtype)) {
      const bool bits = tensor.spec().dtype == Dtype::bf16;
      throw BadRow(fmt::format("{}: {} holds {}{}, not {}", op.name, tensor.spec().name,
                               name_of(tensor.spec().dtype), bits ? " (its bits: uint16)" : "",
                               name_of(given->second.dtype)));
    }
    const bool whole = tensor.spec().sparse && !call.in_pieces;
    const bool another_size = given->second.shape.front() != tensor.spec().shape.front() || whole;
    if (another_size) {
      tensor = HostTensor(with_rows(tensor.spec(), given->second.shape.front()));
    }
    const std::vector<std::int64_t>& shape = given->second.shape;
    const auto inner = [](const std::vector<std::int64_t>& sizes) {
      return std::vector(sizes.begin(), sizes.end() - 1);
    };
    if (inner(shape) != inner(tensor.spec().shape)) {
      throw BadRow(fmt::format("{} has the shape [{}], not [{}]", tensor.spec().name,
                               fmt::join(shape, ", "), fmt::join(tensor.spec().shape, ", ")));
    }
    const auto places = needed.find(tensor.spec().name);
    if (places != needed.end() && !another_size && shape.size() > 1) {
      copy_places(given->second, places->second, tensor);
    } else {
      std::int64_t row = 0;
      copy_rows(given->second, 0, given->second.data, tensor, row);
    }
  }
  return tensors;
}

}  // namespace plumb::cases
