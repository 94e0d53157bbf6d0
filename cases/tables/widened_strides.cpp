// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/widened_strides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <variant>

namespace plumb::cases {

namespace {

constexpr std::int64_t kMostGap = std::int64_t{1} << 20;

// As a row spells it.
std::string row_name(std::string member) {
  std::ranges::replace(member, '.', '_');
  return member;
}

// How many rows of a tensor without far strides one row takes in memory, so that its second half
// lies past 2^far elements: the last rows may be padding. 1: it has no far stride.
std::int64_t spread_of(const TableTensor& tensor, const FormulaValues& values) {
  if (tensor.strides.empty()) return 1;
  const std::int64_t far = said_of_stride(*values.row, "far", tensor.strides.front().text());
  const std::int64_t rows = tensor.shape.front().value(values);
  if (far == 0 || rows < 2) return 1;
  const std::int64_t span = tensor.strides.front().value(values) * (rows / 2);
  return (std::int64_t{1} << far) / std::max<std::int64_t>(span, 1) + 1;
}

// Members that are strides of tensors, as a row names them. far: of their first dimension alone.
std::vector<std::string> stride_names(const std::vector<OpTable::Field>& fields, bool far) {
  std::set<std::string> members, names;
  for (const OpTable::Field& field : fields) {
    if (const auto* scalar = std::get_if<TableScalar>(&field)) members.insert(scalar->member.name);
  }
  for (const OpTable::Field& field : fields) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr) continue;
    for (const Formula& stride : tensor->strides) {
      const std::string name = stride.text();
      if (!members.contains(name) || !name.ends_with("stride")) continue;
      names.insert(row_name(name));
      if (far) break;
    }
  }
  return {names.begin(), names.end()};
}

// Whether the parameter changes a tensor of the row.
bool takes_effect(const std::vector<OpTable::Field>& fields, bool far, const std::string& stride,
                  const FormulaValues& values) {
  for (const OpTable::Field& field : fields) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || !exists(tensor->when, values)) continue;
    for (const Formula& one : tensor->strides) {
      if (row_name(one.text()) != stride) continue;
      if (far ? spread_of(*tensor, values) > 1 : one.value(values) > 1) return true;
    }
  }
  return false;
}

}  // namespace

std::int64_t said_of_stride(const Row& row, std::string_view what, const std::string& member) {
  const auto found = row.integers.find(row_name(fmt::format("{}_{}", what, member)));
  return found == row.integers.end() ? 0 : found->second;
}

std::int64_t widened(std::int64_t value, const Row& row, const std::string& member) {
  if (value <= 1) return value;
  const std::int64_t whole = std::max<std::int64_t>(said_of_stride(row, "align", member), 1);
  return (value + said_of_stride(row, "gap", member) + whole - 1) / whole * whole;
}

std::int64_t spread_of(const std::vector<OpTable::Field>& fields, const std::string& stride,
                       const FormulaValues& values) {
  std::int64_t most = 1;
  for (const OpTable::Field& field : fields) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || !exists(tensor->when, values) || tensor->strides.empty()) continue;
    if (tensor->strides.front().text() != stride) continue;
    most = std::max(most, spread_of(*tensor, values));
  }
  return most;
}

void place_rows(std::int64_t spread, TensorSpec& spec) {
  if (spread == 1) return;
  spec.sparse = true;
  for (std::int64_t row = 0; row < spec.shape.front(); ++row)
    spec.placement.push_back(row * spread);
}

void check_said_of_strides(const std::vector<OpTable::Field>& fields, const Row& row) {
  for (const auto& [name, value] : row.integers) {
    const bool far = name.starts_with("far_");
    if (!far && !name.starts_with("gap_") && !name.starts_with("align_")) continue;
    if (!name.ends_with("stride")) continue;  // a parameter of the op
    if (far ? value != 0 && value != 31 && value != 32 : value < 0 || value > kMostGap) {
      throw BadRow(fmt::format("{}: {} = {}: {}", row.where, name, value,
                               far ? "31 or 32 bits" : "0 to 2^20 elements"));
    }
    const std::vector<std::string> known = stride_names(fields, far);
    if (std::ranges::find(known, name.substr(name.find('_') + 1)) != known.end()) continue;
    throw BadRow(fmt::format("{}: {} names no stride of {}; there are: {}", row.where, name,
                             far ? "a tensor's first dimension" : "a tensor",
                             fmt::join(known, ", ")));
  }
}

void check_widened(const std::vector<OpTable::Field>& fields, const FormulaValues& values) {
  for (const auto& [name, value] : values.row->integers) {
    const bool far = name.starts_with("far_");
    if (!far && !name.starts_with("gap_") && !name.starts_with("align_")) continue;
    if (!name.ends_with("stride") || value == 0) continue;
    const std::string stride = name.substr(name.find('_') + 1);
    if (takes_effect(fields, far, stride, values)) continue;
    throw BadRow(fmt::format("{}: {} = {} changes nothing: no tensor of this row has {}",
                             values.row->where, name, value,
                             far ? "two rows at this distance" : "this stride"));
  }
}

}  // namespace plumb::cases
