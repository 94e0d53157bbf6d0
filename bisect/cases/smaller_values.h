// SPDX-License-Identifier: Apache-2.0
//
// Chooses the values that are tried for a number, and formats lists of numbers.
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

// Possible values between `low` and `high` (exclusive), ascending. A narrow range gives all its
// values. A wide one gives its borders, powers of two, about 32 evenly spaced values, and
// `worth_a_try`.
std::vector<std::int64_t> values_between(std::int64_t low, std::int64_t high,
                                         const std::vector<std::int64_t>& worth_a_try,
                                         const IsPossible& is_possible);
// One or two of the values, ascending, that split the list into thirds.
std::vector<std::int64_t> thirds_of(const std::vector<std::int64_t>& values);
// The first possible values from `least` up, and the last ones below `value`.
std::vector<std::int64_t> single_steps(std::int64_t least, std::int64_t value,
                                       const IsPossible& is_possible);
// A few possible values above `value`: the next one, the next power of two, and the least one of
// `worth_a_try`.
std::vector<std::int64_t> larger_values(std::int64_t value,
                                        const std::vector<std::int64_t>& worth_a_try,
                                        const IsPossible& is_possible);
// 1, 2, 3, 4, 8, 16, ... from `least` up to `value`.
std::vector<std::int64_t> rungs(std::int64_t least, std::int64_t value);

std::string list_text(const std::vector<std::int64_t>& numbers);  // spelled as KeepList reads it

}  // namespace plumb::bisect
