// SPDX-License-Identifier: Apache-2.0
#include "cases/own_op/own_op_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "cases/tables/case_file.h"

namespace plumb::cases {

namespace {

const OwnSize* find_size(const OwnOp& op, std::string_view name) {
  const auto found = std::ranges::find(op.sizes, name, &OwnSize::name);
  return found == op.sizes.end() ? nullptr : &*found;
}

// Computes member offsets of a struct, with natural alignment.
class StructLayout {
 public:
  StructMember add(std::string name, MemberType type) {
    const std::size_t size = size_of(type);
    bytes_ = (bytes_ + size - 1) / size * size;
    return {std::move(name), type, std::exchange(bytes_, bytes_ + size)};
  }
  std::size_t bytes() const { return (bytes_ + 7) / 8 * 8; }

 private:
  std::size_t bytes_ = 0;
};

struct PlacedMembers {
  // Members by kind. Only tensors with two or more dimensions have strides.
  std::vector<StructMember> sizes, strides, reals, pointers;
  StructMember stream;
  std::size_t bytes = 0;
};

PlacedMembers place_members(const OwnOp& op) {
  StructLayout layout;
  PlacedMembers placed;
  for (const OwnSize& size : op.sizes)
    placed.sizes.push_back(layout.add(size.name, MemberType::i64));
  for (const OwnTensor& tensor : op.tensors) {
    if (tensor.shape.size() < 2) continue;
    placed.strides.push_back(layout.add(tensor.name + "_row_stride", MemberType::i64));
  }
  for (const OwnReal& real : op.reals)
    placed.reals.push_back(layout.add(real.name, MemberType::f32));
  for (const OwnTensor& tensor : op.tensors) {
    placed.pointers.push_back(layout.add(tensor.name, MemberType::pointer));
  }
  placed.stream = layout.add("stream", MemberType::pointer);
  placed.bytes = layout.bytes();
  return placed;
}

TableTensor table_tensor(const OwnOp& op, const OwnTensor& tensor, const StructMember& pointer) {
  TableTensor made{.name = tensor.name,
                   .member = pointer,
                   .dtype = tensor.dtype,
                   .role = tensor.output ? Role::output : Role::input,
                   .says = tensor.says};
  for (const std::string& size : tensor.shape) {
    made.shape.push_back(own_size(op, size, tensor.name));
  }
  if (tensor.optional) made.when = parameter(tensor.name);
  return made;
}

// Parses one factor: a name of a size, or a number.
Formula factor_of(const OwnOp& op, std::string word, const std::string& text,
                  const std::string& what) {
  std::erase(word, ' ');
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc() && rest == word.data() + word.size()) return number;
  if (find_size(op, word) != nullptr) return parameter(word);
  std::vector<std::string> names;
  for (const OwnSize& size : op.sizes) names.push_back(size.name);
  const std::string nearest = nearest_name(word, names);
  throw BadRow(fmt::format("{}: {} has the size \"{}\": \"{}\" is not a size of the op{}", op.name,
                           what, text, word,
                           nearest.empty() ? "" : " (did you mean " + nearest + "?)"));
}

// Parses "4*hidden/2", evaluated from left to right.
Formula product_of(const OwnOp& op, const std::string& term, const std::string& text,
                   const std::string& what) {
  std::optional<Formula> made;
  char operation = '*';
  for (std::size_t begin = 0; begin <= term.size();) {
    const std::size_t end = std::min(term.find_first_of("*/", begin), term.size());
    const Formula factor = factor_of(op, term.substr(begin, end - begin), text, what);
    made = !made ? factor : operation == '*' ? *made * factor : *made / factor;
    if (end < term.size()) operation = term[end];
    begin = end + 1;
  }
  return *made;
}

}  // namespace

Formula own_size(const OwnOp& op, const std::string& text, const std::string& what) {
  std::optional<Formula> sum;
  char sign = '+';
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("+-", begin), text.size());
    const Formula term = product_of(op, text.substr(begin, end - begin), text, what);
    sum = !sum ? term : sign == '+' ? *sum + term : *sum - term;
    if (end < text.size()) sign = text[end];
    begin = end + 1;
  }
  return *sum;
}

bool has_padding(const OwnOp& op, const OwnTensor& tensor) {
  return !op.live.empty() && !tensor.shape.empty() && tensor.shape.front() == op.live;
}

std::unique_ptr<OpTable> own_table(const OwnOp& op) {
  const PlacedMembers placed = place_members(op);
  auto table = std::make_unique<OpTable>(placed.bytes);
  table->set_stream(placed.stream);
  for (const StructMember& size : placed.sizes) table->add(TableScalar{size, parameter(size.name)});
  for (std::size_t i = 0; i < op.reals.size(); ++i) {
    const float value = op.reals[i].value;
    table->add(TableScalar{placed.reals[i], [value](const Row&) { return value; }});
  }
  std::size_t stride = 0;
  for (std::size_t i = 0; i < op.tensors.size(); ++i) {
    const OwnTensor& tensor = op.tensors[i];
    TableTensor made = table_tensor(op, tensor, placed.pointers[i]);
    if (made.shape.size() >= 2) {
      const StructMember& member = placed.strides[stride++];
      const Formula gap = parameter(tensor.output ? kOwnOutGap : kOwnRowGap);
      TableScalar scalar{member, made.shape.back() + gap};
      scalar.of_caller = tensor.output;
      table->add(std::move(scalar));
      made.strides = {Formula(member), 1};
      for (std::size_t d = made.shape.size() - 2; d-- > 0;) {
        made.strides.insert(made.strides.begin(), made.shape[d + 1] * made.strides.front());
      }
    }
    table->add(std::move(made));
  }
  table->expect_members(table->fields().size() + 1);  // + 1: the stream is a member, but no field
  table->capacity = op.live.empty() ? Formula(1) : parameter(op.live);
  return table;
}

}  // namespace plumb::cases
