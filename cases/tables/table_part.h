// SPDX-License-Identifier: Apache-2.0
//
// How an op table is declared: a line for each member of the op's C struct. The first argument is
// the member's name in C. A tensor has the same name, unless `named` gives it another.
//
//   using P = plumb_rms_norm_params;
//   Formula members(TablePart<P>& t) {
//     const Formula tokens = t.scalar("tokens", &P::tokens);  // the row parameter `tokens`
//     const Formula hidden = t.scalar("hidden", &P::hidden);
//     const Formula stride =
//         t.scalar("x_row_stride", &P::x_row_stride, hidden + parameter("row_gap"));
//     t.input("x", &P::x, {tokens, hidden}, "rows to normalise").strides({stride, 1});
//     ...
//     return tokens;  // Problem::capacity()
//   }
//   ... table_of<members>() ...
//
// A scalar comes before the formulas that use it, and the parameters of a condition come before
// the scalars that have this condition.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cases/tables/op_table.h"

namespace plumb::cases {

// Adds properties to the tensor declared last.
class TensorEditor {
 public:
  explicit TensorEditor(TableTensor& tensor) : tensor_(tensor) {}
  TensorEditor& named(std::string_view name);
  TensorEditor& strides(std::vector<Formula> strides);
  // Element type of a void* member. The formula's value is a Dtype.
  TensorEditor& elements(const Formula& dtype);
  // The tensor exists if the formula is not 0. A member may be declared as two forms of one tensor,
  // with conditions that choose one of them.
  TensorEditor& when(const Formula& condition);
  // The tensor holds fp8 codes of the plumb_format that the formula gives. scale_layout: where
  // their scales are.
  TensorEditor& codes(const Formula& dialect, std::string_view scale_layout = "none");
  // The tensor holds codes of the same format on every platform.
  TensorEditor& codes(std::string_view format, std::string_view scale_layout = "none");
  // The tensor holds device addresses. Results then have address_number() (cases/tensors/tensor.h)
  // in place of the address of a tensor of the call.
  TensorEditor& addresses();

 private:
  TableTensor& tensor_;
};

template <class T>
constexpr Dtype dtype_of_member() {
  using Element = std::remove_const_t<T>;
  if constexpr (std::is_void_v<Element> || std::is_same_v<Element, std::uint8_t>) return Dtype::u8;
  if constexpr (std::is_same_v<Element, std::uint16_t>) return Dtype::bf16;
  if constexpr (std::is_same_v<Element, std::int32_t>) return Dtype::i32;
  if constexpr (std::is_same_v<Element, std::int64_t>) return Dtype::i64;
  if constexpr (std::is_same_v<Element, float>) return Dtype::f32;
}

// A formula whose value is one of two Dtypes.
inline Formula dtype_if(const Formula& condition, Dtype then, Dtype otherwise) {
  const auto number = [](Dtype dtype) { return static_cast<std::int64_t>(dtype); };
  return condition * (number(then) - number(otherwise)) + number(otherwise);
}

// Row parameter used by TablePart::strides. An op that calls it must list the parameter.
inline const Parameter kOutGap{"out_gap", 0, 0, 1 << 20,
                               "elements between rows of outputs, guarded"};

// Converts to any type. Used to count the members of a struct.
struct AnyMember {
  template <class T>
  operator T() const;
};
template <class S, class... Members>
consteval std::size_t count_members() {
  if constexpr (requires { S{Members()..., AnyMember()}; }) {
    return count_members<S, Members..., AnyMember>();
  }
  return sizeof...(Members);
}

template <class S>
concept SizedStruct = requires(S s) { s.struct_size; };
// Number of members, without the struct's size, which no row sets.
template <class S>
consteval std::size_t count_lines() {
  return count_members<S>() - (SizedStruct<S> ? 1 : 0);
}

// Adds a struct's members to a table. Independent of the struct's type, so that this code is
// compiled once.
class PartOfTable {
 protected:
  PartOfTable(OpTable& table, std::string prefix, std::size_t base,
              std::optional<std::size_t> through, std::optional<Formula> when);
  PartOfTable(const PartOfTable& other);
  ~PartOfTable();

  StructMember at(std::string_view name, MemberType type, std::size_t offset) const;
  void point_to(const StructMember& pointer, std::size_t size, bool says_its_size) const;
  void add_condition(const Formula& condition);

  Formula add(const StructMember& at, const Formula& value);
  Formula add(const StructMember& at, WordChoices value);
  Formula add(const StructMember& at, const ContractChoice& value);
  void add_real(const StructMember& at, float value, std::string_view says);
  void add_real(const StructMember& at, FloatOfInteger value, std::string_view says);
  void add_real(const StructMember& at, const ContractChoice& value, std::string_view says);
  void add_real(const StructMember& at, std::function<float(const Row&)> value,
                std::string_view says);
  void let_callers_choose();
  TensorEditor add_tensor(const StructMember& at, std::string_view name, Dtype dtype, Role role,
                          std::vector<Formula> shape, std::string_view says);
  void fill_in_place();
  void add_strides(const std::vector<StructMember>& members);

  OpTable& table_;
  std::string prefix_ = {};
  std::size_t base_ = 0;
  std::optional<std::size_t> through_ = {};
  std::optional<Formula> when_ = {};
};

// Declares the members of S: the op's struct, or a struct within it.
template <class S>
class TablePart : private PartOfTable {
 public:
  explicit TablePart(OpTable& table) : PartOfTable(table, {}, 0, {}, {}) {
    table_.expect_members(count_lines<S>());
    if constexpr (requires(S s) { s.stream; }) {
      table_.set_stream(locate("stream", &S::stream));
    }
    if constexpr (requires(S s) { s.state; }) {
      table_.set_state(locate("state", &S::state));
    }
  }

  // part: a struct member of this struct. pointed: a struct that this one points to.
  template <class T>
  TablePart<T> part(std::string_view name, T S::* member) const {
    table_.expect_members(count_lines<T>() - 1);
    return {table_, prefix_ + std::string(name) + ".", base_ + offset_in(member), through_, when_};
  }
  template <class T>
  TablePart<T> pointed(std::string_view name, const T* S::* member) const {
    const StructMember pointer = locate(name, member);
    point_to(pointer, sizeof(T), SizedStruct<T>);
    table_.expect_members(count_lines<T>());
    return {table_, prefix_ + std::string(name) + "->", 0, pointer.offset, when_};
  }
  // The same part under a condition: if the formula is 0, all its members stay 0.
  TablePart when(const Formula& condition) const {
    TablePart part = *this;
    part.add_condition(condition);
    return part;
  }

  template <class T>
  Formula scalar(std::string_view name, T S::* member) {
    return add(locate(name, member), parameter(std::string(name)));
  }
  template <class T>
  Formula scalar(std::string_view name, T S::* member, const Formula& value) {
    return add(locate(name, member), value);
  }
  // A scalar that callers may choose freely, as the stride of padded rows: a call may differ from
  // its row.
  template <class T>
  Formula caller_scalar(std::string_view name, T S::* member, const Formula& value) {
    const Formula made = add(locate(name, member), value);
    let_callers_choose();
    return made;
  }
  template <class T>
  Formula word(std::string_view name, T S::* member, WordChoices choices) {
    return add(locate(name, member), std::move(choices));
  }
  // The choice's values must be in the order of the enum.
  template <class T>
  Formula choice(std::string_view name, T S::* member, const ContractChoice& choice) {
    return add(locate(name, member), choice);
  }
  void real(std::string_view name, float S::* member, float value, std::string_view says) {
    add_real(locate(name, member), value, says);
  }
  void real(std::string_view name, float S::* member, FloatOfInteger value, std::string_view says) {
    add_real(locate(name, member), std::move(value), says);
  }
  // The choice's words must be numbers.
  void real(std::string_view name, float S::* member, const ContractChoice& choice,
            std::string_view says) {
    add_real(locate(name, member), choice, says);
  }
  // Computed from the row. It cannot be inverted, so a call must give the value itself.
  void real(std::string_view name, float S::* member, std::function<float(const Row&)> value,
            std::string_view says) {
    add_real(locate(name, member), std::move(value), says);
  }
  // Declares how the value of `unknown`, a parameter or word that no scalar's or tensor's formula
  // contains, follows from a call.
  void given(const Formula& unknown, const Formula& value) { table_.add({unknown, value}); }
  // 1 if a call has the tensor, else 0.
  template <class T>
  Formula has(std::string_view name, T* S::* member) const {
    return !!Formula(locate(name, member));
  }
  // The value of a member, for formulas that are declared before the member.
  template <class T>
  Formula value(std::string_view name, T S::* member) const {
    return Formula(locate(name, member));
  }

  template <class T>
  TensorEditor input(std::string_view name, T* S::* member, std::vector<Formula> shape,
                     std::string_view says = {}) {
    return tensor(name, member, std::move(shape), Role::input, says);
  }
  template <class T>
  TensorEditor output(std::string_view name, T* S::* member, std::vector<Formula> shape,
                      std::string_view says = {}) {
    static_assert(!std::is_const_v<T>, "an op writes its outputs");
    return tensor(name, member, std::move(shape), Role::output, says);
  }
  template <class T>
  TensorEditor in_place(std::string_view name, T* S::* member, std::vector<Formula> shape,
                        std::string_view says = {}) {
    const TensorEditor made = output(name, member, std::move(shape), says);
    fill_in_place();
    return made;
  }
  // Declares the stride members for the leading dimensions of the tensor declared last. In a case
  // each stride is the size of the inner dimensions plus `out_gap` elements.
  void strides(std::initializer_list<std::pair<std::string_view, std::int64_t S::*>> members) {
    std::vector<StructMember> located;
    for (const auto& [name, member] : members) located.push_back(locate(name, member));
    add_strides(located);
  }
  template <class T>
  TensorEditor scratch(std::string_view name, T* S::* member, std::vector<Formula> shape,
                       std::string_view says = {}) {
    static_assert(!std::is_const_v<T>, "an op writes its scratch");
    return tensor(name, member, std::move(shape), Role::scratch, says);
  }
  template <class T>
  TensorEditor state(std::string_view name, T* S::* member, std::vector<Formula> shape,
                     std::string_view says = {}) {
    static_assert(!std::is_const_v<T>, "an op writes its state");
    return tensor(name, member, std::move(shape), Role::state, says);
  }

 private:
  template <class>
  friend class TablePart;
  using PartOfTable::PartOfTable;

  template <class T>
  StructMember locate(std::string_view name, T S::* member) const {
    return at(name, member_type<T>(), offset_in(member));
  }
  template <class T>
  TensorEditor tensor(std::string_view name, T* S::* member, std::vector<Formula> shape, Role role,
                      std::string_view says) {
    return add_tensor(locate(name, member), name, dtype_of_member<T>(), role, std::move(shape),
                      says);
  }
};

template <class P>
OpTable make_table(Formula (*members)(TablePart<P>&)) {
  OpTable table(sizeof(P), SizedStruct<P>);
  TablePart<P> part(table);
  table.capacity = members(part);
  return table;
}

// The table declared by `members`, made once.
template <auto members>
const OpTable& table_of() {
  static const OpTable made = make_table(members);
  return made;
}

}  // namespace plumb::cases
