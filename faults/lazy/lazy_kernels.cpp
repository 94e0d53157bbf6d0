// SPDX-License-Identifier: Apache-2.0
#include "faults/lazy/lazy_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "cases/tables/launch_arguments.h"
#include "cases/tables/op_table.h"
#include "device/sim/launch.h"
#include "faults/lazy/op_scalars.h"
#include "faults/lazy/patched_tensor.h"
#include "faults/replaced_op.h"

namespace plumb::cases {

namespace {

constexpr std::size_t kMostInt32 = std::size_t{1} << 31, kMostUint32 = std::size_t{1} << 32;

// LazyKind::dense: the stride is the extent of the inner dimensions, by the table's formulas.
void make_dense(const OpTable& table, const std::string& member, const FormulaValues& values,
                void* params) {
  for (const OpTable::Field& field : table.fields()) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || !names(tensor->strides, member)) continue;
    if (tensor->when && tensor->when->value(values) == 0) continue;
    std::int64_t inside = 1;
    for (std::size_t i = tensor->strides.size(); i-- > 0;) {
      if (tensor->strides[i].text() == member) {
        find_scalar(table, member)->member.set_integer(params, inside);
        return;
      }
      inside = tensor->shape[i].value(values) * tensor->strides[i].value(values);
    }
  }
}

// Changes the scalars of a launch to those that the kernel assumes. `first`: the parameters of the
// first launch.
void change_scalars(const LazyKernel& kernel, const OpTable& table, const FormulaValues& values,
                    const void* first, void* params) {
  const TableScalar* const scalar = find_scalar(table, kernel.member);
  if (scalar == nullptr || !scalar->member.is_in(params)) return;
  const StructMember& member = scalar->member;
  const bool is_real = member.type == MemberType::f32;
  switch (kernel.kind) {
    case LazyKind::common:
      if (is_real) member.set_real(params, static_cast<float>(kernel.real));
      if (!is_real) member.set_integer(params, kernel.number);
      return;
    case LazyKind::first_call:
      if (first == nullptr || !member.is_in(first)) return;
      if (is_real) member.set_real(params, member.real(first));
      if (!is_real) member.set_integer(params, member.integer(first));
      return;
    case LazyKind::dense: make_dense(table, kernel.member, values, params); return;
    case LazyKind::rounded_down: {
      const std::int64_t whole = member.integer(params) / kernel.number * kernel.number;
      if (whole > 0) member.set_integer(params, whole);
      return;
    }
    case LazyKind::one_less:
    case LazyKind::one_more: member.set_integer(params, kernel.number); return;
    case LazyKind::zero: member.set_real(params, 0); return;
    case LazyKind::one: member.set_real(params, 1); return;
    case LazyKind::squared:
      member.set_real(params, member.real(params) * member.real(params));
      return;
    default: return;
  }
}

bool is_of_tensor(LazyKind kind) { return kind >= LazyKind::absent; }

// The lazy kernel that replaces plumb's own in this process, and the case that runs.
struct Current {
  const OpDefinition* op = nullptr;
  LazyKernel kernel;
  plumb_status (*right)(const void*) = nullptr;
  Row row;                         // row of the case that runs
  std::optional<TensorSpec> spec;  // the patched tensor in that case
  std::mutex mutex;
  std::vector<std::byte> first;  // parameters of the first launch, made by freeze_launch
};
Current& current() {
  static Current only;
  return only;
}

std::optional<TensorPatch> patch_of(const LazyKernel& kernel, const void* params) {
  const std::optional<TensorSpec>& spec = current().spec;
  const auto everything = [](const void*) { return std::size_t{1} << 60; };
  for (LaunchArgument& argument : launch_arguments(*current().op, params, everything)) {
    auto* tensor = std::get_if<LaunchTensor>(&argument.value);
    if (argument.name != kernel.member || tensor == nullptr) continue;
    // A call does not say how large a cache or a block table is, so the case says it.
    tensor->shape = spec->shape;
    tensor->strides = spec->strides;
    return TensorPatch::of(*tensor, kernel.kind, *spec);
  }
  return std::nullopt;
}

void enqueue(device::Stream stream, const char* name, void (*function)(const void*),
             const std::shared_ptr<TensorPatch>& patch) {
  device::sim::enqueue(stream, {.name = name,
                                .shape = {1, 1, 1, 0},
                                .invoke = function,
                                .arguments = patch,
                                .argument_bytes = sizeof(TensorPatch)});
}

plumb_status launch_patched(const LazyKernel& kernel, const void* params) {
  std::optional<TensorPatch> made = patch_of(kernel, params);
  if (!made) return current().right(params);
  const auto patch = std::make_shared<TensorPatch>(std::move(*made));
  const device::Stream stream = current().op->table->stream_of(params);
  enqueue(stream, "lazy_begin", TensorPatch::begin, patch);
  const plumb_status status = current().right(params);
  enqueue(stream, "lazy_end", TensorPatch::end, patch);
  return status;
}

plumb_status launch_lazy(const void* params) {
  Current& now = current();
  const OpTable& table = *now.op->table;
  if (now.kernel.when && !now.kernel.when->holds(table, params)) return now.right(params);
  if (is_of_tensor(now.kernel.kind) && now.kernel.kind != LazyKind::absent) {
    return launch_patched(now.kernel, params);
  }
  std::vector<std::byte> frozen = freeze_launch(table, params);
  void* const changed = const_cast<void*>(thaw_launch(table, frozen.data()));
  if (now.kernel.kind == LazyKind::absent) {
    for (const OpTable::Field& field : table.fields()) {
      const auto* tensor = std::get_if<TableTensor>(&field);
      if (tensor == nullptr || tensor->name != now.kernel.member) continue;
      if (tensor->member.is_in(changed)) tensor->member.set_pointer(changed, nullptr);
    }
    return now.right(changed);
  }
  {
    const std::lock_guard lock(now.mutex);
    if (now.first.empty()) now.first = freeze_launch(table, params);
    std::vector<std::byte> first = now.first;
    change_scalars(now.kernel, table, {.params = params, .row = &now.row},
                   thaw_launch(table, first.data()), changed);
  }
  return now.right(changed);
}

// The tensor as the case places it, and its bytes on a device.
struct PlacedSpec {
  TensorSpec spec;
  std::size_t bytes = 0;
};
// Empty if the row has no tensor of this name.
std::optional<PlacedSpec> spec_of(const LazyKernel& kernel, const Case& which,
                                  const std::string& platform) {
  const auto problem = which.op->make_problem(which.row, properties_of(platform));
  const TensorSet tensors = problem->make_tensors();
  for (const HostTensor& tensor : tensors.all()) {
    if (tensor.spec().name == kernel.member) return PlacedSpec{tensor.spec(), device_bytes(tensor)};
  }
  return std::nullopt;
}

}  // namespace

bool LaunchCondition::holds(const OpTable& table, const void* params) const {
  const TableScalar* const scalar = find_scalar(table, member);
  if (scalar == nullptr || !scalar->member.is_in(params)) return false;
  const std::int64_t found = scalar->member.integer(params);
  return multiple ? found % value == 0 : found == value;
}

bool can_differ(const LazyKernel& kernel, const Case& which, const std::string& platform) {
  const OpTable& table = *which.op->table;
  const OpParams params = scalars_of(table, which.row, properties_of(platform));
  const FormulaValues values{.params = params.data(), .row = &which.row};
  if (kernel.when && !kernel.when->holds(table, params.data())) return false;
  if (is_of_tensor(kernel.kind)) {
    // Other runners of a concurrent case, and other calls of a queued one, have other rows.
    if (which.scenario->mode == Scenario::Mode::concurrent ||
        which.scenario->mode == Scenario::Mode::queued) {
      return false;
    }
    const std::optional<PlacedSpec> placed = spec_of(kernel, which, platform);
    if (!placed) return false;
    const auto& [spec, bytes] = *placed;
    if (kernel.kind == LazyKind::int32_offsets) return bytes / size_of(spec.dtype) > kMostInt32;
    if (kernel.kind == LazyKind::uint32_bytes) return bytes > kMostUint32;
    return kernel.kind != LazyKind::first_row || spec.shape.front() > 1;
  }
  if (kernel.kind == LazyKind::first_call) return true;
  if (!find_scalar(table, kernel.member)->member.is_in(params.data())) return false;
  OpParams changed = params;
  change_scalars(kernel, table, values, nullptr, changed.data());
  return !find_scalar(table, kernel.member)->member.same(params.data(), changed.data());
}

RunOptions with_lazy_kernel(RunOptions options, const LazyKernel& kernel, const Case& which) {
  if (current().kernel.name() != kernel.name()) current().first.clear();
  current().op = which.op;
  current().kernel = kernel;
  current().row = which.row;
  const std::optional<PlacedSpec> placed = spec_of(kernel, which, options.platform);
  if (placed) current().spec = placed->spec;
  options.implementation = with_op_changed(kernel.op, [](std::string_view, device::OpEntry& entry) {
    current().right = entry.launch;
    entry.launch = launch_lazy;
  });
  return options;
}

}  // namespace plumb::cases
