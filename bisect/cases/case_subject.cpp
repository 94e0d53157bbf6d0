// SPDX-License-Identifier: Apache-2.0
#include "bisect/cases/case_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "bisect/cases/smaller_values.h"
#include "cases/drivers/point_text.h"
#include "cases/recorded/recorded_file.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tensors/sort_by.h"
#include "faults/decode/planted_case.h"

namespace plumb::bisect {

namespace {

constexpr const char* kScenario = "scenario";
const std::string kPoint = "point.";

// Sorts scenarios, plainest first. The graph modes of a decode step all get 0, and so keep their
// order.
int plainness(const cases::AnyCase& which) {
  using Mode = cases::Scenario::Mode;
  const cases::Case* one = which.of_op();
  if (one == nullptr) return 0;
  switch (one->scenario->mode) {
    case Mode::eager: return 0;
    case Mode::full_graph: return 1;
    case Mode::composition: return 2;
    case Mode::queued: return 3;
    default: return 3 + one->scenario->runners;
  }
}

bool is_composition(const cases::AnyCase& which) {
  const cases::Case* one = which.of_op();
  return one != nullptr && one->scenario->mode == cases::Scenario::Mode::composition;
}

std::vector<std::int64_t> values_in_rows(const std::vector<cases::AnyCase>& all,
                                         std::string_view op, std::string_view name) {
  std::set<std::int64_t> values;
  for (const cases::AnyCase& one : all) {
    if (one.op() == op) values.insert(one.row().integer(name));
  }
  return {values.begin(), values.end()};
}

// A real of a row, as --set takes it; "" if the row leaves it to the op.
std::string real_text(const cases::Row& row, std::string_view name) {
  const auto found = row.reals.find(name);
  return found == row.reals.end() ? "" : fmt::to_string(found->second);
}

std::vector<std::string> reals_in_rows(const std::vector<cases::AnyCase>& all, std::string_view op,
                                       std::string_view name) {
  std::set<std::string> values;
  for (const cases::AnyCase& one : all) {
    if (one.op() == op) values.insert(real_text(one.row(), name));
  }
  values.erase("");
  return {values.begin(), values.end()};
}

std::unique_ptr<cases::Problem> problem_of(const cases::Case& which, const std::string& platform) {
  return which.op->make_problem(which.row, device::open_device(platform)->properties());
}

// True for a parameter that is 0 or 1, for example whether an optional tensor exists.
bool is_switch(const cases::Parameter& parameter) {
  return parameter.least == 0 && parameter.most == 1;
}

bool is_real(const cases::RowSchema& schema, std::string_view name) {
  return std::ranges::find(schema.reals, name) != schema.reals.end();
}

// With one column nearly all defects look alike.
constexpr std::int64_t kFew = 8;

// Smallest value to try. A wide dimension keeps kFew elements.
std::int64_t least_of(const cases::Parameter& parameter, std::int64_t value) {
  constexpr std::int64_t kWide = 64;
  return parameter.least == 1 && value >= kWide ? kFew : parameter.least;
}

std::vector<std::string> texts(const auto& values) {
  std::vector<std::string> all;
  for (const auto& value : values) all.push_back(fmt::to_string(value));
  return all;
}

void add_others(Knob& knob, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (std::ranges::find(knob.words, value) == knob.words.end()) knob.others.push_back(value);
  }
}

// The values of a word that differ from leaving it out. A choice that is left out has its first
// value.
std::vector<std::string> other_values(const cases::RowSchema& schema, std::string_view word) {
  std::vector<std::string> values = texts(schema.values_of(word));
  const bool is_choice =
      std::ranges::find(schema.choices, word, &cases::ContractChoice::name) != schema.choices.end();
  if (is_choice && !values.empty()) values.erase(values.begin());
  return values;
}

// Number of columns that a tensor of this shape has to keep; 1 if it is a list.
std::int64_t columns_to_keep(const cases::HostTensor& tensor) {
  return tensor.spec().shape.size() < 2 ? 1 : std::min(tensor.columns(), kFew);
}

// The values of a word, plainest first. The plainest is to leave it out.
std::vector<std::string> default_and(const std::string& value) {
  if (value.empty()) return {""};
  return {"", value};
}

}  // namespace

CaseSubject::CaseSubject(cases::AnyCase which, const std::vector<cases::AnyCase>& all, Question run)
    : run_(std::move(run)) {
  add_scenarios(which, all);
  add_row(which, all);
  if (which.of_steps() != nullptr) describe_serving();
  if (const cases::Case* of_op = which.of_op()) {
    add_recorded_rows(*of_op);
    const auto problem = problem_of(*of_op, run_.platform);
    has_rows_ = problem->capacity() > 0;
    const cases::TensorSet tensors = problem->make_tensors();
    for (const cases::HostTensor& tensor : tensors.all()) {
      const bool is_result = tensor.spec().role == cases::Role::output && tensor.elements() > 0;
      if (is_result) columns_to_keep_[tensor.spec().name] = columns_to_keep(tensor);
    }
  }
  if (run_.seed != "0") add({.name = "--seed", .words = {"0", run_.seed}}, run_.seed);
}

void CaseSubject::add(Knob knob, std::string value) {
  start_[knob.name] = std::move(value);
  subject_.knobs.push_back(std::move(knob));
}

// Collects the row's scenarios. Composition is offered only if the original case is one, because it
// compares other ops.
void CaseSubject::add_scenarios(const cases::AnyCase& which,
                                const std::vector<cases::AnyCase>& all) {
  for (const cases::AnyCase& one : all) {
    if (one.op() == which.op() && one.row().name == which.row().name) scenarios_.push_back(one);
  }
  cases::sort_by(scenarios_, plainness);
  Knob knob{.name = kScenario};
  for (const cases::AnyCase& one : scenarios_) {
    if (is_composition(one) && one.scenario() != which.scenario()) continue;
    knob.words.emplace_back(one.scenario());
  }
  add(std::move(knob), std::string(which.scenario()));
}

void CaseSubject::add_row(const cases::AnyCase& which, const std::vector<cases::AnyCase>& all) {
  const bool is_op = which.of_op() != nullptr;
  for (const cases::Parameter& parameter : which.schema().parameters) {
    const std::string name(parameter.name);
    if (is_op && is_switch(parameter)) {
      const std::int64_t other = 1 - parameter.default_value;
      add({.name = name, .words = {fmt::to_string(parameter.default_value), fmt::to_string(other)}},
          fmt::to_string(which.row().integer(name)));
      continue;
    }
    if (parameter.of_values) {
      const std::string value = fmt::to_string(which.row().integer(name));
      Knob knob{.name = name, .words = {fmt::to_string(parameter.default_value)}};
      if (value != knob.words.front()) knob.words.push_back(value);
      add_others(knob, texts(values_in_rows(all, which.op(), name)));
      add(std::move(knob), value);
      continue;
    }
    add({.name = name,
         .least = is_op ? least_of(parameter, which.row().integer(name)) : parameter.least,
         .worth_a_try = values_in_rows(all, which.op(), name)},
        fmt::to_string(which.row().integer(name)));
  }
  for (const std::string_view word : which.schema().words()) {
    if (!is_op && word == cases::kModesOfRow) continue;  // the scenario is one of them
    const std::string value(which.row().word(word));
    Knob knob{.name = std::string(word), .words = default_and(value)};
    if (is_op) add_others(knob, other_values(which.schema(), word));
    add(std::move(knob), value);
  }
  if (!is_op) return;
  add_strides(which);
  add_reals(which, all);
}

// gap_, align_ and far_ parameters of strides. No schema lists them, and 0 stands for none.
void CaseSubject::add_strides(const cases::AnyCase& which) {
  for (const auto& [name, value] : which.row().integers) {
    const auto& listed = which.schema().parameters;
    if (std::ranges::find(listed, name, &cases::Parameter::name) != listed.end()) continue;
    Knob knob{.name = name};
    if (name.starts_with("far_")) knob.words = {"0", fmt::to_string(value)};
    add(std::move(knob), fmt::to_string(value));
  }
}

// Members of the C struct such as eps. The plainest value is that of the file.
void CaseSubject::add_reals(const cases::AnyCase& which, const std::vector<cases::AnyCase>& all) {
  const cases::Row& row = scenarios_.front().row();
  for (const std::string_view name : which.schema().reals) {
    if (start_.contains(std::string(name))) continue;  // set by the row's number of this name
    const std::string value = real_text(which.row(), name);
    Knob knob{.name = std::string(name), .words = {real_text(row, name)}};
    if (value != knob.words.front()) knob.words.push_back(value);
    add_others(knob, {"0", "1"});  // without a term, or without a factor
    add_others(knob, reals_in_rows(all, which.op(), name));
    add(std::move(knob), value);
  }
}

void CaseSubject::take_point(const std::string& spec) {
  const cases::Point point = cases::point_from(spec);
  has_point_ = true;
  for (const cases::PointPart& part : cases::point_parts()) {
    const std::string name = kPoint + std::string(part.name), value = part_of(point, part.name);
    if (!part.values.empty()) {
      add({.name = name, .words = part.values}, value);
    } else if (part.name == "seed") {
      add({.name = name, .words = default_and(value)}, value);
    }
  }
  // The limits of live rows and of steps start at their largest values.
  const cases::AnyCase any = case_of(start_);
  const cases::Case& which = *any.of_op();
  const auto problem = problem_of(which, run_.platform);
  add({.name = kPoint + "live", .least = 1},
      fmt::to_string(std::max<std::int64_t>(problem->capacity(), 1)));
  add({.name = kPoint + "steps", .least = 1}, fmt::to_string(which.scenario->steps.size()));
}

cases::AnyCase CaseSubject::case_of(const Candidate& candidate) const {
  const auto found = std::find_if(
      scenarios_.begin(), scenarios_.end(),
      [&](const cases::AnyCase& one) { return one.scenario() == candidate.at(kScenario); });
  if (found == scenarios_.end()) throw cases::BadRow("no such case");
  cases::AnyCase which = *found;
  for (const auto& [name, value] : candidate) {
    if (name == kScenario || name.starts_with("--") || name.starts_with(kPoint)) continue;
    if (value.empty() && is_real(which.schema(), name)) continue;  // as in the file
    which.set_parameter(name, value);
  }
  return which;
}

void CaseSubject::describe_serving() {
  // -1 means what the model or the planted fault has.
  const cases::AnyCase which = case_of(start_);
  const cases::ServedCase served = cases::planted_case(*which.of_steps(), run_.platform, 0);
  const auto name_default = [&](const char* name, std::int64_t value) {
    if (std::string& text = start_.at(name); text == "-1") text = fmt::to_string(value);
  };
  name_default("speculated", served.setup.geometry.speculated);
  name_default("drafter", served.setup.geometry.drafter ? 1 : 0);
  order_serving(start_, subject_);
  using Schedule = std::vector<cases::ScheduledStep>;
  using Numbers = std::vector<std::int64_t> (*)(const Schedule&);
  // For a list (keep_steps, keep_requests): returns the numbers of the steps or requests of the
  // whole schedule that a candidate's list keeps.
  const auto kept = [this](const char* name, Numbers numbers) {
    return [this, name, numbers](const Candidate& candidate) {
      Candidate whole = candidate;
      whole["keep_requests"] = whole["keep_steps"] = "";
      std::vector<std::int64_t> all =
          numbers(schedule_of(*case_of(whole).of_steps(), run_.platform));
      const auto list = cases::KeepList::from(candidate.at(name));
      std::erase_if(all, [&](std::int64_t number) { return !list.keeps(number); });
      return all;
    };
  };
  subject_.keeps = {{"keep_steps", "steps", kept("keep_steps", step_numbers)},
                    {"keep_requests", "requests", kept("keep_requests", request_numbers)}};
}

// For a recorded call with independent rows: makes the list of kept rows reducible.
void CaseSubject::add_recorded_rows(const cases::Case& which) {
  if (!cases::is_recorded(which.row) || which.op->row_count.empty()) return;
  const std::string name(cases::kKeepRows), value(which.row.word(name));
  start_[name] = value;  // not a knob, because its values have no order
  const auto kept = [this](const Candidate& candidate) {
    const cases::AnyCase any = case_of(candidate);
    return cases::kept_rows(*any.of_op()->op, any.row());
  };
  subject_.keeps = {{name, std::string(which.op->row_count), kept}};
}

bool CaseSubject::is_possible(const Candidate& candidate) const {
  try {
    const cases::AnyCase which = case_of(candidate);
    if (const cases::StepCase* steps = which.of_steps()) {
      schedule_of(*steps, run_.platform);
    } else {
      return !is_degenerate(*problem_of(*which.of_op(), run_.platform));
    }
    return true;
  } catch (const std::exception&) {  // a BadRow, or a size that overflows
    return false;
  }
}

// True if the launch has no work, or if an output has lost all elements, or too many columns to
// tell one defect from another.
bool CaseSubject::is_degenerate(const cases::Problem& problem) const {
  if (has_rows_ && problem.capacity() == 0) return true;
  const cases::TensorSet tensors = problem.make_tensors();
  return std::ranges::any_of(tensors.all(), [&](const cases::HostTensor& tensor) {
    const auto least = columns_to_keep_.find(tensor.spec().name);
    if (least == columns_to_keep_.end()) return false;
    return tensor.elements() == 0 || columns_to_keep(tensor) < least->second;
  });
}

std::string CaseSubject::point_of(const Candidate& candidate, const cases::Case& which) const {
  cases::Point point;
  for (const cases::PointPart& part : cases::point_parts()) {
    set_part(point, part.name, candidate.at(kPoint + std::string(part.name)));
  }
  // Leave out limits that limit nothing.
  if (point.most_steps >= std::ssize(which.scenario->steps)) point.most_steps.reset();
  const auto problem = problem_of(which, run_.platform);
  if (point.most_live >= problem->capacity()) point.most_live.reset();
  return spec_of(point);
}

// For decode steps: resets every parameter to the file's value if the schedule stays the same, so
// that the printed command is short.
cases::AnyCase CaseSubject::said(const cases::AnyCase& which) const {
  const cases::StepCase* whole = which.of_steps();
  if (whole == nullptr) return which;
  cases::StepCase least = *whole;
  const cases::Row& row = scenarios_.front().row();
  const auto try_default = [&](auto& values, const std::string& name, auto value) {
    const auto before = std::exchange(values[name], value);
    try {
      if (serve_the_same(least, *whole, run_.platform)) return;
    } catch (const std::exception&) {  // the file's value is impossible here
    }
    values[name] = before;
  };
  for (const auto& [name, value] : whole->row.integers) {
    try_default(least.row.integers, name, row.integer(name));
  }
  for (const auto& [name, value] : whole->row.words) {
    try_default(least.row.words, name, std::string(row.word(name)));
  }
  return least;
}

Question CaseSubject::question(const Candidate& candidate) const {
  const cases::AnyCase which = said(case_of(candidate));
  const cases::Row& row = scenarios_.front().row();
  Question question = run_;
  question.which = which.id();
  question.settings.clear();
  for (const auto& [name, value] : which.row().integers) {
    const auto in_file = row.integers.find(name);  // missing: a stride, which 0 leaves as it is
    if ((in_file == row.integers.end() ? 0 : in_file->second) != value) {
      question.settings.push_back(fmt::format("{}={}", name, value));
    }
  }
  for (const auto& [name, value] : which.row().reals) {
    const std::string text = real_text(which.row(), name);
    if (real_text(row, name) != text) question.settings.push_back(name + "=" + text);
  }
  for (const auto& [name, value] : which.row().words) {
    if (row.word(name) != value) question.settings.push_back(name + "=" + value);
  }
  if (candidate.contains("--seed")) question.seed = candidate.at("--seed");
  if (has_point_) question.point = point_of(candidate, *which.of_op());
  return question;
}

std::optional<ServingSize> CaseSubject::size(const Candidate& candidate) const {
  const cases::AnyCase which = case_of(candidate);
  const cases::StepCase* steps = which.of_steps();
  if (steps == nullptr) return std::nullopt;
  return serving_size(*steps, run_.platform);
}

}  // namespace plumb::bisect
