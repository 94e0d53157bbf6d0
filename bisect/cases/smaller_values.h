// SPDX-License-Identifier: Apache-2.0
//
// Which values of a number are tried, and lists of numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plumb::bisect {

std::optional<std::int64_t> as_number(const std::string& text);
std::int64_t number_of(const std::string& text);  // throws std::invalid_argument

using IsPossible = std::function<bool(std::int64_t)>;

// Above `low` and below `high`, ascending: all of a narrow range; of a wide one its borders, powers
// of two and multiples of its steps, and what is worth a try. Only possible ones.
std::vector<std::int64_t> values_between(std::int64_t low, std::int64_t high,
                                         const std::vector<std::int64_t>& worth_a_try,
                                         const IsPossible& is_possible);
// One or two of them that part the rest into thirds, ascending.
std::vector<std::int64_t> thirds_of(const std::vector<std::int64_t>& values);
// The first possible ones from the least up, and the last ones below the value.
std::vector<std::int64_t> single_steps(std::int64_t least, std::int64_t value,
                                       const IsPossible& is_possible);
// 1, 2, 3, 4, 8, 16, ... up to the value, from the least on.
std::vector<std::int64_t> rungs(std::int64_t least, std::int64_t value);

std::string list_text(const std::vector<std::int64_t>& numbers);  // as KeepList has it

}  // namespace plumb::bisect
