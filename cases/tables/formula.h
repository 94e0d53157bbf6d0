// SPDX-License-Identifier: Apache-2.0
//
// Integer formulas of an op table (op_table.h): sums and products of members of the op's C struct
// and of row parameters. A formula has a value and a text. A formula can also be solved: given the
// formula's value, solve() finds an unknown row parameter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cases/tables/row.h"
#include "cases/tables/struct_member.h"
#include "device/device.h"

namespace plumb::cases {

// Sizes of an engine, which the parameters of its calls do not contain.
struct EngineLimits {
  std::int64_t requests = 0, positions = 0, query_tokens = 0;
};

// Values of a formula's variables. A case has no limits. A call of a decode step has limits, and
// its row holds the parameters found so far.
struct FormulaValues {
  const void* params = nullptr;  // the op's C struct
  const Row* row = nullptr;
  const device::Properties* platform = nullptr;  // set while a case's scalars are computed
  const EngineLimits* limits = nullptr;
};

// The row of a call while its parameters are being found.
struct RowOfCall {
  FormulaValues values;  // values of the call; values.row points to `row`
  Row& row;
  std::set<std::string, std::less<>> known = {};  // names of the parameters and words found so far

  void set(const std::string& parameter, std::int64_t value);
  void set_word(const std::string& parameter, std::string_view word);
};

struct FormulaNode;
enum class FormulaOperation;

class Formula {
 public:
  Formula(std::int64_t number = 0);
  explicit Formula(StructMember member);
  Formula(const Formula& other);
  Formula(Formula&& other) noexcept;
  Formula& operator=(const Formula& other);
  Formula& operator=(Formula&& other) noexcept;
  ~Formula();

  std::int64_t value(const FormulaValues& values) const;
  // Sets the one parameter in the formula that the call's row does not have yet, such that the
  // formula has this value. Does nothing if no parameter is unknown. Throws std::invalid_argument
  // if the parameter would not be a whole number, std::logic_error if two parameters are unknown or
  // an operation cannot be inverted.
  void solve(std::int64_t value, RowOfCall& call) const;
  // The same formula with members replaced by other formulas. If `formula_of` returns nullopt, the
  // member stays.
  Formula with_members(
      const std::function<std::optional<Formula>(const StructMember&)>& formula_of) const;
  // True if the value may differ between a case and an engine's call.
  bool depends_on_engine() const;
  // True if a call takes this size from the engine's limits: rows of a table that all calls share.
  bool has_limit() const;
  std::string text() const;
  // True if solve() has nothing to find: the row of the call has the parameters that it would set.
  bool known(const RowOfCall& call) const;
  // Adds the names of the row parameters that occur in the formula, integers and words apart.
  void collect(std::set<std::string, std::less<>>& integers,
               std::set<std::string, std::less<>>& words) const;

 private:
  explicit Formula(std::shared_ptr<const FormulaNode> node) : node_(std::move(node)) {}
  static Formula of(FormulaNode node);
  std::int64_t other_side(std::int64_t value, std::int64_t known, bool known_left) const;

  std::shared_ptr<const FormulaNode> node_;

  friend Formula parameter(std::string name);
  friend Formula word_is(std::string parameter, std::string word);
  friend Formula limit(std::int64_t EngineLimits::* which, std::string text);
  friend Formula computed(std::string text, std::function<std::int64_t(const FormulaValues&)>);
  friend Formula combine(FormulaOperation operation, Formula a, Formula b);
};

std::vector<std::int64_t> values_of(const std::vector<Formula>& formulas,
                                    const FormulaValues& values);

Formula parameter(std::string name);                       // a parameter of the row
Formula word_is(std::string parameter, std::string word);  // 1 if the row has this word, else 0
Formula limit(std::int64_t EngineLimits::* which, std::string text);
// A formula computed by a function, for values that formulas cannot express. Cannot be solved.
Formula computed(std::string text, std::function<std::int64_t(const FormulaValues&)> value);
Formula operator+(Formula a, Formula b);
Formula operator-(Formula a, Formula b);
Formula operator*(Formula a, Formula b);
Formula operator/(Formula a, Formula b);  // exact; throws if there is a remainder
Formula operator!(Formula a);             // 1 if the operand is 0, else 0
Formula both(Formula a, Formula b);       // 1 if both are not 0, else 0
Formula div_up(Formula a, Formula b);     // throws for a divisor of 0
Formula least(Formula a, Formula b);
Formula greatest(Formula a, Formula b);
Formula or_else(Formula a, Formula b);              // a, or b if a is 0
Formula unless_negative(Formula a, Formula b);      // a, or b if a is below 0
Formula in_call(Formula of_case, Formula of_call);  // of_call if there are limits, else of_case

}  // namespace plumb::cases
