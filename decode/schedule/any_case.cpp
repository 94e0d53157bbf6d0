// SPDX-License-Identifier: Apache-2.0
#include "decode/schedule/any_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cases/tables/case_file.h"

namespace plumb::cases {

namespace {

bool is_one_of(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

const Row& AnyCase::row() const {
  return std::visit([](const auto& which) -> const Row& { return which.row; }, which_);
}

const RowSchema& AnyCase::schema() const {
  if (const Case* which = of_op()) return *which->op;
  return decode_step_schema();
}

std::string_view AnyCase::scenario() const {
  if (const Case* which = of_op()) return which->scenario->name;
  return graph_mode_name(of_steps()->mode).name;
}

std::string_view AnyCase::scenario_why() const {
  if (const Case* which = of_op()) return which->scenario->why;
  return graph_mode_name(of_steps()->mode).why;
}

std::string AnyCase::id() const {
  return std::visit([](const auto& which) { return which.id(); }, which_);
}

Tier AnyCase::tier(bool with_plugin) const {
  if (const Case* which = of_op()) return which->tier(with_plugin);
  return row().tier;
}

void AnyCase::set_parameter(std::string_view name, std::string_view value) {
  if (of_steps() != nullptr && name == kModesOfRow) {
    throw BadRow(fmt::format("{}: the name of {} gives its graph mode", name, id()));
  }
  const RowSchema& known = schema();
  std::visit([&](auto& which) { cases::set_parameter(known, which.row, name, value); }, which_);
  // `named_for` lists what the row's steps do as the row stands; other parameters make other steps.
  if (auto* const steps = std::get_if<StepCase>(&which_); steps != nullptr && name != kNamedFor) {
    steps->row.words.erase(std::string(kNamedFor));
  }
}

std::vector<Case> op_cases(const std::vector<CaseFile>& overrides,
                           const std::vector<std::string>& ops) {
  std::vector<CaseFile> of_ops;
  for (const CaseFile& file : overrides) {
    if (op_of_case_file(file.text, file.name) != kDecodeStep) of_ops.push_back(file);
  }
  if (ops.empty()) return all_cases(of_ops);
  std::vector<Case> cases;
  for (const OpDefinition& op : all_ops()) {
    if (!is_one_of(ops, op.name)) continue;
    std::ranges::move(cases_of(op, of_ops), std::back_inserter(cases));
  }
  return cases;
}

std::vector<AnyCase> cases_of_all_kinds(const std::vector<CaseFile>& overrides,
                                        const std::vector<std::string>& ops) {
  std::vector<AnyCase> all;
  for (Case& which : op_cases(overrides, ops)) all.emplace_back(std::move(which));
  if (!ops.empty() && !is_one_of(ops, kDecodeStep)) return all;
  for (StepCase& which : decode_step_cases(overrides)) all.emplace_back(std::move(which));
  return all;
}

const RowSchema& find_schema(std::string_view name) {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) {
    if (op.name == name) return op;
    names.emplace_back(op.name);
  }
  if (name == kDecodeStep) return decode_step_schema();
  names.emplace_back(kDecodeStep);
  const std::string nearest = nearest_name(name, names);
  throw BadRow(fmt::format("unknown op \"{}\"{}", name,
                           nearest.empty() ? "; plumb list --ops shows them"
                                           : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

}  // namespace plumb::cases
