// SPDX-License-Identifier: Apache-2.0
//
// Which lazy kernels an op has.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "faults/lazy/lazy_kernels.h"
#include "faults/lazy/op_scalars.h"

namespace plumb::cases {

namespace {

constexpr std::string_view kPlatform = "sim-sm90";  // its scalars decide which value is common
constexpr std::int64_t kMultiples[] = {2, 4, 8, 16, 32, 64, 128, 256};
// Of rare lazy kernels.
constexpr std::int64_t kRareMultiples[] = {8, 32, 128}, kWholeTiles[] = {64, 256};
constexpr std::int64_t kLargestFlag = 3;

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

bool is_stride(const StructMember& member) {
  return member.name.find("stride") != std::string::npos;
}

struct RowScalars {
  Row row;
  OpParams params;
};

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
  if (is_stride(member) && uses.stride) add(LazyKind::dense);
  if (!uses.dimension || is_stride(member) || integers.empty()) return;
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

// Values of a scalar in rows of the default tier. Empty for a float.
std::set<std::int64_t> values_of(const TableScalar& scalar, const std::vector<RowScalars>& rows) {
  std::set<std::int64_t> values;
  for (const RowScalars& row : rows) {
    if (scalar.member.type == MemberType::f32 || !scalar.member.is_in(row.params.data())) continue;
    values.insert(scalar.member.integer(row.params.data()));
  }
  return values;
}

// A kernel may have another branch for each value of a word or a flag.
std::vector<LaunchCondition> branches_of(const OpTable& table,
                                         const std::vector<RowScalars>& rows) {
  std::vector<LaunchCondition> all;
  for (const OpTable::Field& field : table.fields()) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar == nullptr || is_stride(scalar->member)) continue;
    if (uses_of(table, scalar->member.name).dimension) continue;
    const std::set<std::int64_t> values = values_of(*scalar, rows);
    const bool is_word = std::holds_alternative<WordChoices>(scalar->value);
    if (values.size() < 2 || (!is_word && *values.rbegin() > kLargestFlag)) continue;
    for (const std::int64_t value : values) all.push_back({scalar->member.name, value});
  }
  return all;
}

// Also as part of a dimension: "slots + 1".
bool is_in_a_shape(const OpTable& table, const std::string& member) {
  const auto is_of_name = [](char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  const auto occurs = [&](const Formula& formula) {
    const std::string text = formula.text();
    for (std::size_t at = 0; (at = text.find(member, at)) != text.npos; ++at) {
      const std::size_t end = at + member.size();
      if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end])))
        return true;
    }
    return false;
  };
  return std::ranges::any_of(table.fields(), [&](const OpTable::Field& field) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    return tensor != nullptr && std::ranges::any_of(tensor->shape, occurs);
  });
}

// A grid that is one tile too small shows only where tiles divide the size.
std::vector<LaunchCondition> whole_tiles_of(const OpTable& table,
                                            const std::vector<RowScalars>& rows) {
  std::vector<LaunchCondition> all;
  for (const OpTable::Field& field : table.fields()) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar == nullptr || is_stride(scalar->member)) continue;
    if (!is_in_a_shape(table, scalar->member.name)) continue;
    const std::set<std::int64_t> values = values_of(*scalar, rows);
    for (const std::int64_t tile : kWholeTiles) {
      if (values.empty() || *values.rbegin() < tile) continue;
      all.push_back({scalar->member.name, tile, true});
    }
  }
  return all;
}

// Kinds that one branch of a right kernel may have. An input that a branch reads wholly wrong is
// seen by any row that takes the branch.
bool is_rare_kind(const LazyKernel& kernel) {
  switch (kernel.kind) {
    case LazyKind::rounded_down: return std::ranges::count(kRareMultiples, kernel.number) > 0;
    case LazyKind::dense: return true;
    case LazyKind::common: return kernel.member.find("stride") == std::string::npos;
    default: return false;
  }
}

void add_special_values(const OpDefinition& op, const TableTensor& tensor,
                        std::vector<LazyKernel>& all) {
  if (tensor.role != Role::input) return;
  const auto add = [&](LazyKind kind) { all.push_back({op.name, kind, tensor.name}); };
  if (tensor.dtype == Dtype::i32 || tensor.dtype == Dtype::i64) add(LazyKind::below_minus_one);
  if (tensor.dtype != Dtype::f32 && tensor.dtype != Dtype::bf16) return;
  for (const auto kind :
       {LazyKind::nan, LazyKind::unusual_nan, LazyKind::infinity, LazyKind::negative_zero}) {
    add(kind);
  }
}

}  // namespace

std::string_view name_of(LazyKind kind) {
  constexpr std::string_view kNames[] = {
      "common",       "first_call",    "dense",        "rounded_down",    "one_less",
      "one_more",     "zero",          "one",          "squared",         "absent",
      "zeros",        "first_row",     "largest",      "last_row",        "last_column",
      "last_element", "int32_offsets", "uint32_bytes", "below_minus_one", "nan",
      "unusual_nan",  "infinity",      "negative_zero"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(LazyKind::negative_zero) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

std::string LazyKernel::name() const {
  std::string text = fmt::format("{}.{}.{}", op, member, name_of(kind));
  if (kind == LazyKind::rounded_down) text += fmt::format(".{}", number);
  if (when)
    text += fmt::format(".if.{}{}{}", when->member, when->multiple ? '%' : '=', when->value);
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
    if (!member.is_in(params.data()) || is_stride(member)) continue;
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

std::vector<LazyKernel> rare_lazy_kernels(const OpDefinition& op) {
  const std::vector<RowScalars> rows = rows_of_default_tier(op);
  std::vector<LazyKernel> all;
  std::set<std::string> tensors;  // a tensor may have two fields
  for (const OpTable::Field& field : op.table->fields()) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || !tensors.insert(tensor->name).second) continue;
    add_special_values(op, *tensor, all);
  }
  const auto branches = branches_of(*op.table, rows), tiles = whole_tiles_of(*op.table, rows);
  for (LazyKernel& kernel : lazy_kernels(op)) {
    const bool is_end = kernel.kind >= LazyKind::last_row && kernel.kind <= LazyKind::last_element;
    if (!is_end && !is_rare_kind(kernel)) continue;
    for (const LaunchCondition& when : is_end ? tiles : branches) {
      if (when.member == kernel.member) continue;
      kernel.when = when;
      all.push_back(kernel);
    }
  }
  return all;
}

}  // namespace plumb::cases
