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

// A numeric or yes/no property of a row, with its name in reports.
struct Property {
  bool is_number = false;  // false: the value is 1 (true) or 0 (false)
  std::string name;

  auto operator<=>(const Property&) const = default;
};
using Properties = std::map<Property, double>;

constexpr std::int64_t kMultiples[] = {2, 4, 8, 16};

// Adds a row's numbers, and whether they are multiples of the vector widths of kernels.
void add_integers(const cases::Row& row, const std::set<std::string>& names, Properties& all) {
  for (const std::string& name : names) {
    const auto found = row.integers.find(name);
    const std::int64_t value = found == row.integers.end() ? 0 : found->second;
    all[{true, name}] = static_cast<double>(value);
    for (const std::int64_t multiple : kMultiples) {
      all[{false, fmt::format("where {} is not a multiple of {}", name, multiple)}] =
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

// Adds properties of the memory layout of the row's tensors.
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
      all[{false, fmt::format("where the row stride of {} is not a multiple of {}", spec.name,
                              multiple)}] = spec.strides.front() % multiple != 0;
    }
  }
}

struct JudgedRow {
  const JudgedCase* first;  // one of the row's cases
  bool failed = false;
  Properties properties = {};
};
using JudgedRows = std::map<std::string, JudgedRow>;

// A row counts as failed if one of its cases failed.
JudgedRows rows_of(const std::vector<JudgedCase>& cases) {
  JudgedRows rows;
  for (const JudgedCase& one : cases) {
    rows.try_emplace(one.which->row.name, JudgedRow{&one}).first->second.failed |= one.failed;
  }
  return rows;
}

void add_properties(JudgedRows& rows) {
  std::set<std::string> integers;
  for (const auto& [name, row] : rows) {
    for (const auto& [integer, value] : row.first->which->row.integers) integers.insert(integer);
  }
  for (auto& [name, row] : rows) {
    add_integers(row.first->which->row, integers, row.properties);
    add_words(row.first->which->row, row.properties);
    add_layout(*row.first->which, row.first->platform, row.properties);
  }
}

// Whether there are enough failures and passes for a separating value.
template <class Judged, class Failed>
bool has_both_sides(const Judged& judged, const Failed& failed) {
  const auto failures = std::ranges::count_if(judged, failed);
  return std::min<std::int64_t>(failures, std::ssize(judged) - failures) >= cases::kLeastOnEachSide;
}

// Rank of a property: plainer statements come first.
int order_of(const Property& property) {
  if (property.name.find("gaps between") != std::string::npos) return 0;
  if (property.is_number) return 2;
  return property.name.find("not a multiple") == std::string::npos ? 1 : 3;
}

std::string sentence(const Property& property, const SeparatingValue& found) {
  const bool below = found.fails_below;
  if (!property.is_number) {
    return below ? fmt::format("passes in every row {} ({} rows), fails in all others ({} rows)",
                               property.name, found.passed, found.failed)
                 : fmt::format("fails in every row {} ({} rows), passes in all others ({} rows)",
                               property.name, found.failed, found.passed);
  }
  const auto [failing, passing] = cases::separating_texts(found);
  return fmt::format(
      "fails in every row with {0} {1} {2} ({3} rows), passes with {0} {4} {5} ({6} rows)",
      property.name, below ? "<=" : ">=", failing, found.failed, below ? ">=" : "<=", passing,
      found.passed);
}

std::string row_contrast(const std::vector<JudgedCase>& cases) {
  JudgedRows rows = rows_of(cases);
  // Computing layouts needs the tensors of every row, so it is skipped if it cannot help.
  if (!has_both_sides(rows, [](const auto& row) { return row.second.failed; })) return "";
  add_properties(rows);
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

// Finds a scenario, or a platform, for which all cases fail, while all other cases pass.
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
  if (!has_both_sides(cases, [](const JudgedCase& one) { return one.failed; })) return "";
  const std::string by_scenario = value_contrast(
      cases, [](const JudgedCase& one) -> const std::string& { return one.which->scenario->name; });
  if (!by_scenario.empty()) return by_scenario;
  const std::string by_platform = value_contrast(
      cases, [](const JudgedCase& one) -> const std::string& { return one.platform; });
  return by_platform.empty() ? row_contrast(cases) : by_platform;
}

}  // namespace plumb::tools
