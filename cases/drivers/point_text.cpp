// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/point_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "cases/tables/case_file.h"

namespace plumb::cases {

namespace {

constexpr Fill kFills[] = {Fill::exact, Fill::real, Fill::adversarial};
constexpr Poison kPoisons[] = {Poison::nan, Poison::huge, Poison::zero};
constexpr device::Order kOrders[] = {device::Order::forward, device::Order::reverse,
                                     device::Order::random};
constexpr device::Policy kPolicies[] = {device::Policy::early, device::Policy::late,
                                        device::Policy::interleaved};
// Indices into scenario.cpp's kDeadRows, simplest kind first: index 3 is zeros.
constexpr int kDeadRowsByTameness[] = {3, 0, 1, 2, 4};

const PointPart& part_named(std::string_view name) {
  std::vector<std::string> names;
  for (const PointPart& part : point_parts()) {
    if (part.name == name) return part;
    names.emplace_back(part.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw BadRow(fmt::format("--point: unknown \"{}\"{}", name,
                           nearest.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                           : fmt::format(" (did you mean {}?)", nearest)));
}

template <class Value, std::size_t N>
std::size_t place_of(const Value& value, const Value (&values)[N]) {
  return static_cast<std::size_t>(std::find(values, values + N, value) - values);
}

std::size_t place_in(const PointPart& part, std::string_view value) {
  const auto found = std::find(part.values.begin(), part.values.end(), value);
  if (found == part.values.end()) {
    throw BadRow(fmt::format("--point: {} is {}, not \"{}\"", part.name,
                             fmt::join(part.values, " or "), value));
  }
  return static_cast<std::size_t>(found - part.values.begin());
}

std::uint64_t number_in(const PointPart& part, std::string_view value) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool fits = part.name == "seed" || number <= INT32_MAX;
  if (error != std::errc() || end != value.data() + value.size() || !fits) {
    throw BadRow(fmt::format("--point: {} is a whole number, not \"{}\"", part.name, value));
  }
  return number;
}

template <class Number>
std::string text_of(const std::optional<Number>& number) {
  return number ? fmt::to_string(*number) : "";
}

void set_number(Point& point, const PointPart& part, std::string_view value) {
  std::optional<std::int64_t> number;
  if (!value.empty()) number = static_cast<std::int64_t>(number_in(part, value));
  if (part.name == "live") {
    point.most_live = number;
  } else if (part.name == "steps") {
    if (number == 0) throw BadRow("--point: steps is at least 1");
    point.most_steps = number;
  } else {
    point.conditions.seed = value.empty() ? 0 : number_in(part, value);
  }
}

}  // namespace

const std::vector<PointPart>& point_parts() {
  static const std::vector<PointPart> parts{
      {"fill", {"exact", "real", "adversarial"}},
      {"poison", {"nan", "huge", "zero"}},
      {"order", {"forward", "reverse", "random"}},
      {"policy", {"early", "late", "interleaved"}},
      {"checked", {"no", "yes"}},
      {"page_guards", {"no", "yes"}},
      {"dead_rows", {"zero", "foreign", "nan", "huge", "infinity"}},
      {"seed", {}},
      {"live", {}},
      {"steps", {}}};
  return parts;
}

std::string part_of(const Point& point, std::string_view name) {
  const PointPart& part = part_named(name);
  const device::Conditions& conditions = point.conditions;
  if (name == "fill") return part.values[place_of(point.fill, kFills)];
  if (name == "poison") return part.values[place_of(point.poison, kPoisons)];
  if (name == "order") return part.values[place_of(conditions.order, kOrders)];
  if (name == "policy") return part.values[place_of(conditions.policy, kPolicies)];
  if (name == "checked") return part.values[conditions.checked];
  if (name == "page_guards") return part.values[conditions.page_guards];
  if (name == "dead_rows") return part.values[place_of(point.first_dead_rows, kDeadRowsByTameness)];
  if (name == "live") return text_of(point.most_live);
  if (name == "steps") return text_of(point.most_steps);
  return conditions.seed == 0 ? "" : fmt::to_string(conditions.seed);
}

void set_part(Point& point, std::string_view name, std::string_view value) {
  const PointPart& part = part_named(name);
  if (part.values.empty()) return set_number(point, part, value);
  const std::size_t place = place_in(part, value);
  device::Conditions& conditions = point.conditions;
  if (name == "fill") point.fill = kFills[place];
  if (name == "poison") point.poison = kPoisons[place];
  if (name == "order") conditions.order = kOrders[place];
  if (name == "policy") conditions.policy = kPolicies[place];
  if (name == "checked") conditions.checked = place != 0;
  if (name == "page_guards") conditions.page_guards = place != 0;
  if (name == "dead_rows") point.first_dead_rows = kDeadRowsByTameness[place];
}

std::string spec_of(const Point& point) {
  std::vector<std::string> words;
  for (const PointPart& part : point_parts()) {
    const std::string value = part_of(point, part.name);
    const bool tame = part.values.empty() ? value.empty() : value == part.values.front();
    if (!tame) words.push_back(fmt::format("{}={}", part.name, value));
  }
  return words.empty() ? "plain" : fmt::format("{}", fmt::join(words, ","));
}

Point point_from(std::string_view spec) {
  Point point;
  for (const PointPart& part : point_parts()) {
    if (!part.values.empty()) set_part(point, part.name, part.values.front());
  }
  if (spec == "plain") return point;
  for (std::string_view rest = spec;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      throw BadRow(fmt::format("--point wants plain, or name=value with commas, not \"{}\"", spec));
    }
    set_part(point, word.substr(0, equals), word.substr(equals + 1));
    if (comma == std::string_view::npos) return point;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace plumb::cases
