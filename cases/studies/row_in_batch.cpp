// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/row_in_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

bool is_list(const TensorSpec& spec) {
  return std::all_of(spec.shape.begin() + 1, spec.shape.end(),
                     [](std::int64_t extent) { return extent == 1; });
}

// The part of a tensor that belongs to one row of the batch: rows [row, row + count) of the last
// dimension, columns [column, column + length).
struct RowPart {
  std::int64_t row = 0, column = 0, count = 0, length = 0;
};
RowPart piece_of(const HostTensor& tensor, std::int64_t size, std::int64_t position) {
  if (tensor.spec().shape.size() == 1) {
    const std::int64_t length = tensor.columns() / size;
    return {0, position * length, 1, length};
  }
  const std::int64_t count = tensor.rows() / size;
  return {position * count, 0, count, tensor.columns()};
}

// Calls move(byte offset, bytes) for each contiguous piece of the row's part.
void for_each_part(const HostTensor& tensor, std::int64_t size, std::int64_t position,
                   const auto& move) {
  const RowPart piece = piece_of(tensor, size, position);
  const std::size_t element = size_of(tensor.spec().dtype);
  for (std::int64_t row = piece.row; row < piece.row + piece.count; ++row) {
    move(static_cast<std::size_t>(tensor.row_offset(row) + piece.column) * element,
         static_cast<std::size_t>(piece.length) * element);
  }
}

std::vector<std::byte> take_out(const HostTensor& tensor, std::int64_t size,
                                std::int64_t position) {
  std::vector<std::byte> part;
  for_each_part(tensor, size, position, [&](std::size_t at, std::size_t bytes) {
    const std::byte* from = tensor.bytes().data() + at;
    part.insert(part.end(), from, from + bytes);
  });
  return part;
}

}  // namespace

RowInBatch::RowInBatch(const OpDefinition& op, const Row& row, std::string batch,
                       std::int64_t largest, Fill fill, const RunOptions& options)
    : op_(op),
      row_(row),
      batch_(std::move(batch)),
      fill_(fill),
      options_(options),
      largest_(std::max<std::int64_t>(2, largest)) {
  properties_ = options_.open(options_.platform, {})->properties();
  entry_ = device::find_entry(options_.implementation(options_.platform, false), op.name);
  if (entry_ == nullptr) throw NotMeasured("the implementation has no such op");
  seed_ = seed_of(fmt::format("{}/{}/invariance", op.name, row.name));
  const auto problem = problem_of(largest_);
  base_ = problem->make_tensors();
  problem->fill(step_of(largest_, 0), base_);
  classify();
}

std::vector<std::vector<std::byte>> RowInBatch::run(std::int64_t size, bool last) const {
  const std::int64_t position = last ? size - 1 : 0;
  const auto problem = problem_of(size);
  TensorSet tensors = problem->make_tensors();
  problem->fill(step_of(size, size), tensors);
  for (HostTensor& tensor : tensors.all()) {
    if (tensor.spec().role == Role::input) put_in(tensor, size, position);
  }
  launch(*problem, tensors);
  std::vector<std::vector<std::byte>> outputs;
  for (const HostTensor& tensor : tensors.all()) {
    if (is_compared(tensor.spec())) outputs.push_back(take_out(tensor, size, position));
  }
  return outputs;
}

std::vector<TensorSpec> RowInBatch::outputs() const {
  std::vector<TensorSpec> specs;
  const TensorSet tensors = problem_of(1)->make_tensors();
  for (const HostTensor& tensor : tensors.all()) {
    if (is_compared(tensor.spec())) specs.push_back(tensor.spec());
  }
  return specs;
}

std::unique_ptr<Problem> RowInBatch::problem_of(std::int64_t size) const {
  Row sized = row_;
  sized.integers[batch_] = size;
  return op_.make_problem(sized, properties_);
}

Step RowInBatch::step_of(std::int64_t size, std::int64_t salt) const {
  return {.seed = mix(seed_, static_cast<std::uint64_t>(salt)),
          .live = problem_of(size)->capacity(),
          .fill = fill_};
}

// Sets each tensor's scope by comparing its shapes at sizes 1, 2 and the largest.
void RowInBatch::classify() {
  const TensorSet one = problem_of(1)->make_tensors(), two = problem_of(2)->make_tensors();
  bool any_output = false;
  for (const HostTensor& tensor : base_.all()) {
    const TensorSpec& spec = tensor.spec();
    const Scope scope = scope_of(one.at(spec.name), two.at(spec.name), tensor);
    const bool is_result = spec.role == Role::output && is_list(spec);
    if (scope == Scope::other && (spec.role == Role::input || is_result)) {
      throw NotMeasured(
          fmt::format("{} holds the positions of rows, so a row cannot be moved alone", spec.name));
    }
    if (scope != Scope::row && !spec.starts_as.empty()) {
      throw NotMeasured(fmt::format("{} is not a list of rows", spec.name));
    }
    scopes_.emplace_back(spec.name, scope);
    any_output = any_output || is_compared(spec);
  }
  if (!any_output) throw NotMeasured("no output has a part for each row");
}

RowInBatch::Scope RowInBatch::scope_of(const HostTensor& one, const HostTensor& two,
                                       const HostTensor& most) const {
  const auto& a = one.spec().shape;
  const auto& b = two.spec().shape;
  const auto& c = most.spec().shape;
  if (most.spec().sparse) return Scope::shared;
  const bool same_rows = std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end()) &&
                         std::equal(a.begin() + 1, a.end(), c.begin() + 1, c.end());
  if (!same_rows) return Scope::other;
  if (b[0] == 2 * a[0] && c[0] == largest_ * a[0]) return Scope::row;
  if (a[0] == c[0]) return Scope::shared;
  // A cache grows with the batch in whole blocks, and all rows share it. A list of offsets grows by
  // one element per row, but its elements are not the data of single rows.
  return is_list(one.spec()) ? Scope::other : Scope::shared;
}

RowInBatch::Scope RowInBatch::scope_of(std::string_view name) const {
  return std::find_if(scopes_.begin(), scopes_.end(),
                      [&](const auto& entry) { return entry.first == name; })
      ->second;
}

bool RowInBatch::is_compared(const TensorSpec& spec) const {
  return spec.role == Role::output && scope_of(spec.name) == Scope::row;
}

void RowInBatch::put_in(HostTensor& tensor, std::int64_t size, std::int64_t position) const {
  const HostTensor& from = base_.at(tensor.spec().name);
  if (scope_of(tensor.spec().name) == Scope::shared) {
    tensor = from;
    return;
  }
  std::vector<std::byte> part = take_out(from, largest_, 0);
  const std::byte* next = part.data();
  for_each_part(tensor, size, position, [&](std::size_t at, std::size_t bytes) {
    std::memcpy(tensor.bytes().data() + at, next, bytes);
    next += bytes;
  });
}

// Uploads the inputs, launches the op once, and reads the outputs back into `tensors`.
void RowInBatch::launch(const Problem& problem, TensorSet& tensors) const {
  const auto device = options_.open(options_.platform, {});
  const device::Stream stream = device->create_stream();
  DeviceTensors addresses;
  for (const HostTensor& tensor : tensors.all()) {
    const TensorSpec& spec = tensor.spec();
    const std::size_t bytes = std::max<std::size_t>(device_bytes(tensor), 1);
    auto* memory = static_cast<std::byte*>(spec.sparse ? device->allocate_sparse(bytes, spec.name)
                                                       : device->allocate(bytes, spec.name));
    addresses.set(spec.name, memory);
    const HostTensor& from = spec.starts_as.empty() ? tensor : tensors.at(spec.starts_as);
    for_each_piece(from, [&](std::size_t there, std::size_t here, std::size_t count) {
      device->copy(memory + there, from.bytes().data() + here, count, stream);
    });
  }
  const auto state = problem.make_state(addresses);
  const plumb_status status = problem.launch(*entry_, addresses, state.get(), stream);
  if (status == PLUMB_UNSUPPORTED) throw NotMeasured("the implementation refuses a size");
  if (status != PLUMB_OK) {
    throw device::DeviceError(device::ErrorKind::other,
                              "the launch failed " + device->take_launch_error());
  }
  for (HostTensor& tensor : tensors.all()) {
    if (!is_compared(tensor.spec())) continue;
    device->copy(tensor.bytes().data(), addresses.get<void>(tensor.spec().name),
                 tensor.bytes().size(), stream);
  }
  device->synchronize(stream);
}

}  // namespace plumb::cases
