// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/table_part.h"

namespace plumb::cases {

TensorEditor& TensorEditor::named(std::string_view name) {
  tensor_.name = name;
  return *this;
}
TensorEditor& TensorEditor::strides(std::vector<Formula> strides) {
  tensor_.strides = std::move(strides);
  return *this;
}
TensorEditor& TensorEditor::elements(const Formula& dtype) {
  tensor_.dtype_of_row = dtype;
  return *this;
}
TensorEditor& TensorEditor::when(const Formula& condition) {
  tensor_.when = tensor_.when ? both(*tensor_.when, condition) : condition;
  return *this;
}
TensorEditor& TensorEditor::codes(const Formula& dialect, std::string_view scale_layout) {
  tensor_.scale_layout = scale_layout;
  tensor_.dialect = dialect;
  return *this;
}
TensorEditor& TensorEditor::addresses() {
  tensor_.format = kAddressFormat;
  return *this;
}
TensorEditor& TensorEditor::codes(std::string_view format, std::string_view scale_layout) {
  tensor_.scale_layout = scale_layout;
  tensor_.format = format;
  return *this;
}

PartOfTable::PartOfTable(OpTable& table, std::string prefix, std::size_t base,
                         std::optional<std::size_t> through, std::optional<Formula> when)
    : table_(table),
      prefix_(std::move(prefix)),
      base_(base),
      through_(through),
      when_(std::move(when)) {}
PartOfTable::PartOfTable(const PartOfTable& other) = default;
PartOfTable::~PartOfTable() = default;

StructMember PartOfTable::at(std::string_view name, MemberType type, std::size_t offset) const {
  return {prefix_ + std::string(name), type, base_ + offset, through_};
}
void PartOfTable::point_to(const StructMember& pointer, std::size_t size,
                           bool says_its_size) const {
  table_.add_pointed({pointer, size, says_its_size, when_});
}
void PartOfTable::add_condition(const Formula& condition) {
  when_ = when_ ? both(*when_, condition) : condition;
}

Formula PartOfTable::add(const StructMember& at, const Formula& value) {
  table_.add({at, value, when_});
  return Formula(at);
}
Formula PartOfTable::add(const StructMember& at, WordChoices value) {
  table_.add({at, std::move(value), when_});
  return Formula(at);
}
Formula PartOfTable::add(const StructMember& at, const ContractChoice& value) {
  WordChoices words{std::string(value.name), {}};
  for (const std::string_view word : value.values) {
    words.values.emplace_back(word, std::ssize(words.values));
  }
  return add(at, std::move(words));
}
void PartOfTable::add_real(const StructMember& at, float value, std::string_view says) {
  add_real(at, [value](const Row&) { return value; }, says);
}
void PartOfTable::add_real(const StructMember& at, FloatOfInteger value, std::string_view says) {
  table_.add({.member = at, .value = std::move(value), .when = when_, .says = std::string(says)});
}
void PartOfTable::add_real(const StructMember& at, const ContractChoice& value,
                           std::string_view says) {
  table_.add(
      {.member = at, .value = FloatOfChoice{value}, .when = when_, .says = std::string(says)});
}
void PartOfTable::add_real(const StructMember& at, std::function<float(const Row&)> value,
                           std::string_view says) {
  table_.add({.member = at, .value = std::move(value), .when = when_, .says = std::string(says)});
}
void PartOfTable::let_callers_choose() {
  std::get<TableScalar>(table_.fields().back()).of_caller = true;
}

TensorEditor PartOfTable::add_tensor(const StructMember& at, std::string_view name, Dtype dtype,
                                     Role role, std::vector<Formula> shape, std::string_view says) {
  return TensorEditor(table_.add(TableTensor{.name = std::string(name),
                                             .member = at,
                                             .dtype = dtype,
                                             .role = role,
                                             .shape = std::move(shape),
                                             .when = when_,
                                             .says = std::string(says)}));
}
void PartOfTable::fill_in_place() { std::get<TableTensor>(table_.fields().back()).in_place = true; }

void PartOfTable::add_strides(const std::vector<StructMember>& members) {
  const std::vector<Formula> shape = std::get<TableTensor>(table_.fields().back()).shape;
  const std::size_t tensor = table_.fields().size() - 1;
  std::vector<Formula> strides{1};
  Formula inside = shape.back();
  for (std::size_t i = shape.size() - 1; i-- > members.size();) {
    strides.insert(strides.begin(), inside);
    inside = shape[i] * inside;
  }
  for (std::size_t i = members.size(); i-- > 0;) {
    const Formula stride = add(members[i], inside + parameter("out_gap"));
    let_callers_choose();
    strides.insert(strides.begin(), stride);
    inside = shape[i] * stride;
  }
  std::get<TableTensor>(table_.fields()[tensor]).strides = std::move(strides);
}

}  // namespace plumb::cases
