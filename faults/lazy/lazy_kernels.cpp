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
#include "faults/lazy/patched_tensor.h"
#include "faults/replaced_op.h"

namespace plumb::cases {

namespace {

constexpr std::string_view kPlatform = "sim-sm90";  // its scalars decide which value is common
constexpr std::size_t kMostInt32 = std::size_t{1} << 31, kMostUint32 = std::size_t{1} << 32;
constexpr std::int64_t kMultiples[] = {2, 4, 8, 16, 32, 64, 128, 256};

bool names(const std::vector<Formula>& formulas, const std::string& member) {
  const auto is = [&](const Formula& formula) { return formula.text() == member; };
  return std::ranges::any_of(formulas, is);
}

struct Uses {
  bool dimension = false, stride = false;
};

Uses uses_of(const OpTable& table, const std::string& member) {
  Uses uses;
  for (const OpTable::Field& field : table.fields()) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr) continue;
    uses.dimension |= names(tensor->shape, member);
    uses.stride |= names(tensor->strides, member);
  }
  return uses;
}

const TableScalar* find_scalar(const OpTable& table, const std::string& member) {
  for (const OpTable::Field& field : table.fields()) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar != nullptr && scalar->member.name == member) return scalar;
  }
  return nullptr;
}

// The scalars of a row, as a launch gets them.
OpParams scalars_of(const OpTable& table, const Row& row, const device::Properties& platform) {
  OpParams params(table);
  table.set_scalars(row, &platform, params.data());
  table.spread(row, params.data());
  return params;
}

struct RowScalars {
  Row row;
  OpParams params;
};

const device::Properties& properties_of(const std::string& platform) {
  static std::map<std::string, std::unique_ptr<device::Device>> devices;
  std::unique_ptr<device::Device>& device = devices[platform];
  if (!device) device = device::open_device(platform, {});
  return device->properties();
}

std::vector<RowScalars> rows_of_default_tier(const OpDefinition& op) {
  std::vector<RowScalars> rows;
  std::set<std::string> seen;
  for (const Case& which : cases_of(op)) {
    if (which.tier() > Tier::standard) continue;
    if (!seen.insert(which.row.name).second) continue;
    rows.push_back(
        {which.row, scalars_of(*op.table, which.row, properties_of(std::string(kPlatform)))});
  }
  return rows;
}

template <class T>
T most_common(const std::vector<T>& values) {
  std::map<T, int> counts;
  for (const T value : values) ++counts[value];
  return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
}

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

// Least value that the op takes. 1 if nothing says it: a kernel may divide by the scalar.
std::int64_t least_of(const OpDefinition& op, const TableScalar& scalar) {
  if (std::holds_alternative<WordChoices>(scalar.value)) return 0;
  const auto found = std::ranges::find(op.parameters, scalar.member.name, &Parameter::name);
  return found == op.parameters.end() ? 1 : found->least;
}

// Choices have no lazy kernels. The table of contracts tries kernels with another value of a
// choice, and says for each pair of values which rows see the difference
// (cases/studies/contract_table.h).
bool is_choice(const OpDefinition& op, const TableScalar& scalar) {
  if (std::holds_alternative<FloatOfChoice>(scalar.value)) return true;
  const auto* words = std::get_if<WordChoices>(&scalar.value);
  return words && std::ranges::count(op.choices, words->parameter, &ContractChoice::name) > 0;
}

void add_scalar(const OpDefinition& op, const TableScalar& scalar,
                const std::vector<RowScalars>& rows, std::vector<LazyKernel>& all) {
  const StructMember& member = scalar.member;
  const auto add = [&](LazyKind kind, std::int64_t number = 0, double real = 0) {
    all.push_back({op.name, kind, member.name, number, real});
  };
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  for (const RowScalars& row : rows) {
    if (!member.is_in(row.params.data())) continue;
    const void* const params = row.params.data();
    if (member.type == MemberType::f32) reals.push_back(member.real(params));
    if (member.type != MemberType::f32) integers.push_back(member.integer(params));
  }
  if (!reals.empty()) add(LazyKind::common, 0, most_common(reals));
  if (!integers.empty()) add(LazyKind::common, most_common(integers));
  add(LazyKind::first_call);
  const Uses uses = uses_of(*op.table, member.name);
  const bool is_stride = member.name.find("stride") != std::string::npos;
  if (is_stride && uses.stride) add(LazyKind::dense);
  if (!uses.dimension || is_stride || integers.empty()) return;
  for (const std::int64_t multiple : kMultiples) {
    if (multiple < std::ranges::max(integers)) add(LazyKind::rounded_down, multiple);
  }
}

void add_tensor(const OpDefinition& op, const TableTensor& tensor, std::vector<LazyKernel>& all) {
  const auto add = [&](LazyKind kind) { all.push_back({op.name, kind, tensor.name}); };
  if (tensor.role == Role::scratch) return;
  if (tensor.role == Role::input) {
    if (tensor.when) add(LazyKind::absent);
    add(LazyKind::zeros);
    add(LazyKind::first_row);
    if (tensor.dtype == Dtype::i32 || tensor.dtype == Dtype::i64) add(LazyKind::largest);
  }
  if (tensor.role == Role::output) {
    if (tensor.shape.size() > 1) {
      add(LazyKind::last_row);
      add(LazyKind::last_column);
    }
    add(LazyKind::last_element);
  }
  // Only for tensors whose rows a case can place far apart. Any other tensor would need 2^31
  // elements in one launch.
  const bool is_far =
      !tensor.strides.empty() && find_scalar(*op.table, tensor.strides.front().text());
  if (!is_far && !tensor.shape.front().depends_on_engine()) return;
  add(LazyKind::int32_offsets);
  add(LazyKind::uint32_bytes);
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

std::string_view name_of(LazyKind kind) {
  constexpr std::string_view kNames[] = {
      "common",  "first_call", "dense",       "rounded_down", "one_less",      "one_more",
      "zero",    "one",        "squared",     "absent",       "zeros",         "first_row",
      "largest", "last_row",   "last_column", "last_element", "int32_offsets", "uint32_bytes"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(LazyKind::uint32_bytes) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

std::string LazyKernel::name() const {
  std::string text = fmt::format("{}.{}.{}", op, member, name_of(kind));
  if (kind == LazyKind::rounded_down) text += fmt::format(".{}", number);
  return text;
}

std::vector<LazyKernel> lazy_kernels(const OpDefinition& op) {
  const std::vector<RowScalars> rows = rows_of_default_tier(op);
  std::vector<LazyKernel> all;
  std::set<std::string> tensors;  // a tensor may have two fields
  for (const OpTable::Field& field : op.table->fields()) {
    if (const auto* scalar = std::get_if<TableScalar>(&field)) {
      if (!is_choice(op, *scalar)) add_scalar(op, *scalar, rows, all);
    } else if (const auto* tensor = std::get_if<TableTensor>(&field)) {
      if (tensors.insert(tensor->name).second) add_tensor(op, *tensor, all);
    }
  }
  return all;
}

std::vector<LazyKernel> near_values(const Case& which, const std::string& platform) {
  const OpParams params = scalars_of(*which.op->table, which.row, properties_of(platform));
  std::vector<LazyKernel> all;
  for (const OpTable::Field& field : which.op->table->fields()) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar == nullptr || is_choice(*which.op, *scalar)) continue;
    const StructMember& member = scalar->member;
    if (!member.is_in(params.data()) || member.name.find("stride") != std::string::npos) continue;
    const auto add = [&](LazyKind kind, std::int64_t number = 0) {
      all.push_back({which.op->name, kind, member.name, number});
    };
    if (member.type == MemberType::f32) {
      for (const auto kind : {LazyKind::zero, LazyKind::one, LazyKind::squared}) add(kind);
      continue;
    }
    const std::int64_t value = member.integer(params.data());
    if (value > least_of(*which.op, *scalar)) add(LazyKind::one_less, value - 1);
    add(LazyKind::one_more, value + 1);
  }
  return all;
}

bool can_differ(const LazyKernel& kernel, const Case& which, const std::string& platform) {
  const OpTable& table = *which.op->table;
  const OpParams params = scalars_of(table, which.row, properties_of(platform));
  const FormulaValues values{.params = params.data(), .row = &which.row};
  if (is_of_tensor(kernel.kind)) {
    // Other runners of a concurrent case have other rows.
    if (which.scenario->mode == Scenario::Mode::concurrent) return false;
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
