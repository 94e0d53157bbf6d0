// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/call_rows.h"

#include <xxhash.h>

#include <bit>
#include <memory>
#include <stdexcept>

#include "device/device.h"

namespace plumb::cases {

namespace {

class RowHash {
 public:
  explicit RowHash(const RowDigest& seed) : state_(XXH3_createState(), XXH3_freeState) {
    XXH3_128bits_reset(state_.get());
    add(seed.data(), sizeof seed);
  }
  void add(const void* bytes, std::size_t count) {
    XXH3_128bits_update(state_.get(), bytes, count);
  }
  void add(std::string_view text) {
    add(std::int64_t(text.size()));
    add(text.data(), text.size());
  }
  void add(std::int64_t number) { add(&number, sizeof number); }
  RowDigest digest() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.high64, hash.low64};
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

void add_segment(const HostTensor& tensor, const RowSegment& segment, RowHash& hash) {
  const std::size_t size = size_of(tensor.spec().dtype);
  const std::int64_t first = tensor.row_offset(segment.row) + segment.begin;
  hash.add(tensor.bytes().data() + static_cast<std::size_t>(first) * size,
           static_cast<std::size_t>(segment.count) * size);
}

// Name of the parameter that counts rows; "" if there is none.
std::string parameter_of_rows(const OutsideCall& call) {
  if (!call.problem().rows_have_places()) return "";
  if (!call.op().row_count.empty()) return std::string(call.op().row_count);
  try {
    return batch_parameter(call.op(), call.row(), device::open_device(kCallPlatform)->properties());
  } catch (const std::exception&) {  // sizes that the op does not have
    return "";
  }
}

}  // namespace

std::optional<CallRows> CallRows::of(const OutsideCall& call) {
  const std::string parameter = parameter_of_rows(call);
  if (parameter.empty() || !call.row().integers.contains(parameter)) return std::nullopt;
  CallRows rows(call, parameter, call.row().integer(parameter));
  if (rows.count_ < 1 || !rows.find_axes()) return std::nullopt;
  return rows;
}

// Finds each tensor's row dimension by comparing its shape with that for one row more. Returns
// false if a tensor grows in another way, or if no input or no output has rows.
bool CallRows::find_axes() {
  Row more = call_->row();
  ++more.integers.find(parameter_)->second;
  bool reads = false, writes = false;
  try {
    const auto properties = device::open_device(kCallPlatform)->properties();
    const TensorSet larger = call_->op().make_problem(more, properties)->make_tensors();
    const TensorSet own = call_->problem().make_tensors();
    for (const HostTensor& tensor : own.all()) {
      const TensorSpec& spec = tensor.spec();
      if (spec.role != Role::input && spec.role != Role::output) continue;
      if (!larger.contains(spec.name)) return false;
      const auto axis = find_row_axis(spec, count_, larger.at(spec.name).spec(), count_ + 1);
      if (!axis) continue;
      const std::vector<std::int64_t>& shape = call_->tensors().at(spec.name).spec().shape;
      if (shape != spec.shape) return false;
      axes_.emplace(spec.name, *axis);
      (spec.role == Role::output ? writes : reads) = true;
    }
  } catch (const std::logic_error&) {  // a dimension is not proportional to the rows
    return false;
  } catch (const BadRow&) {  // the op does not allow this size
    return false;
  }
  return reads && writes;
}

std::vector<RowSegment> CallRows::segments(const std::string& tensor, std::int64_t row) const {
  const auto found = axes_.find(tensor);
  if (found == axes_.end()) return {};
  const HostTensor& host = call_->tensors().at(tensor);
  const RowAxis& axis = found->second;
  std::vector<RowSegment> segments;
  if (axis.dimension + 1 == host.spec().shape.size()) {
    for (std::int64_t r = 0; r < host.rows(); ++r) {
      segments.push_back({r, row * axis.per_row, axis.per_row});
    }
    return segments;
  }
  for (const std::int64_t r : tensor_rows(host.spec(), axis, row)) {
    segments.push_back({r, 0, host.columns()});
  }
  return segments;
}

std::vector<std::int64_t> CallRows::shape_of_row(const std::string& tensor) const {
  const RowAxis& axis = axes_.at(tensor);
  std::vector<std::int64_t> shape = call_->tensors().at(tensor).spec().shape;
  shape[axis.dimension] = axis.per_row;
  return shape;
}

// Leaves out the number of rows, because it differs from batch to batch.
RowDigest CallRows::shared_digest() const {
  RowHash hash({});
  const Row& row = call_->row();
  hash.add(row.op);
  for (const auto& [name, value] : row.integers) {
    if (name == parameter_) continue;
    hash.add(name);
    hash.add(value);
  }
  for (const auto& [name, value] : row.words) {
    hash.add(name);
    hash.add(value);
  }
  for (const auto& [name, value] : row.reals) {
    hash.add(name);
    hash.add(std::int64_t{std::bit_cast<std::int32_t>(value)});
  }
  for (const HostTensor& tensor : call_->tensors().all()) {
    const TensorSpec& spec = tensor.spec();
    if (spec.role != Role::input || axes_.contains(spec.name)) continue;
    hash.add(spec.name);
    for (const std::int64_t size : spec.shape) hash.add(size);
    if (tensor.elements() == 0) continue;
    for (std::int64_t r = 0; r < tensor.rows(); ++r) {
      add_segment(tensor, {r, 0, tensor.columns()}, hash);
    }
  }
  return hash.digest();
}

std::vector<RowDigest> CallRows::digests(Role role, const RowDigest& seed) const {
  std::vector<RowDigest> all;
  for (std::int64_t row = 0; row < count_; ++row) {
    RowHash hash(seed);
    for (const HostTensor& tensor : call_->tensors().all()) {
      if (tensor.spec().role != role || !axes_.contains(tensor.spec().name)) continue;
      hash.add(tensor.spec().name);
      for (const RowSegment& segment : segments(tensor.spec().name, row)) {
        add_segment(tensor, segment, hash);
      }
    }
    all.push_back(hash.digest());
  }
  return all;
}

std::vector<RowDigest> CallRows::inputs() const { return digests(Role::input, shared_digest()); }

std::vector<RowDigest> CallRows::outputs() const { return digests(Role::output, {}); }

}  // namespace plumb::cases
