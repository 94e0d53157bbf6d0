// SPDX-License-Identifier: Apache-2.0
#include "bisect/cases/smaller_values.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

#include "decode/schedule/keep_list.h"

namespace plumb::bisect {

std::optional<std::int64_t> as_number(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return number;
}

std::int64_t number_of(const std::string& text) {
  const auto number = as_number(text);
  if (!number) throw std::invalid_argument("\"" + text + "\" is not a number");
  return *number;
}

std::vector<std::int64_t> values_between(std::int64_t low, std::int64_t high,
                                         const std::vector<std::int64_t>& worth_a_try,
                                         const IsPossible& is_possible) {
  constexpr std::int64_t kNarrow = 128, kSteps = 32, kBorder = 8;
  const std::int64_t width = high - low - 1;
  std::set<std::int64_t> values;
  const std::int64_t step = width <= kNarrow ? 1 : width / kSteps;
  for (std::int64_t value = low + 1; value < high; value += step) values.insert(value);
  for (std::int64_t i = 1; i <= kBorder; ++i) values.insert({low + i, high - i});
  for (std::int64_t power = 1; power < high; power *= 2) values.insert(power);
  values.insert(worth_a_try.begin(), worth_a_try.end());
  std::vector<std::int64_t> chosen;
  for (const std::int64_t value : values) {
    if (value > low && value < high && is_possible(value)) chosen.push_back(value);
  }
  return chosen;
}

std::vector<std::int64_t> thirds_of(const std::vector<std::int64_t>& values) {
  if (values.size() < 3) return {values.front()};
  return {values[values.size() / 3], values[2 * values.size() / 3]};
}

std::vector<std::int64_t> single_steps(std::int64_t least, std::int64_t value,
                                       const IsPossible& is_possible) {
  constexpr std::size_t kUp = 6, kDown = 2;
  constexpr std::int64_t kFar = 64;  // possible values may be far apart
  std::vector<std::int64_t> steps;
  for (std::int64_t v = least; v < value && v < least + kFar && steps.size() < kUp; ++v) {
    if (is_possible(v)) steps.push_back(v);
  }
  const std::int64_t first = steps.empty() ? least - 1 : steps.back();
  std::vector<std::int64_t> down;
  for (std::int64_t v = value - 1; v > first && v >= value - kFar && down.size() < kDown; --v) {
    if (is_possible(v)) down.push_back(v);
  }
  steps.insert(steps.end(), down.rbegin(), down.rend());
  return steps;
}

std::vector<std::int64_t> larger_values(std::int64_t value,
                                        const std::vector<std::int64_t>& worth_a_try,
                                        const IsPossible& is_possible) {
  constexpr std::int64_t kFar = 64;  // possible values may be far apart
  std::vector<std::int64_t> larger;
  const auto add_first_of = [&](const std::vector<std::int64_t>& numbers) {
    for (const std::int64_t number : numbers) {
      if (number <= value || !is_possible(number)) continue;
      if (std::ranges::find(larger, number) == larger.end()) larger.push_back(number);
      return;
    }
  };
  std::vector<std::int64_t> near, powers;
  for (std::int64_t i = 1; i <= kFar; ++i) near.push_back(value + i);
  for (std::int64_t power = 1; power <= 2 * value; power *= 2) powers.push_back(power);
  add_first_of(near);
  add_first_of(powers);
  add_first_of(worth_a_try);
  return larger;
}

std::vector<std::int64_t> rungs(std::int64_t least, std::int64_t value) {
  std::set<std::int64_t> values{value};
  for (std::int64_t power = 1; power < value; power *= 2) values.insert(power);
  values.insert({least, std::int64_t{3}});
  std::vector<std::int64_t> chosen;
  for (const std::int64_t one : values) {
    if (one >= least && one <= value) chosen.push_back(one);
  }
  return chosen;
}

std::string list_text(const std::vector<std::int64_t>& numbers) {
  return cases::KeepList(numbers).text();
}

}  // namespace plumb::bisect
