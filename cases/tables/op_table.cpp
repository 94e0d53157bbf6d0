// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/op_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "cases/tables/widened_strides.h"

namespace plumb::cases {

namespace {

std::int64_t value_of(const WordChoices& choices, const FormulaValues& values) {
  const std::string_view word = values.row->word(choices.parameter);
  if (word.empty() && choices.of_platform != nullptr && values.platform != nullptr) {
    return choices.of_platform(*values.platform);
  }
  if (word.empty()) return choices.values.front().second;
  for (const auto& [name, value] : choices.values) {
    if (name == word) return value;
  }
  std::vector<std::string> words;
  for (const auto& [name, value] : choices.values) words.push_back(fmt::format("\"{}\"", name));
  throw BadRow(fmt::format("{}: {} is {}, not \"{}\"", values.row->where, choices.parameter,
                           fmt::join(words, " or "), word));
}

void set(const TableScalar& scalar, const FormulaValues& values, void* params) {
  if (const auto* formula = std::get_if<Formula>(&scalar.value)) {
    scalar.member.set_integer(params,
                              widened(formula->value(values), *values.row, scalar.member.name));
  } else if (const auto* choices = std::get_if<WordChoices>(&scalar.value)) {
    scalar.member.set_integer(params, value_of(*choices, values));
  } else {
    scalar.member.set_real(params,
                           values.row->real(scalar.member.name, scalar.real_of(*values.row)));
  }
}

void solve_word(const WordChoices& choices, std::int64_t value, RowOfCall& call) {
  // The default word is left unset, because some rows do not have the word at all.
  if (choices.of_platform == nullptr && choices.values.front().second == value) {
    call.known.insert(choices.parameter);
    return;
  }
  for (const auto& [word, of_word] : choices.values) {
    if (of_word == value) return call.set_word(choices.parameter, word);
  }
  throw std::invalid_argument(fmt::format("no word for {}", value));
}

// Finds the integer that gives this float. If there is none, sets the float itself.
void solve_real(const FloatOfInteger& real, const std::string& member, float value,
                RowOfCall& call) {
  for (std::int64_t n = real.least; n <= real.most; ++n) {
    if (real.value(n) == value) return call.set(real.parameter, n);
  }
  call.row.reals[member] = value;
}

void solve_choice(const FloatOfChoice& floats, float value, RowOfCall& call) {
  for (const std::string_view word : floats.choice.values) {
    if (floats.value(word) == value) return call.set_word(std::string(floats.choice.name), word);
  }
  throw std::invalid_argument(fmt::format("no {} is {}", floats.choice.name, value));
}

void solve_field(const TableScalar& scalar, RowOfCall& call) {
  if (scalar.when && !scalar.when->known(call)) {
    throw std::logic_error(scalar.member.name + ": declare its condition's parameters first");
  }
  if (!exists(scalar.when, call.values)) return;
  if (const auto* formula = std::get_if<Formula>(&scalar.value)) {
    formula->solve(scalar.member.integer(call.values.params), call);
  } else if (const auto* choices = std::get_if<WordChoices>(&scalar.value)) {
    solve_word(*choices, scalar.member.integer(call.values.params), call);
  } else if (const auto* real = std::get_if<FloatOfInteger>(&scalar.value)) {
    solve_real(*real, scalar.member.name, scalar.member.real(call.values.params), call);
  } else if (const auto* choice = std::get_if<FloatOfChoice>(&scalar.value)) {
    solve_choice(*choice, scalar.member.real(call.values.params), call);
  } else {  // computed from the whole row, which is not known yet
    call.row.reals[scalar.member.name] = scalar.member.real(call.values.params);
  }
}

void solve_field(const TableTensor& tensor, RowOfCall& call) {
  if (!tensor.when) return;
  tensor.when->solve(tensor.member.pointer(call.values.params) != nullptr ? 1 : 0, call);
}

void solve_field(const GivenParameter& given, RowOfCall& call) {
  given.unknown.solve(given.value.value(call.values), call);
}

std::string name_of(const TableScalar& scalar) { return scalar.member.name; }
std::string name_of(const TableTensor& tensor) { return tensor.member.name; }
std::string name_of(const GivenParameter& given) { return given.unknown.text(); }

// Throws if rows would overlap.
void check_strides(const TensorSpec& spec) {
  for (std::size_t i = 1; i < spec.strides.size(); ++i) {
    if (spec.shape[i - 1] <= 1 || spec.strides[i - 1] >= spec.strides[i] * spec.shape[i]) continue;
    throw std::logic_error(fmt::format("{}: strides [{}] are too small for the shape [{}]",
                                       spec.name, fmt::join(spec.strides, ", "),
                                       fmt::join(spec.shape, ", ")));
  }
}

TensorSpec spec_of(const TableTensor& tensor, const FormulaValues& values) {
  TensorSpec spec{.name = tensor.name,
                  .dtype = tensor.dtype,
                  .shape = values_of(tensor.shape, values),
                  .strides = values_of(tensor.strides, values),
                  .role = tensor.role};
  check_strides(spec);
  if (tensor.dtype_of_row) spec.dtype = static_cast<Dtype>(tensor.dtype_of_row->value(values));
  if (tensor.in_place) spec.starts_as = tensor.name + "_before";
  spec.format = tensor.format;
  spec.scale_layout = tensor.scale_layout;
  if (tensor.dialect) {
    spec.format = tensor.dialect->value(values) == PLUMB_E4M3FNUZ ? "e4m3fnuz" : "e4m3fn";
  }
  return spec;
}

// An empty tensor may have a null address.
bool is_empty(const TableTensor& tensor, const FormulaValues& values) {
  const auto is_zero = [&](const Formula& size) { return size.value(values) == 0; };
  return std::any_of(tensor.shape.begin(), tensor.shape.end(), is_zero);
}

// The spec of the input whose bytes an in-place output holds before the launch.
TensorSpec before(const TensorSpec& spec) {
  return {.name = spec.starts_as,
          .dtype = spec.dtype,
          .shape = spec.shape,
          .strides = spec.strides,
          .sparse = spec.sparse,
          .piece = spec.piece,
          .placement = spec.placement};
}

}  // namespace

OpTable::OpTable(std::size_t struct_size, bool says_its_size)
    : size_(struct_size), says_its_size_(says_its_size) {}
OpTable::OpTable(OpTable&& other) noexcept = default;
OpTable::~OpTable() = default;

void OpTable::add(TableScalar scalar) { fields_.emplace_back(std::move(scalar)); }
TableTensor& OpTable::add(TableTensor tensor) {
  return std::get<TableTensor>(fields_.emplace_back(std::move(tensor)));
}
void OpTable::add(GivenParameter given) { fields_.emplace_back(std::move(given)); }
void OpTable::add_pointed(PointedStruct pointed) { pointed_.push_back(std::move(pointed)); }

float TableScalar::real_of(const Row& row) const {
  if (const auto* real = std::get_if<FloatOfInteger>(&value)) {
    return real->value(row.integer(real->parameter));
  }
  if (const auto* real = std::get_if<FloatOfChoice>(&value)) {
    return real->value(row.word(real->choice.name));
  }
  return std::get<std::function<float(const Row&)>>(value)(row);
}

float FloatOfChoice::value(std::string_view word) const {
  return std::strtof(std::string(word.empty() ? choice.values.front() : word).c_str(), nullptr);
}

void OpTable::set_scalars(const Row& row, const device::Properties* platform, void* params) const {
  check_said_of_strides(fields_, row);
  const FormulaValues values{.params = params, .row = &row, .platform = platform};
  for (const PointedStruct& pointed : pointed_) {
    if (!exists(pointed.when, values)) pointed.pointer.set_pointer(params, nullptr);
  }
  for (const Field& field : fields_) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar == nullptr || !exists(scalar->when, values)) continue;
    try {
      set(*scalar, values, params);
    } catch (const std::invalid_argument& error) {  // a formula has no value
      throw std::invalid_argument(scalar->member.name + ": " + error.what());
    }
  }
  check_widened(fields_, values);
}

std::vector<OpTable::PlacedTensor> OpTable::layout(const FormulaValues& values) const {
  std::vector<PlacedTensor> inputs, others;
  for (const Field& field : fields_) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || !exists(tensor->when, values)) continue;
    TensorSpec spec = spec_of(*tensor, values);
    place(fields_, *tensor, values, spec);
    if (tensor->in_place) inputs.push_back({before(spec), tensor});
    (tensor->role == Role::input ? inputs : others).push_back({std::move(spec), tensor});
  }
  inputs.insert(inputs.end(), others.begin(), others.end());
  return inputs;
}

void OpTable::bind(const DeviceTensors& tensors, device::Stream stream, void* params) const {
  stream_.set_pointer(params, stream);
  for (const Field& field : fields_) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor != nullptr) tensor->member.set_pointer(params, tensors.get<void>(tensor->name));
  }
}

void OpTable::spread(const Row& row, void* params) const {
  const FormulaValues values{.params = params, .row = &row};
  std::vector<std::pair<const StructMember*, std::int64_t>> spread;
  for (const Field& field : fields_) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar == nullptr || !std::holds_alternative<Formula>(scalar->value)) continue;
    const std::int64_t factor = spread_of(fields_, scalar->member.name, values);
    if (factor > 1) {
      spread.emplace_back(&scalar->member, factor * scalar->member.integer(params));
    }
  }
  for (const auto& [member, stride] : spread) member->set_integer(params, stride);
}

void OpTable::solve(const void* params, const EngineLimits& limits, Row& row) const {
  RowOfCall call{{.params = params, .row = &row, .limits = &limits}, row};
  for (const Field& field : fields_) {
    try {
      std::visit([&](const auto& one) { solve_field(one, call); }, field);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format(
          "{}: {}: {}", row.op, std::visit([](const auto& one) { return name_of(one); }, field),
          error.what()));
    }
  }
  OpParams of_row(*this);
  set_scalars(row, nullptr, of_row.data());
  verify(params, of_row, row);
}

void OpTable::solve_what_is_there(RowOfCall& call) const {
  for (const Field& field : fields_) {
    try {
      std::visit([&](const auto& one) { solve_field(one, call); }, field);
    } catch (const std::logic_error&) {  // no row has this value: the parameter stays unknown
    }
  }
}

// Throws if values of members, or which tensors exist, differ between the call and the row found
// for it: the call would be judged with wrong sizes.
void OpTable::verify(const void* params, const OpParams& of_row, const Row& row) const {
  const FormulaValues values{.params = of_row.data(), .row = &row};
  std::map<std::string, bool> there;
  for (const Field& field : fields_) {
    if (const auto* tensor = std::get_if<TableTensor>(&field)) {
      there[tensor->member.name] |= exists(tensor->when, values);
      continue;
    }
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar == nullptr || scalar->of_caller || !exists(scalar->when, values)) continue;
    if (scalar->member.same(params, of_row.data())) continue;
    throw std::invalid_argument(fmt::format(
        "{}: the call has {} = {}, the row that describes it {}", row.op, scalar->member.name,
        scalar->member.text(params), scalar->member.text(of_row.data())));
  }
  for (const Field& field : fields_) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr) continue;
    const bool given = tensor->member.pointer(params) != nullptr;
    if (given == there[tensor->member.name]) continue;
    if (!given && is_empty(*tensor, values)) continue;
    throw std::invalid_argument(fmt::format("{}: the call has {}{}, the row that describes it {}",
                                            row.op, given ? "" : "no ", tensor->member.name,
                                            given ? "has none" : "has one"));
  }
}

std::string OpTable::describe(const TensorSpec& spec) const {
  for (const Field& field : fields_) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || tensor->name != spec.name) continue;
    if (tensor->shape.size() != spec.shape.size()) continue;  // other form of the tensor
    std::vector<std::string> shape;
    for (const Formula& size : tensor->shape) shape.push_back(size.text());
    return fmt::format("{} [{}]{}{}", tensor->member.name, fmt::join(shape, ", "),
                       tensor->says.empty() ? "" : ": ", tensor->says);
  }
  return "";
}

}  // namespace plumb::cases
