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

// The member's name as rows spell it.
std::string row_name(std::string member) {
  std::ranges::replace(member, '.', '_');
  return member;
}

// Whether the row has a parameter that begins with `what` and an underscore. Nearly all rows have
// none, and a look here is cheaper than one for each stride.
bool has_any(const Row& row, std::string_view what) {
  const auto begins = [&](const std::string& name) {
    return name.starts_with(what) && name.size() > what.size() && name[what.size()] == '_';
  };
  for (auto next = row.integers.lower_bound(what); next != row.integers.end(); ++next) {
    if (begins(next->first)) return true;
    if (!next->first.starts_with(what)) break;
  }
  return false;
}

// Factor by which a dimension's own far_ parameter multiplies its stride; 1 without the parameter.
std::int64_t spread_of(const TableTensor& tensor, std::size_t dimension,
                       const FormulaValues& values) {
  const Formula& stride = tensor.strides[dimension];
  const std::int64_t far = said_of_stride(*values.row, "far", stride.text());
  const std::int64_t places = tensor.shape[dimension].value(values);
  if (far == 0 || places < 2) return 1;
  const std::int64_t span = stride.value(values) * (places / 2);
  return (std::int64_t{1} << far) / std::max<std::int64_t>(span, 1) + 1;
}

// Names, as rows spell them, of the members that are strides of tensors.
std::vector<std::string> stride_names(const std::vector<OpTable::Field>& fields) {
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
    }
  }
  return {names.begin(), names.end()};
}

// True if the parameter changes a tensor that the row has.
bool takes_effect(const std::vector<OpTable::Field>& fields, bool far, const std::string& stride,
                  const FormulaValues& values) {
  for (const OpTable::Field& field : fields) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || !exists(tensor->when, values)) continue;
    for (std::size_t i = 0; i < tensor->strides.size(); ++i) {
      if (row_name(tensor->strides[i].text()) != stride) continue;
      if (far ? spread_of(*tensor, i, values) > 1 : tensor->strides[i].value(values) > 1) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::int64_t said_of_stride(const Row& row, std::string_view what, const std::string& member) {
  if (!has_any(row, what)) return 0;
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
    if (tensor == nullptr || !exists(tensor->when, values)) continue;
    bool found = false;
    for (std::size_t i = 0; i < tensor->strides.size(); ++i) {
      found |= tensor->strides[i].text() == stride;
      if (found) most = std::max(most, spread_of(*tensor, i, values));
    }
  }
  return most;
}

void place(const std::vector<OpTable::Field>& fields, const TableTensor& tensor,
           const FormulaValues& values, TensorSpec& spec) {
  if (!has_any(*values.row, "far")) return;
  std::int64_t spread = 1;
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    const std::int64_t here = spread_of(fields, tensor.strides[i].text(), values);
    if (here == 1) break;
    if (i > 0 && (here != spread || spec.strides[i - 1] % spec.strides[i] != 0)) {
      throw BadRow(fmt::format(
          "{}: {} has no places for its far strides: {} is not a multiple of {}", values.row->where,
          spec.name, tensor.strides[i - 1].text(), tensor.strides[i].text()));
    }
    spread = here;
    spec.piece = spec.strides[i];
  }
  if (spread == 1) return;
  spec.sparse = true;
  std::int64_t last = 0;  // offset of the last element on the host
  for (std::size_t i = 0; i < spec.shape.size(); ++i) last += (spec.shape[i] - 1) * spec.strides[i];
  const std::int64_t pieces = last / spec.piece + 1;
  for (std::int64_t i = 0; i < pieces; ++i) spec.placement.push_back(i * spread);
}

void check_said_of_strides(const std::vector<OpTable::Field>& fields, const Row& row) {
  for (const auto& [name, value] : row.integers) {
    const bool far = name.starts_with("far_");
    if (!far && !name.starts_with("gap_") && !name.starts_with("align_")) continue;
    if (!name.ends_with("stride")) continue;  // a parameter of the op with such a name
    if (far ? value != 0 && value != 31 && value != 32 : value < 0 || value > kMostGap) {
      throw BadRow(fmt::format("{}: {} = {}: {}", row.where, name, value,
                               far ? "31 or 32 bits" : "0 to 2^20 elements"));
    }
    const std::vector<std::string> known = stride_names(fields);
    if (std::ranges::find(known, name.substr(name.find('_') + 1)) != known.end()) continue;
    throw BadRow(fmt::format("{}: {} names no stride of a tensor; there are: {}", row.where, name,
                             fmt::join(known, ", ")));
  }
}

void check_widened(const std::vector<OpTable::Field>& fields, const FormulaValues& values) {
  if (!values.row->contract.empty()) return;
  for (const auto& [name, value] : values.row->integers) {
    const bool far = name.starts_with("far_");
    if (!far && !name.starts_with("gap_") && !name.starts_with("align_")) continue;
    if (!name.ends_with("stride") || value == 0) continue;
    const std::string stride = name.substr(name.find('_') + 1);
    if (takes_effect(fields, far, stride, values)) continue;
    throw BadRow(fmt::format("{}: {} = {} changes nothing: no tensor of this row has {}",
                             values.row->where, name, value,
                             far ? "two places at this distance" : "this stride"));
  }
}

}  // namespace plumb::cases
