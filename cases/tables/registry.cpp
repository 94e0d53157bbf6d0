// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>

#include "cases/recorded/recorded_problem.h"
#include "cases/tables/case_file.h"
#include "cases/tables/op_table.h"
#include "cases/tensors/toml.h"
#include "device/plugin/known_ops.h"
#include "plumb_case_files.h"
#include "plumb_op_list.h"

namespace plumb::cases {

#define PLUMB_DECLARE_DEFINITION(op) OpDefinition define_##op();
PLUMB_FOR_EACH_OP(PLUMB_DECLARE_DEFINITION)
#undef PLUMB_DECLARE_DEFINITION

namespace {

// Case files of the ops that this process added.
std::map<std::string_view, std::string>& added_rows() {
  static std::map<std::string_view, std::string> rows;
  return rows;
}

std::string_view case_file_text(std::string_view name) {
  const auto added = added_rows().find(name);
  if (added != added_rows().end()) return added->second;
  for (const auto& file : kCaseFiles) {
    if (file.name == name) return file.text;
  }
  throw BadRow(fmt::format("cases/{}.toml is not in this build", name));
}

std::optional<Scenario::Mode> parse_mode(std::string_view word) {
  if (word == "eager") return Scenario::Mode::eager;
  if (word == "full_graph") return Scenario::Mode::full_graph;
  if (word == "composition") return Scenario::Mode::composition;
  if (word == "concurrent") return Scenario::Mode::concurrent;
  if (word == "queued") return Scenario::Mode::queued;
  return std::nullopt;
}

bool applies(const Scenario& scenario, const OpDefinition& op, const Row& row) {
  if (scenario.mode == Scenario::Mode::eager) return true;
  // Without rows there is nothing to capture, and a replay that does nothing would pass.
  if (row.trivial == "empty") return false;
  if (scenario.few_rows) return row.concurrent < Tier::full;
  return scenario.mode != Scenario::Mode::composition || (op.fused && op.fused(row));
}

// Reads `equals`, which mode full_graph must have and other modes must not.
void parse_equals(const toml::table& table, Scenario& scenario) {
  const toml::array* equals = table["equals"].as_array();
  const bool wanted = scenario.mode == Scenario::Mode::full_graph;
  bool right =
      wanted == (equals != nullptr) && (!equals || equals->size() == scenario.steps.size());
  for (std::size_t i = 0; right && equals && i < equals->size(); ++i) {
    const std::string word = equals->get(i)->value_or(std::string());
    right = word == "replay" || word == "eager";
    if (word == "eager") scenario.steps[i].equals = Scenario::Equals::eager;
  }
  if (right) return;
  throw BadRow(fmt::format(
      "cases/tables/scenarios.toml: {}: equals is replay or eager for each step of mode full_graph",
      scenario.name));
}

Scenario parse_scenario(const toml::table& table) {
  Scenario scenario;
  scenario.name = table["name"].value_or(std::string());
  scenario.why = table["why"].value_or(std::string());
  const auto mode = parse_mode(table["mode"].value_or(std::string()));
  if (scenario.name.empty() || scenario.why.empty() || !mode) {
    throw BadRow(fmt::format("cases/tables/scenarios.toml:{}: a scenario needs name, why and mode",
                             table.source().begin.line));
  }
  scenario.mode = *mode;
  scenario.runners = table["runners"].value_or(1);
  scenario.few_rows = table["few_rows"].value_or(false);
  scenario.full_only = table["full_only"].value_or(false);
  if ((scenario.mode == Scenario::Mode::concurrent) != table.contains("runners") ||
      scenario.runners < 1) {
    throw BadRow(fmt::format(
        "cases/tables/scenarios.toml: {}: mode concurrent, and no other, says how many runners",
        scenario.name));
  }
  const toml::array* live = table["live_percent"].as_array();
  const toml::array* inputs = table["inputs"].as_array();
  if (!live || !inputs || live->size() != inputs->size() || live->empty()) {
    throw BadRow(fmt::format(
        "cases/tables/scenarios.toml: {}: live_percent and inputs are lists of one length",
        scenario.name));
  }
  for (std::size_t i = 0; i < live->size(); ++i) {
    scenario.steps.push_back(
        {.live_percent = live->get(i)->value_or(100), .inputs = inputs->get(i)->value_or(0)});
  }
  parse_equals(table, scenario);
  return scenario;
}

OpDefinition with_reals(OpDefinition op) {
  for (const OpTable::Field& field : op.table->fields()) {
    const auto* scalar = std::get_if<TableScalar>(&field);
    if (scalar != nullptr && scalar->member.type == MemberType::f32) {
      op.reals.push_back(scalar->member.name);
    }
  }
  return op;
}

bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

std::string Case::id() const { return fmt::format("{}/{}/{}", op->name, row.name, scenario->name); }

Tier Case::tier(bool with_plugin) const {
  if (row.eager_only && scenario->mode != Scenario::Mode::eager) return Tier::full;
  if (scenario->full_only) return Tier::full;
  const bool beside = scenario->mode == Scenario::Mode::concurrent || scenario->few_rows;
  const Tier own = with_plugin ? row.plugin.value_or(row.tier) : row.tier;
  return beside ? std::max(own, row.concurrent) : own;
}

namespace {

std::vector<OpDefinition>& mutable_ops() {
#define PLUMB_CALL_DEFINITION(op) with_recorded_rows(with_reals(define_##op())),
  static std::vector<OpDefinition> ops = [] {
    std::vector<OpDefinition> own{PLUMB_FOR_EACH_OP(PLUMB_CALL_DEFINITION)};
    // Avoids a later reallocation, because cases point to elements.
    own.reserve(own.size() + device::kMostAddedOps);
    return own;
  }();
#undef PLUMB_CALL_DEFINITION
  return ops;
}

}  // namespace

const std::vector<OpDefinition>& all_ops() { return mutable_ops(); }

const OpDefinition& add_op(OpDefinition op, std::string rows) {
  std::vector<OpDefinition>& ops = mutable_ops();
  if (std::ranges::find(ops, op.name, &OpDefinition::name) != ops.end()) {
    throw BadRow(fmt::format("there is an op {} already", op.name));
  }
  try {
    device::add_known_op(op.name, op.table->size());
  } catch (const std::length_error& error) {
    throw BadRow(fmt::format("{}: {}", op.name, error.what()));
  }
  added_rows()[op.name] = std::move(rows);
  return ops.emplace_back(with_recorded_rows(std::move(op)));
}

const std::vector<Scenario>& all_scenarios() {
  static const std::vector<Scenario> scenarios = [] {
    std::vector<Scenario> parsed;
    const toml::table document = toml::parse(case_file_text("scenarios"));
    for (const toml::node& node : *document["scenario"].as_array()) {
      parsed.push_back(parse_scenario(*node.as_table()));
    }
    return parsed;
  }();
  return scenarios;
}

const OpDefinition& find_op(std::string_view name) {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) {
    if (op.name == name) return op;
    names.emplace_back(op.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw BadRow(fmt::format("unknown op \"{}\"{}", name,
                           nearest.empty() ? "; plumb list --ops shows them"
                                           : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

std::vector<Row> rows_of(const RowSchema& schema, const CaseFile& own,
                         const std::vector<CaseFile>& overrides) {
  std::vector<Row> rows;
  bool overridden = false;
  for (const CaseFile& file : overrides) {
    if (op_of_case_file(file.text, file.name) != schema.name) continue;
    const std::vector<Row> replacing = parse_rows(schema, file.text, file.name);
    rows.insert(rows.end(), replacing.begin(), replacing.end());
    overridden = true;
  }
  if (overridden) return rows;
  return parse_rows(schema, own.text, own.name);
}

std::vector<Case> cases_of(const OpDefinition& op, const std::vector<CaseFile>& overrides) {
  const CaseFile own{fmt::format("cases/{}.toml", op.name), std::string(case_file_text(op.name))};
  std::vector<Case> cases;
  for (const Row& row : rows_of(op, own, overrides)) {
    for (const Scenario& scenario : all_scenarios()) {
      if (applies(scenario, op, row)) cases.push_back({&op, row, &scenario});
    }
  }
  return cases;
}

std::vector<Case> all_cases(const std::vector<CaseFile>& overrides) {
  for (const CaseFile& file : overrides) find_op(op_of_case_file(file.text, file.name));
  std::vector<Case> cases;
  for (const OpDefinition& op : all_ops())
    std::ranges::move(cases_of(op, overrides), std::back_inserter(cases));
  return cases;
}

bool matches(std::string_view pattern, std::string_view id) {
  return glob(pattern, id) || glob(std::string(pattern) + "/*", id);
}

}  // namespace plumb::cases
