// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/given_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "cases/tables/case_file.h"
#include "cases/tables/op_table.h"

namespace plumb::cases {

namespace {

constexpr std::string_view kBefore = "_before";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// A tensor's declared shape as text: "[tokens, hidden]".
std::string formulas_of(const TableTensor& tensor) {
  std::vector<std::string> sizes;
  for (const Formula& size : tensor.shape) sizes.push_back(size.text());
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

// Finds the row parameters of a call by solving the table's formulas one after another.
class RowFinder {
 public:
  RowFinder(const OpDefinition& op, const GivenCall& call, const device::Properties& platform)
      : op_(op), given_(call), platform_(platform), params_(*op.table) {
    row_.op = std::string(op.name);
    row_.name = "given";
    row_.where = std::string(op.name);
    for (const Parameter& p : op.parameters) row_.integers[std::string(p.name)] = p.default_value;
  }

  Row find(bool needs_outputs) {
    check_names();
    check_dimensions();
    take_settings();
    take_tensors(needs_outputs);
    check_range();
    check_layout(needs_outputs);
    return std::move(row_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadRow(fmt::format("{}: {}", op_.name, why));
  }

  const TableScalar* scalar_of(std::string_view member) const {
    for (const OpTable::Field& field : op_.table->fields()) {
      const auto* scalar = std::get_if<TableScalar>(&field);
      if (scalar != nullptr && scalar->member.name == member) return scalar;
    }
    return nullptr;
  }
  const Formula* formula_of(std::string_view member) const {
    const TableScalar* scalar = scalar_of(member);
    return scalar == nullptr ? nullptr : std::get_if<Formula>(&scalar->value);
  }
  bool is_real(std::string_view member) const {
    const TableScalar* scalar = scalar_of(member);
    return scalar != nullptr && scalar->member.type == MemberType::f32;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const OpTable::Field& field : op_.table->fields()) {
      if (const auto* tensor = std::get_if<TableTensor>(&field)) {
        all.push_back(tensor->name);
        if (tensor->in_place) all.push_back(tensor->name + std::string(kBefore));
      } else if (const auto* scalar = std::get_if<TableScalar>(&field)) {
        all.push_back(scalar->member.name);
      }
    }
    for (const Parameter& p : op_.parameters) all.emplace_back(p.name);
    for (const std::string_view word : op_.words()) all.emplace_back(word);
    return all;
  }

  bool is_tensor(std::string_view name) const {
    return std::ranges::any_of(op_.table->fields(), [&](const OpTable::Field& field) {
      const auto* tensor = std::get_if<TableTensor>(&field);
      return tensor != nullptr &&
             (tensor->name == name ||
              (tensor->in_place && tensor->name + std::string(kBefore) == name));
    });
  }
  bool is_integer(std::string_view name) const {
    return row_.integers.contains(name) || scalar_of(name) != nullptr;
  }
  bool is_word(std::string_view name) const {
    const auto words = op_.words();
    return std::ranges::find(words, name) != words.end();
  }

  std::string_view kind_of(std::string_view name) const {
    if (is_tensor(name)) return "a tensor";
    if (is_real(name)) return "a number";
    if (is_word(name)) return "a word";
    return is_integer(name) ? "an integer" : "";
  }

  void check_name(const std::string& name, bool known, std::string_view given_as) const {
    if (known) return;
    if (const std::string_view kind = kind_of(name); !kind.empty()) {
      refuse(fmt::format("{} is {}, not {}", name, kind, given_as));
    }
    const std::string nearest = nearest_name(name, names());
    refuse(fmt::format("there is no {}{}", name,
                       nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
  }

  void check_names() const {
    for (const auto& [name, tensor] : given_.tensors) check_name(name, is_tensor(name), "a tensor");
    for (const auto& [name, value] : given_.integers) {
      check_name(name, is_integer(name), "an integer");
    }
    for (const auto& [name, word] : given_.words) {
      check_name(name, is_word(name), "a word");
      op_.check_word(name, word, op_.name);
    }
    for (const auto& [name, value] : given_.reals) check_name(name, is_real(name), "a number");
  }

  // A tensor may have two forms with different numbers of dimensions; the given one must match
  // either.
  void check_dimensions() const {
    for (const auto& [name, given] : given_.tensors) {
      const TableTensor* other = nullptr;
      bool fits = false;
      for (const OpTable::Field& field : op_.table->fields()) {
        const auto* tensor = std::get_if<TableTensor>(&field);
        if (tensor == nullptr || given_as(*tensor) != &given) continue;
        fits = fits || tensor->shape.size() == given.shape.size();
        other = tensor;
      }
      if (fits || other == nullptr) continue;
      refuse(fmt::format("{} has the shape {}, and is {}", name, shape_text(given.shape),
                         formulas_of(*other)));
    }
  }

  void take_settings() {
    for (const auto& [name, value] : given_.integers) {
      if (row_.integers.contains(name)) {
        found_.set(name, value);
      } else if (is_real(name)) {
        row_.reals[name] = static_cast<float>(value);
      } else if (formula_of(name) == nullptr) {
        refuse(fmt::format("{} is a word of the op's, not a number", name));
      }
    }
    for (const auto& [name, word] : given_.words) found_.set_word(name, word);
    for (const auto& [name, value] : given_.reals) row_.reals[name] = value;
  }

  // Solves the table's GivenParameters whose formula contains no scalar of the call and no size of
  // the engine. The other parameters are found from the shapes.
  void take_given_parameters() {
    for_each_given([&](const TableTensor& tensor, const GivenTensor& given) {
      tensor.member.set_pointer(params_.data(), const_cast<std::byte*>(given.data));
    });
    for (const OpTable::Field& field : op_.table->fields()) {
      const auto* given = std::get_if<GivenParameter>(&field);
      if (given == nullptr) continue;
      bool has_scalar = false;
      given->value.with_members([&](const StructMember& member) {
        has_scalar = has_scalar || member.type != MemberType::pointer;
        return std::optional<Formula>();
      });
      has_scalar = has_scalar || given->value.depends_on_engine();
      if (!has_scalar) solve(given->unknown, given->value.value(found_.values));
    }
  }

  // The formula over row parameters only: members are replaced by their own formulas.
  Formula over_row(const Formula& formula) const {
    return formula.with_members([this](const StructMember& member) {
      const Formula* found = formula_of(member.name);
      return found == nullptr ? std::optional<Formula>() : *found;
    });
  }

  // Does nothing if two parameters are unknown, or if a rounding hides the parameter. Another
  // tensor may determine the parameter, and check_layout() refuses a wrong row.
  void solve(const Formula& formula, std::int64_t value) {
    try {
      over_row(formula).solve(value, found_);
    } catch (const std::logic_error&) {
    }
  }

  // If the formula has two or more unknown parameters, lets all but the first keep their defaults,
  // so that the first can be solved.
  bool assume_defaults(const Formula& formula) {
    std::set<std::string, std::less<>> integers, words;
    over_row(formula).collect(integers, words);
    std::vector<std::string> unknown;
    for (const Parameter& p : op_.parameters) {
      if (integers.contains(p.name) && !found_.known.contains(p.name)) unknown.emplace_back(p.name);
    }
    if (unknown.size() < 2) return false;
    found_.known.insert(unknown.begin() + 1, unknown.end());
    return true;
  }

  const GivenTensor* given_as(const TableTensor& tensor) const {
    auto found = given_.tensors.find(tensor.name);
    if (found == given_.tensors.end() && tensor.in_place) {
      found = given_.tensors.find(tensor.name + std::string(kBefore));
    }
    return found == given_.tensors.end() ? nullptr : &found->second;
  }

  // Calls visit for every tensor of the table that the call has, in the form with the call's
  // dimensions.
  void for_each_given(const auto& visit) {
    for (const OpTable::Field& field : op_.table->fields()) {
      const auto* tensor = std::get_if<TableTensor>(&field);
      const GivenTensor* given = tensor == nullptr ? nullptr : given_as(*tensor);
      if (given != nullptr && tensor->shape.size() == given->shape.size()) visit(*tensor, *given);
    }
  }

  // Solves sizes until no more are found. Conditions come later, because they only say that a size
  // is not 0.
  void solve_shapes() {
    std::size_t known = 0;
    do {
      known = found_.known.size();
      for (const auto& [name, value] : given_.integers) {
        if (const Formula* formula = formula_of(name)) solve(*formula, value);
      }
      for_each_given([&](const TableTensor& tensor, const GivenTensor& given) {
        for (std::size_t i = 0; i < given.shape.size(); ++i) {
          if (!is_of_caller(tensor.shape[i])) solve(tensor.shape[i], given.shape[i]);
        }
      });
    } while (found_.known.size() != known);
  }

  void take_tensors(bool needs_outputs) {
    solve_shapes();
    for_each_given([&](const TableTensor& tensor, const GivenTensor& given) {
      if (tensor.when) solve(*tensor.when, 1);
      if (tensor.dtype_of_row) {
        solve(*tensor.dtype_of_row, static_cast<std::int64_t>(given.dtype));
      }
    });
    for (const OpTable::Field& field : op_.table->fields()) {
      const auto* tensor = std::get_if<TableTensor>(&field);
      if (tensor == nullptr || !tensor->when || given_as(*tensor) != nullptr) continue;
      const bool is_left_out =
          tensor->role == Role::input || (needs_outputs && tensor->role == Role::output);
      if (is_left_out) solve(*tensor->when, 0);
    }
    solve_shapes();
    take_given_parameters();
    solve_shapes();
    for (const auto& [name, value] : given_.integers) {
      const Formula* formula = formula_of(name);
      if (formula != nullptr && assume_defaults(*formula)) solve_shapes();
    }
    for_each_given([&](const TableTensor& tensor, const GivenTensor&) {
      for (const Formula& size : tensor.shape) {
        if (!is_of_caller(size) && assume_defaults(size)) solve_shapes();
      }
    });
  }

  void check_range() const {
    for (const Parameter& p : op_.parameters) {
      const std::int64_t value = row_.integer(p.name);
      if (value >= p.least && value <= p.most) continue;
      refuse(fmt::format("{} = {} is outside {} .. {}", p.name, value, p.least, p.most));
    }
  }

  bool is_of_caller(const Formula& size) const {
    const TableScalar* scalar = scalar_of(size.text());
    return scalar != nullptr && scalar->of_caller;
  }

  // Takes strides that callers may choose from the shape.
  void take_caller_scalars() {
    for_each_given([&](const TableTensor& tensor, const GivenTensor& given) {
      for (std::size_t i = 0; i < given.shape.size(); ++i) {
        if (!is_of_caller(tensor.shape[i])) continue;
        scalar_of(tensor.shape[i].text())->member.set_integer(params_.data(), given.shape[i]);
      }
    });
  }

  // A call without an optional part (a schedule, a plan) has none of its scalars, whatever the row
  // has as their default.
  bool lacks_part_of(const TableScalar& scalar) const {
    return scalar.when && scalar.when->value({.params = params_.data(), .row = &row_}) == 0;
  }

  void check_settings() const {
    for (const auto& [name, value] : given_.integers) {
      const TableScalar* scalar = scalar_of(name);
      if (scalar == nullptr || formula_of(name) == nullptr || scalar->of_caller) continue;
      if (lacks_part_of(*scalar)) continue;
      const std::int64_t found = scalar->member.integer(params_.data());
      if (found == value) continue;
      refuse(fmt::format("{} is {}; by the other arguments it is {}", name, value, found));
    }
  }

  // True if the shapes are equal. A table that all calls of an engine share may have any number of
  // rows.
  static bool fits(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& of_case,
                   const std::vector<Formula>& declared) {
    if (shape.size() != of_case.size()) return false;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != of_case[i] && !(i == 0 && declared[i].has_limit())) return false;
    }
    return true;
  }

  // Checks each tensor against the shape of a case and that of a call: a case may have more cache
  // rows than a call.
  void check_layout(bool needs_outputs) {
    op_.table->set_scalars(row_, &platform_, params_.data());
    take_caller_scalars();
    check_settings();
    const auto of_case = op_.table->layout({.params = params_.data(), .row = &row_});
    const auto of_call =
        op_.table->layout({.params = params_.data(), .row = &row_, .limits = &limits_});
    std::set<std::string, std::less<>> used;
    for (std::size_t i = 0; i < of_case.size(); ++i) {
      const TensorSpec& spec = of_case[i].spec;
      const auto given = given_.tensors.find(spec.name);
      if (given == given_.tensors.end()) {
        const bool optional = spec.role == Role::scratch || spec.role == Role::state ||
                              (spec.role == Role::output && !needs_outputs);
        if (!optional) refuse(fmt::format("{} {} is missing", spec.name, shape_text(spec.shape)));
        continue;
      }
      used.insert(spec.name);
      const std::vector<std::int64_t>& shape = given->second.shape;
      if (shape == of_call[i].spec.shape || fits(shape, spec.shape, of_case[i].declared->shape)) {
        continue;
      }
      refuse(fmt::format("{} has the shape {}; by the other arguments it is {} ({})", spec.name,
                         shape_text(shape), shape_text(spec.shape),
                         formulas_of(*of_case[i].declared)));
    }
    for (const auto& [name, tensor] : given_.tensors) {
      if (!used.contains(name)) refuse(fmt::format("{} is not a tensor of this call", name));
    }
  }

  const OpDefinition& op_;
  const GivenCall& given_;
  const device::Properties& platform_;
  Row row_;
  OpParams params_;
  const EngineLimits limits_{};  // selects the sizes of a call instead of those of a case
  RowOfCall found_{{.params = params_.data(), .row = &row_, .limits = &limits_}, row_};
};

}  // namespace

Row row_of(const OpDefinition& op, const GivenCall& call, const device::Properties& platform,
           bool needs_outputs) {
  return RowFinder(op, call, platform).find(needs_outputs);
}

}  // namespace plumb::cases
