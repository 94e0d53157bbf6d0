// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/launch_arguments.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "cases/tables/op_table.h"

namespace plumb::cases {

namespace {

// Upper limit of rows, larger than any tensor's. Memory limits it further.
constexpr std::int64_t kMost = std::int64_t{1} << 32;

std::string python_name(const std::string& member) {
  std::string name;
  for (const char c : member) {
    if (c != '>') name += c == '.' || c == '-' ? '_' : c;
  }
  return name;
}

std::size_t padded(std::size_t bytes) {
  constexpr std::size_t kUnit = alignof(std::max_align_t);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

// Limits the first dimension to the rows that lie within `bytes`.
void keep_rows_in(std::size_t bytes, LaunchTensor& tensor) {
  if (tensor.shape.empty() || tensor.shape.front() == 0 || tensor.strides.front() <= 0) return;
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return;
    inner += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  const auto elements = static_cast<std::int64_t>(
      std::min<std::size_t>(bytes, std::numeric_limits<std::int64_t>::max()) /
      size_of(tensor.dtype));
  const std::int64_t rows = elements < inner ? 0 : (elements - inner) / tensor.strides.front() + 1;
  tensor.shape.front() = std::min(tensor.shape.front(), rows);
}

// The words of an enum member; null for a plain number, even if rows choose the number by a word
// (pad_bits by the dtype).
const WordChoices* words_of(const TableScalar& scalar) {
  const bool is_enum = scalar.member.type == MemberType::i32;
  return is_enum ? std::get_if<WordChoices>(&scalar.value) : nullptr;
}

std::variant<std::monostate, LaunchTensor, std::int64_t, float, std::string> value_of(
    const TableScalar& scalar, const void* params) {
  if (!scalar.member.is_in(params)) return {};
  if (scalar.member.type == MemberType::f32) return scalar.member.real(params);
  const std::int64_t value = scalar.member.integer(params);
  const WordChoices* const choices = words_of(scalar);
  if (choices == nullptr) return value;
  for (const auto& [word, of_word] : choices->values) {
    if (of_word == value) return std::string(word);
  }
  return value;
}

std::string kind_of(const TableScalar& scalar) {
  if (scalar.member.type == MemberType::f32) return "real";
  return words_of(scalar) != nullptr ? "word" : "integer";
}

LaunchTensor tensor_of(const TableTensor& tensor, const FormulaValues& values) {
  LaunchTensor made{.data = static_cast<std::byte*>(tensor.member.pointer(values.params)),
                    .dtype = tensor.dtype,
                    .format = tensor.format,
                    .shape = values_of(tensor.shape, values),
                    .strides = values_of(tensor.strides, values)};
  if (tensor.shape.front().depends_on_engine()) made.shape.front() = kMost;
  if (made.strides.empty()) made.strides = contiguous_strides(made.shape);
  if (tensor.dtype_of_row) made.dtype = static_cast<Dtype>(tensor.dtype_of_row->value(values));
  if (tensor.dialect) {
    made.format = tensor.dialect->value(values) == PLUMB_E4M3FNUZ ? "e4m3fnuz" : "e4m3fn";
  }
  return made;
}

// Finds the columns of a strided table. The struct gives its row stride, but not the number of used
// columns and, for some tables, not the number of rows. The table's memory ends with its last row,
// so both follow from the size in bytes.
void find_columns(bool knows_rows, std::size_t bytes, LaunchTensor& table) {
  const auto elements = static_cast<std::int64_t>(bytes / size_of(table.dtype));
  const std::int64_t stride = table.strides.front();
  if (elements == 0 || stride <= 0) return;
  const std::int64_t rows = knows_rows ? table.shape.front() : (elements + stride - 1) / stride;
  const std::int64_t columns = elements - (rows - 1) * stride;
  if (columns <= 0 || columns > stride) return;
  table.shape = {rows, columns};
}

// Limits the rows to the number that a scalar of the call gives: the memory may extend beyond them.
void keep_rows_told(const OpTable& table, const TableTensor& tensor, const void* params,
                    LaunchTensor& made) {
  const std::string told = tensor.shape.front().text();
  for (const OpTable::Field& field : table.fields()) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar == nullptr || scalar->member.name != told) continue;
    made.shape.front() = std::min(made.shape.front(), scalar->member.integer(params));
  }
}

// nullopt: the call lacks the tensor, or has it in its other form.
std::optional<LaunchTensor> find_tensor(const OpTable& table, const TableTensor& tensor,
                                        const RowOfCall& call, const BytesFrom& bytes_from) {
  if (tensor.member.pointer(call.values.params) == nullptr) return std::nullopt;
  if (tensor.when && tensor.when->value(call.values) == 0) return std::nullopt;
  LaunchTensor made = tensor_of(tensor, call.values);
  const std::size_t bytes = bytes_from(made.data);
  if (tensor.shape.size() == 2 && !tensor.strides.empty()) {
    find_columns(!tensor.shape.front().depends_on_engine(), bytes, made);
  }
  keep_rows_in(bytes, made);
  keep_rows_told(table, tensor, call.values.params, made);
  return made;
}

}  // namespace

std::vector<LaunchArgument> launch_arguments(const OpDefinition& op, const void* params,
                                             const BytesFrom& bytes_from) {
  const EngineLimits limits{.requests = kMost, .positions = kMost, .query_tokens = 1};
  Row row;
  row.op = row.where = std::string(op.name);
  for (const Parameter& p : op.parameters) row.integers[std::string(p.name)] = p.default_value;
  RowOfCall call{{.params = params, .row = &row, .limits = &limits}, row};
  op.table->solve_what_is_there(call);
  std::vector<LaunchArgument> arguments;
  std::map<std::string, std::optional<LaunchTensor>>
      tensors;  // a tensor may have two forms: the one that exists
  for (const OpTable::Field& field : op.table->fields()) {
    if (const auto* scalar = std::get_if<TableScalar>(&field)) {
      arguments.push_back({python_name(scalar->member.name), value_of(*scalar, params)});
    } else if (const auto* tensor = std::get_if<TableTensor>(&field)) {
      std::optional<LaunchTensor>& known = tensors[tensor->name];
      if (!known) known = find_tensor(*op.table, *tensor, call, bytes_from);
    }
  }
  for (auto& [name, tensor] : tensors) {
    arguments.push_back({name, {}});
    if (tensor) arguments.back().value = std::move(*tensor);
  }
  return arguments;
}

std::vector<LaunchArgumentName> launch_argument_names(const OpDefinition& op) {
  std::vector<LaunchArgumentName> all;
  std::set<std::string> names;  // a tensor with two forms is listed once
  for (const OpTable::Field& field : op.table->fields()) {
    if (const auto* scalar = std::get_if<TableScalar>(&field)) {
      all.push_back({python_name(scalar->member.name), kind_of(*scalar)});
    } else if (const auto* tensor = std::get_if<TableTensor>(&field)) {
      if (names.insert(tensor->name).second) all.push_back({tensor->name, "tensor"});
    }
  }
  return all;
}

std::vector<std::byte> freeze_launch(const OpTable& table, const void* params) {
  std::vector<std::byte> frozen(padded(table.size()));
  std::memcpy(frozen.data(), params, table.size());
  for (const PointedStruct& pointed : table.pointed()) {
    const std::size_t begin = frozen.size();
    frozen.resize(begin + padded(pointed.size));
    const void* from = pointed.pointer.pointer(params);
    if (from != nullptr) std::memcpy(frozen.data() + begin, from, pointed.size);
  }
  return frozen;
}

std::size_t frozen_bytes(const OpTable& table) {
  std::size_t bytes = padded(table.size());
  for (const PointedStruct& pointed : table.pointed()) bytes += padded(pointed.size);
  return bytes;
}

const void* thaw_launch(const OpTable& table, std::byte* frozen) {
  std::byte* at = frozen + padded(table.size());
  for (const PointedStruct& pointed : table.pointed()) {
    if (pointed.pointer.pointer(frozen) != nullptr) pointed.pointer.set_pointer(frozen, at);
    at += padded(pointed.size);
  }
  return frozen;
}

}  // namespace plumb::cases
