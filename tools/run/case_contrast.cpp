// SPDX-License-Identifier: Apache-2.0
#include "tools/run/case_contrast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cases/studies/separation.h"
#include "device/device.h"

namespace plumb::tools {

namespace {

using cases::Observation;
using cases::SeparatingValue;

// How a report calls a number of a row: `is` for what holds or does not (1 or 0).
struct Property {
  bool is_number = false;  // else it holds (1) or does not (0)
  std::string name;

  auto operator<=>(const Property&) const = default;
};
using Properties = std::map<Property, double>;

constexpr std::int64_t kMultiples[] = {2, 4, 8, 16};

// A row's numbers, and which of them are multiples of the widths that kernels load.
void add_integers(const cases::Row& row, const std::set<std::string>& names, Properties& all) {
  for (const std::string& name : names) {
    const auto found = row.integers.find(name);
    const std::int64_t value = found == row.integers.end() ? 0 : found->second;
    all[{true, name}] = static_cast<double>(value);
    for (const std::int64_t multiple : kMultiples) {
      all[{false, fmt::format("where {} is no multiple of {}", name, multiple)}] =
          value % multiple != 0;
    }
  }
}

void add_words(const cases::Row& row, Properties& all) {
  for (const auto& [name, value] : row.words) {
    if (!value.empty()) all[{false, fmt::format("with {} = {}", name, value)}] = 1;
  }
  for (const auto& [member, value] : row.reals) {
    all[{false, fmt::format("that sets {}", member)}] = 1;
  }
}

// How its tensors lie in memory.
void add_layout(const cases::Case& which, const std::string& platform, Properties& all) {
  const auto problem =
      which.op->make_problem(which.row, device::open_device(platform)->properties());
  const cases::TensorSet tensors = problem->make_tensors();
  for (const cases::HostTensor& tensor : tensors.all()) {
    const cases::TensorSpec& spec = tensor.spec();
    if (spec.shape.size() < 2 || spec.strides.empty()) continue;
    all[{false, fmt::format("where {} has gaps between its rows", spec.name)}] =
        tensor.extent() > tensor.elements();
    for (const std::int64_t multiple : kMultiples) {
      all[{false, fmt::format("where the row stride of {} is no multiple of {}", spec.name,
                              multiple)}] = spec.strides.front() % multiple != 0;
    }
  }
}

struct JudgedRow {
  Properties properties;
  bool failed = false;
};

// A row fails if one of its cases does.
std::map<std::string, JudgedRow> rows_of(const std::vector<JudgedCase>& cases) {
  std::set<std::string> integers;
  for (const JudgedCase& one : cases) {
    for (const auto& [name, value] : one.which->row.integers) integers.insert(name);
  }
  std::map<std::string, JudgedRow> rows;
  for (const JudgedCase& one : cases) {
    const auto [found, is_new] = rows.try_emplace(one.which->row.name);
    found->second.failed |= one.failed;
    if (!is_new) continue;
    Properties& all = found->second.properties;
    add_integers(one.which->row, integers, all);
    add_words(one.which->row, all);
    add_layout(*one.which, one.platform, all);
  }
  return rows;
}

// From the plainest statement on.
int order_of(const Property& property) {
  if (property.name.find("gaps between") != std::string::npos) return 0;
  if (property.is_number) return 2;
  return property.name.find("no multiple") == std::string::npos ? 1 : 3;
}

std::string sentence(const Property& property, const SeparatingValue& found) {
  if (!property.is_number) {
    return fmt::format("fails in {} row {} ({} rows), passes in all others ({} rows)",
                       found.fails_below ? "no" : "every", property.name,
                       found.fails_below ? found.passed : found.failed,
                       found.fails_below ? found.failed : found.passed);
  }
  const bool below = found.fails_below;
  return fmt::format(
      "fails in every row with {0} {1} {2} ({3} rows), passes with {0} {4} {5} ({6} rows)",
      property.name, below ? "<=" : ">=", cases::separating_text(found.last_failing), found.failed,
      below ? ">=" : "<=", cases::separating_text(found.first_passing), found.passed);
}

std::string row_contrast(const std::vector<JudgedCase>& cases) {
  const std::map<std::string, JudgedRow> rows = rows_of(cases);
  std::set<Property> properties;
  for (const auto& [name, row] : rows) {
    for (const auto& [property, value] : row.properties) properties.insert(property);
  }
  std::string best;
  int best_order = 4;
  for (const Property& property : properties) {
    std::vector<Observation> observations;
    for (const auto& [name, row] : rows) {
      const auto found = row.properties.find(property);
      const double value = found == row.properties.end() ? 0 : found->second;
      observations.push_back({row.failed, value});
    }
    const auto found = cases::separating_value(observations, std::ssize(properties));
    if (!found || order_of(property) >= best_order) continue;
    best_order = order_of(property);
    best = sentence(property, *found);
  }
  return best;
}

// Of one dimension of a case's name: all cases of one value fail, and no others.
std::string value_contrast(const std::vector<JudgedCase>& cases,
                           const std::string& (*value_of)(const JudgedCase&)) {
  std::set<std::string> values;
  for (const JudgedCase& one : cases) values.insert(value_of(one));
  for (const std::string& value : values) {
    std::vector<Observation> observations;
    for (const JudgedCase& one : cases) {
      observations.push_back({one.failed, value_of(one) == value ? 1.0 : 0.0});
    }
    const auto found = cases::separating_value(observations, std::ssize(values));
    if (!found || found->fails_below) continue;
    return fmt::format("fails in every {} case ({}), passes in all others ({})", value,
                       found->failed, found->passed);
  }
  return "";
}

}  // namespace

std::string case_contrast(const std::vector<JudgedCase>& cases) {
  const std::string by_scenario = value_contrast(
      cases, [](const JudgedCase& one) -> const std::string& { return one.which->scenario->name; });
  if (!by_scenario.empty()) return by_scenario;
  const std::string by_platform = value_contrast(
      cases, [](const JudgedCase& one) -> const std::string& { return one.platform; });
  return by_platform.empty() ? row_contrast(cases) : by_platform;
}

}  // namespace plumb::tools
