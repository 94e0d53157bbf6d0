// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/call_tensors.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "cases/tables/contract.h"
#include "cases/tables/given_call.h"
#include "cases/tables/registry.h"
#include "decode/recording/published_models.h"

namespace plumb::cases {

namespace {

// Rows of the first dimension: their number, the bytes of a row on the host, and the bytes that
// device and host rows share.
struct RowBytes {
  std::int64_t rows = 0;
  std::size_t stride = 0, common = 0;
};
RowBytes row_bytes_of(const HostTensor& tensor, std::int64_t row_bytes) {
  const std::int64_t rows = tensor.spec().shape.front();
  const std::size_t stride = tensor.bytes().size() / static_cast<std::size_t>(rows);
  return {rows, stride, std::min(stride, static_cast<std::size_t>(row_bytes))};
}

}  // namespace

std::vector<Binding> bindings_of(const device::decode::Call& call,
                                 const device::decode::Geometry& geometry) {
  const std::optional<CallRecord> record = record_of(call, geometry);
  return record ? record->bindings : make_placeholder_reference(call)->bindings();
}

const Binding* find_binding(const std::vector<Binding>& bindings, std::string_view name) {
  const auto named = [&](std::string_view wanted) {
    const auto found = std::find_if(bindings.begin(), bindings.end(),
                                    [&](const Binding& b) { return b.tensor == wanted; });
    return found == bindings.end() ? nullptr : &*found;
  };
  if (const Binding* found = named(name)) return found;
  return name.ends_with(kBefore) ? named(name.substr(0, name.size() - kBefore.size())) : nullptr;
}

TensorSet JudgedCall::make_tensors() const {
  TensorSet tensors = problem ? problem->make_tensors() : placeholder->make_tensors();
  for (HostTensor& planned : tensors.all()) {
    const std::string& name = planned.spec().name;
    const Binding* const bound = find_binding(bindings, name);
    if (bound == nullptr) throw std::logic_error(op + ": the place of " + name + " is unknown");
    if (bound->rows != 0 && bound->rows != planned.spec().shape.front()) {
      planned = HostTensor(with_rows(planned.spec(), bound->rows));
    }
  }
  return tensors;
}

Step JudgedCall::step() const { return {0, problem->capacity(), Fill::real, DeadRows::foreign}; }

Expectations JudgedCall::expect(const TensorSet& tensors) const {
  if (placeholder) return placeholder->expect(tensors);
  return problem->expect(step(), tensors, to_reference(declared), declared);
}

JudgedCall judged_call(const device::decode::Call& call, const device::OpEntry* entry,
                       const device::decode::Geometry& geometry,
                       const device::Properties& properties) {
  JudgedCall judged{.op = std::string(call.op)};
  if (std::optional<CallRecord> record = record_of(call, geometry)) {
    const OpDefinition& op = find_op(judged.op);
    judged.row = std::move(record->row);
    judged.bindings = std::move(record->bindings);
    if (entry != nullptr) {
      judged.row = under_contract(op, entry->contract, std::move(judged.row));
      judged.declared = entry->declared(call.params);
    }
    judged.problem = op.make_problem(judged.row, properties);
    judged.unconventional = broken_conventions(published_model(geometry.model), op, call.params);
  } else {
    judged.placeholder = make_placeholder_reference(call);
    judged.bindings = judged.placeholder->bindings();
  }
  return judged;
}

std::size_t bytes_there(const HostTensor& tensor, const Binding& binding) {
  if (binding.row_bytes == 0) {
    return static_cast<std::size_t>(tensor.extent()) * size_of(tensor.spec().dtype);
  }
  return static_cast<std::size_t>(binding.row_bytes) *
         static_cast<std::size_t>(tensor.spec().shape.front());
}

void unpack_rows(const std::byte* from, std::int64_t row_bytes, HostTensor& to) {
  const RowBytes here = row_bytes_of(to, row_bytes);
  for (std::int64_t row = 0; row < here.rows; ++row) {
    std::memcpy(to.bytes().data() + static_cast<std::size_t>(row) * here.stride,
                from + row * row_bytes, here.common);
  }
}

void pack_rows(const Bytes& from, const HostTensor& layout, std::int64_t row_bytes, std::byte* to) {
  const RowBytes here = row_bytes_of(layout, row_bytes);
  for (std::int64_t row = 0; row < here.rows; ++row) {
    std::memcpy(to + row * row_bytes, from.data() + static_cast<std::size_t>(row) * here.stride,
                here.common);
  }
}

}  // namespace plumb::cases
