// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace plumb::cases {

enum class FormulaKind { number, member, parameter, word, limit, computed, operation };

// The operations of formula.h: its operators (add is +, negate is !) and its functions (divide_up
// is div_up).
enum class FormulaOperation {
  add,
  subtract,
  multiply,
  divide,
  divide_up,
  least,
  greatest,
  or_else,
  unless_negative,
  both,
  in_call,
  negate
};

// A leaf, or an operation on two formulas. `negate` has the same formula on both sides.
struct FormulaNode {
  FormulaKind kind = FormulaKind::number;
  std::int64_t number = 0;
  StructMember member = {};
  std::string name = {}, word = {};
  std::int64_t EngineLimits::* limit = nullptr;
  std::function<std::int64_t(const FormulaValues&)> compute = {};
  FormulaOperation operation = FormulaOperation::add;
  std::vector<Formula> sides = {};  // operands of an operation

  const Formula& a() const { return sides.front(); }
  const Formula& b() const { return sides.back(); }
};

namespace {

std::int64_t required(bool possible, std::int64_t value, const char* why) {
  if (!possible) throw std::invalid_argument(why);
  return value;
}

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return required(b != 0 && a % b == 0, b == 0 ? 0 : a / b, "a quotient is not whole");
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return required(b != 0, b == 0 ? 0 : (a + b - 1) / b, "a divisor is 0");
}

std::int64_t evaluate(const FormulaNode& node, const FormulaValues& values) {
  const auto a = [&] { return node.a().value(values); };
  const auto b = [&] { return node.b().value(values); };
  switch (node.operation) {
    case FormulaOperation::add: return a() + b();
    case FormulaOperation::subtract: return a() - b();
    case FormulaOperation::multiply: return a() * b();
    case FormulaOperation::divide: return quotient(a(), b());
    case FormulaOperation::divide_up: return quotient_up(a(), b());
    case FormulaOperation::least: return std::min(a(), b());
    case FormulaOperation::greatest: return std::max(a(), b());
    case FormulaOperation::or_else: return a() != 0 ? a() : b();
    case FormulaOperation::unless_negative: return a() >= 0 ? a() : b();
    case FormulaOperation::both: return a() != 0 && b() != 0 ? 1 : 0;
    case FormulaOperation::in_call: return values.limits == nullptr ? a() : b();
    case FormulaOperation::negate: return b() == 0 ? 1 : 0;
  }
  return 0;
}

std::string text_of(const FormulaNode& node) {
  const std::string a = node.a().text(), b = node.b().text();
  const auto grouped = [](const std::string& text) {
    return text.find(' ') == std::string::npos ? text : "(" + text + ")";
  };
  switch (node.operation) {
    case FormulaOperation::add: return fmt::format("{} + {}", a, b);
    case FormulaOperation::subtract: return fmt::format("{} - {}", a, grouped(b));
    case FormulaOperation::divide_up: return fmt::format("ceil({} / {})", grouped(a), grouped(b));
    case FormulaOperation::least: return fmt::format("min({}, {})", a, b);
    case FormulaOperation::greatest: return fmt::format("max({}, {})", a, b);
    case FormulaOperation::or_else:
    case FormulaOperation::unless_negative: return a;
    case FormulaOperation::in_call: return b;
    case FormulaOperation::negate: return "!" + grouped(b);
    case FormulaOperation::both: return fmt::format("{} and {}", grouped(a), grouped(b));
    case FormulaOperation::multiply: return fmt::format("{} * {}", grouped(a), grouped(b));
    case FormulaOperation::divide: return fmt::format("{} / {}", grouped(a), grouped(b));
  }
  return a;
}

}  // namespace

void RowOfCall::set(const std::string& parameter, std::int64_t value) {
  const auto found = row.integers.find(parameter);
  if (found == row.integers.end()) throw std::logic_error(row.op + " has no " + parameter);
  found->second = value;
  known.insert(parameter);
}

void RowOfCall::set_word(const std::string& parameter, std::string_view word) {
  row.words[parameter] = word;
  known.insert(parameter);
}

Formula Formula::of(FormulaNode node) {
  return Formula(std::make_shared<const FormulaNode>(std::move(node)));
}

Formula::Formula(std::int64_t number) : Formula(of({.number = number})) {}
Formula::Formula(const Formula& other) = default;
Formula::Formula(Formula&& other) noexcept = default;
Formula& Formula::operator=(const Formula& other) = default;
Formula& Formula::operator=(Formula&& other) noexcept = default;
Formula::~Formula() = default;
Formula::Formula(StructMember member)
    : Formula(of({.kind = FormulaKind::member, .member = std::move(member)})) {}

std::int64_t Formula::value(const FormulaValues& values) const {
  switch (node_->kind) {
    case FormulaKind::number: return node_->number;
    case FormulaKind::member: return node_->member.integer(values.params);
    case FormulaKind::parameter: return values.row->integer(node_->name);
    case FormulaKind::word: return values.row->word(node_->name) == node_->word ? 1 : 0;
    case FormulaKind::limit: return values.limits->*node_->limit;
    case FormulaKind::computed: return node_->compute(values);
    case FormulaKind::operation: return evaluate(*node_, values);
  }
  return 0;
}

bool Formula::known(const RowOfCall& call) const {
  switch (node_->kind) {
    case FormulaKind::parameter:
    case FormulaKind::word: return call.known.contains(node_->name);
    case FormulaKind::operation:
      if (node_->operation == FormulaOperation::or_else ||
          node_->operation == FormulaOperation::unless_negative)
        return node_->a().known(call);
      if (node_->operation == FormulaOperation::in_call ||
          node_->operation == FormulaOperation::negate)
        return node_->b().known(call);
      return node_->a().known(call) && node_->b().known(call);
    default: return true;
  }
}

std::int64_t Formula::other_side(std::int64_t value, std::int64_t known, bool known_left) const {
  switch (node_->operation) {
    case FormulaOperation::add: return value - known;
    case FormulaOperation::subtract: return known_left ? known - value : value + known;
    case FormulaOperation::multiply: return quotient(value, known);
    case FormulaOperation::greatest:
    case FormulaOperation::both: return value;
    case FormulaOperation::divide:
    case FormulaOperation::divide_up:
      if (!known_left) return value * known;
      [[fallthrough]];
    default: throw std::logic_error(text() + " cannot be solved");
  }
}

void Formula::solve(std::int64_t value, RowOfCall& call) const {
  if (known(call)) return;
  if (node_->kind == FormulaKind::parameter) return call.set(node_->name, value);
  if (node_->kind == FormulaKind::word) {
    if (value != 0) return call.set_word(node_->name, node_->word);
    call.known.insert(node_->name);
    return;
  }
  const Formula &a = node_->a(), &b = node_->b();
  if (node_->operation == FormulaOperation::or_else ||
      node_->operation == FormulaOperation::unless_negative)
    return a.solve(value, call);
  if (node_->operation == FormulaOperation::in_call) return b.solve(value, call);
  if (node_->operation == FormulaOperation::negate) return b.solve(value == 0 ? 1 : 0, call);
  const bool left = a.known(call);
  if (!left && !b.known(call)) throw std::logic_error(text() + " has two unknown parameters");
  const std::int64_t known = (left ? a : b).value(call.values);
  if ((node_->operation == FormulaOperation::multiply ||
       node_->operation == FormulaOperation::both) &&
      known == 0)
    return;
  (left ? b : a).solve(other_side(value, known, left), call);
}

Formula Formula::with_members(
    const std::function<std::optional<Formula>(const StructMember&)>& formula_of) const {
  if (node_->kind == FormulaKind::member) {
    const std::optional<Formula> other = formula_of(node_->member);
    return other ? other->with_members(formula_of) : *this;
  }
  if (node_->kind != FormulaKind::operation) return *this;
  return combine(node_->operation, node_->a().with_members(formula_of),
                 node_->b().with_members(formula_of));
}

bool Formula::depends_on_engine() const {
  if (node_->kind == FormulaKind::limit || node_->kind == FormulaKind::computed) return true;
  return std::any_of(node_->sides.begin(), node_->sides.end(),
                     [](const Formula& side) { return side.depends_on_engine(); });
}

bool Formula::has_limit() const {
  return node_->kind == FormulaKind::limit ||
         std::ranges::any_of(node_->sides, &Formula::has_limit);
}

std::string Formula::text() const {
  switch (node_->kind) {
    case FormulaKind::number: return std::to_string(node_->number);
    case FormulaKind::member: return node_->member.name;
    case FormulaKind::word: return fmt::format("{} == \"{}\"", node_->name, node_->word);
    case FormulaKind::operation: return text_of(*node_);
    default: return node_->name;
  }
}

void Formula::collect(std::set<std::string, std::less<>>& integers,
                      std::set<std::string, std::less<>>& words) const {
  if (node_->kind == FormulaKind::parameter) integers.insert(node_->name);
  if (node_->kind == FormulaKind::word) words.insert(node_->name);
  if (node_->kind != FormulaKind::operation) return;
  for (const Formula& side : node_->sides) side.collect(integers, words);
}

Formula parameter(std::string name) {
  return Formula::of({.kind = FormulaKind::parameter, .name = std::move(name)});
}

Formula word_is(std::string parameter, std::string word) {
  return Formula::of(
      {.kind = FormulaKind::word, .name = std::move(parameter), .word = std::move(word)});
}

Formula limit(std::int64_t EngineLimits::* which, std::string text) {
  return Formula::of({.kind = FormulaKind::limit, .name = std::move(text), .limit = which});
}

Formula computed(std::string text, std::function<std::int64_t(const FormulaValues&)> value) {
  return Formula::of(
      {.kind = FormulaKind::computed, .name = std::move(text), .compute = std::move(value)});
}

Formula combine(FormulaOperation operation, Formula a, Formula b) {
  return Formula::of({.kind = FormulaKind::operation,
                      .operation = operation,
                      .sides = {std::move(a), std::move(b)}});
}

Formula operator+(Formula a, Formula b) {
  return combine(FormulaOperation::add, std::move(a), std::move(b));
}
Formula operator-(Formula a, Formula b) {
  return combine(FormulaOperation::subtract, std::move(a), std::move(b));
}
Formula operator*(Formula a, Formula b) {
  return combine(FormulaOperation::multiply, std::move(a), std::move(b));
}
Formula operator/(Formula a, Formula b) {
  return combine(FormulaOperation::divide, std::move(a), std::move(b));
}
Formula operator!(Formula a) { return combine(FormulaOperation::negate, a, a); }
Formula both(Formula a, Formula b) {
  return combine(FormulaOperation::both, std::move(a), std::move(b));
}
Formula div_up(Formula a, Formula b) {
  return combine(FormulaOperation::divide_up, std::move(a), std::move(b));
}
Formula least(Formula a, Formula b) {
  return combine(FormulaOperation::least, std::move(a), std::move(b));
}
Formula greatest(Formula a, Formula b) {
  return combine(FormulaOperation::greatest, std::move(a), std::move(b));
}
Formula or_else(Formula a, Formula b) {
  return combine(FormulaOperation::or_else, std::move(a), std::move(b));
}
Formula unless_negative(Formula a, Formula b) {
  return combine(FormulaOperation::unless_negative, std::move(a), std::move(b));
}
Formula in_call(Formula of_case, Formula of_call) {
  return combine(FormulaOperation::in_call, std::move(of_case), std::move(of_call));
}

std::vector<std::int64_t> values_of(const std::vector<Formula>& formulas,
                                    const FormulaValues& values) {
  std::vector<std::int64_t> numbers;
  for (const Formula& formula : formulas) numbers.push_back(formula.value(values));
  return numbers;
}

}  // namespace plumb::cases
