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

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cases/tables/op_table.h"

namespace plumb::cases {

// The tensor that was declared last.
class TensorEditor {
 public:
  explicit TensorEditor(TableTensor& tensor) : tensor_(tensor) {}
  TensorEditor& named(std::string name) { return set(tensor_.name, std::move(name)); }
  TensorEditor& strides(std::vector<Formula> strides) {
    return set(tensor_.strides, std::move(strides));
  }
  // Of a member that is a void*. The formula's value is a Dtype.
  TensorEditor& elements(Formula dtype) { return set(tensor_.dtype_of_row, std::move(dtype)); }
  // The tensor exists where the formula is not 0. A member may have two forms of one tensor, with
  // conditions that choose one of them.
  TensorEditor& when(Formula condition) {
    return set(tensor_.when, tensor_.when ? both(*tensor_.when, condition) : condition);
  }
  // fp8 codes of this plumb_format, and where their scales are.
  TensorEditor& codes(Formula dialect, std::string scale_layout = "none") {
    tensor_.scale_layout = std::move(scale_layout);
    return set(tensor_.dialect, std::move(dialect));
  }
  // Codes of one format on every platform.
  TensorEditor& codes(std::string format, std::string scale_layout = "none") {
    tensor_.scale_layout = std::move(scale_layout);
    return set(tensor_.format, std::move(format));
  }

 private:
  template <class T, class U>
  TensorEditor& set(T& member, U value) {
    member = std::move(value);
    return *this;
  }
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

// A Dtype as a value of formulas.
inline Formula dtype_if(const Formula& condition, Dtype then, Dtype otherwise) {
  const auto number = [](Dtype dtype) { return static_cast<std::int64_t>(dtype); };
  return condition * (number(then) - number(otherwise)) + number(otherwise);
}

// The parameter of TablePart::strides. Each op that calls it lists it.
inline const Parameter kOutGap{"out_gap", 0, 0, 1 << 20,
                               "elements between rows of outputs, guarded"};

// Converts to any type, to count the members of a struct.
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
// Members but for the size of the struct, which no row has.
template <class S>
consteval std::size_t count_lines() {
  return count_members<S>() - (SizedStruct<S> ? 1 : 0);
}

// The op's struct S, or a struct in it.
template <class S>
class TablePart {
 public:
  explicit TablePart(OpTable& table) : table_(table) {
    table_.expect_members(count_lines<S>());
    if constexpr (requires(S s) { s.stream; }) {
      stream_of(&S::stream);
    }
    if constexpr (requires(S s) { s.state; }) {
      table_.set_state(locate("state", &S::state));
    }
  }

  // A struct in this one, or one that this one points to.
  template <class T>
  TablePart<T> part(const std::string& name, T S::* member) const {
    table_.expect_members(count_lines<T>() - 1);
    return {table_, prefix_ + name + ".", base_ + offset_in(member), through_, when_};
  }
  template <class T>
  TablePart<T> pointed(const std::string& name, const T* S::* member) const {
    const StructMember pointer = locate(name, member);
    table_.add_pointed({pointer, sizeof(T), SizedStruct<T>, when_});
    table_.expect_members(count_lines<T>());
    return {table_, prefix_ + name + "->", 0, pointer.offset, when_};
  }
  // The same part, of which all members are 0 where the formula is.
  TablePart when(const Formula& condition) const {
    TablePart part = *this;
    part.when_ = when_ ? both(*when_, condition) : condition;
    return part;
  }

  template <class T>
  Formula scalar(const std::string& name, T S::* member) {
    return scalar(name, member, parameter(name));
  }
  template <class T>
  Formula scalar(const std::string& name, T S::* member, Formula value) {
    return add(name, member, std::move(value));
  }
  // A scalar that callers choose, as the distance of padded rows: a call may differ from its row.
  template <class T>
  Formula caller_scalar(const std::string& name, T S::* member, Formula value) {
    const Formula made = add(name, member, std::move(value));
    std::get<TableScalar>(table_.fields().back()).of_caller = true;
    return made;
  }
  template <class T>
  Formula word(const std::string& name, T S::* member, WordChoices choices) {
    return add(name, member, std::move(choices));
  }
  // The values of the choice are those of the enum, in its order.
  template <class T>
  Formula choice(const std::string& name, T S::* member, const ContractChoice& choice) {
    WordChoices words{std::string(choice.name), {}};
    for (const std::string_view value : choice.values) {
      words.values.emplace_back(value, std::ssize(words.values));
    }
    return add(name, member, std::move(words));
  }
  void real(const std::string& name, float S::* member, float value) {
    real(name, member, [value](const Row&) { return value; });
  }
  void real(const std::string& name, float S::* member, FloatOfInteger value) {
    add(name, member, std::move(value));
  }
  // The words of the choice are numbers.
  void real(const std::string& name, float S::* member, const ContractChoice& choice) {
    add(name, member, FloatOfChoice{choice});
  }
  // No parameter is found from this value. A call must have it.
  void real(const std::string& name, float S::* member, std::function<float(const Row&)> value) {
    add(name, member, std::move(value));
  }
  // In a call, `unknown` has this value: for a parameter or word that no scalar or tensor contains.
  void given(Formula unknown, Formula value) {
    table_.fields().push_back(GivenParameter{std::move(unknown), std::move(value)});
  }
  // 1 where a call has the tensor, else 0.
  template <class T>
  Formula has(const std::string& name, T* S::* member) const {
    return !!Formula(locate(name, member));
  }
  // The value of a member, for formulas in front of its line.
  template <class T>
  Formula value(const std::string& name, T S::* member) const {
    return Formula(locate(name, member));
  }

  template <class T>
  TensorEditor input(const std::string& name, T* S::* member, std::vector<Formula> shape,
                     std::string says = {}) {
    return tensor(name, member, std::move(shape), Role::input, std::move(says));
  }
  template <class T>
  TensorEditor output(const std::string& name, T* S::* member, std::vector<Formula> shape,
                      std::string says = {}) {
    static_assert(!std::is_const_v<T>, "an op writes its outputs");
    return tensor(name, member, std::move(shape), Role::output, std::move(says));
  }
  template <class T>
  TensorEditor in_place(const std::string& name, T* S::* member, std::vector<Formula> shape,
                        std::string says = {}) {
    const TensorEditor made = output(name, member, std::move(shape), std::move(says));
    last().in_place = true;
    return made;
  }
  // The members with the strides of the first dimensions of the tensor that was declared last. In a
  // case each is as large as the dimensions inside and `out_gap` more elements.
  void strides(const std::vector<std::pair<std::string, std::int64_t S::*>>& members) {
    const std::vector<Formula> shape = last().shape;
    const std::size_t tensor = table_.fields().size() - 1;
    std::vector<Formula> strides{1};
    Formula inside = shape.back();
    for (std::size_t i = shape.size() - 1; i-- > members.size();) {
      strides.insert(strides.begin(), inside);
      inside = shape[i] * inside;
    }
    for (std::size_t i = members.size(); i-- > 0;) {
      const auto& [name, member] = members[i];
      const Formula stride = caller_scalar(name, member, inside + parameter("out_gap"));
      strides.insert(strides.begin(), stride);
      inside = shape[i] * stride;
    }
    std::get<TableTensor>(table_.fields()[tensor]).strides = std::move(strides);
  }
  template <class T>
  TensorEditor scratch(const std::string& name, T* S::* member, std::vector<Formula> shape,
                       std::string says = {}) {
    static_assert(!std::is_const_v<T>, "an op writes its scratch");
    return tensor(name, member, std::move(shape), Role::scratch, std::move(says));
  }
  template <class T>
  TensorEditor state(const std::string& name, T* S::* member, std::vector<Formula> shape,
                     std::string says = {}) {
    static_assert(!std::is_const_v<T>, "an op writes its state");
    return tensor(name, member, std::move(shape), Role::state, std::move(says));
  }

 private:
  template <class>
  friend class TablePart;
  TablePart(OpTable& table, std::string prefix, std::size_t base,
            std::optional<std::size_t> through, std::optional<Formula> when)
      : table_(table),
        prefix_(std::move(prefix)),
        base_(base),
        through_(through),
        when_(std::move(when)) {}

  template <class T>
  StructMember locate(const std::string& name, T S::* member) const {
    return {prefix_ + name, member_type<T>(), base_ + offset_in(member), through_};
  }
  void stream_of(plumb_stream S::* member) { table_.set_stream(locate("stream", member)); }

  template <class T, class Value>
  Formula add(const std::string& name, T S::* member, Value value) {
    const StructMember at = locate(name, member);
    table_.fields().push_back(TableScalar{at, std::move(value), when_});
    return Formula(at);
  }
  template <class T>
  TensorEditor tensor(const std::string& name, T* S::* member, std::vector<Formula> shape,
                      Role role, std::string says) {
    table_.fields().push_back(TableTensor{.name = name,
                                          .member = locate(name, member),
                                          .dtype = dtype_of_member<T>(),
                                          .role = role,
                                          .shape = std::move(shape),
                                          .when = when_,
                                          .says = std::move(says)});
    return TensorEditor(last());
  }
  TableTensor& last() { return std::get<TableTensor>(table_.fields().back()); }

  OpTable& table_;
  std::string prefix_ = {};
  std::size_t base_ = 0;
  std::optional<std::size_t> through_ = {};
  std::optional<Formula> when_ = {};
};

template <class P>
OpTable make_table(Formula (*members)(TablePart<P>&)) {
  OpTable table(sizeof(P), SizedStruct<P>);
  TablePart<P> part(table);
  table.capacity = members(part);
  return table;
}

// The table that `members` declares, made once.
template <auto members>
const OpTable& table_of() {
  static const OpTable made = make_table(members);
  return made;
}

}  // namespace plumb::cases
