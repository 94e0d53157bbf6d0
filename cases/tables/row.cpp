// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace plumb::cases {

namespace {

std::string_view why(const std::vector<MarkedPair>& marks, std::string_view of,
                     std::string_view under) {
  const auto names = [](std::string_view mark, std::string_view value) {
    return mark == "*" || mark == value;
  };
  for (const MarkedPair& pair : marks) {
    if (names(pair.of, of) && names(pair.under, under)) return pair.why;
  }
  return "";
}

}  // namespace

std::string_view ContractChoice::why_unseparated(std::string_view of,
                                                 std::string_view under) const {
  return why(unseparated, of, under);
}

std::vector<std::string_view> RowSchema::words() const {
  std::vector<std::string_view> all;
  for (const WordParameter& word : word_parameters) all.push_back(word.name);
  for (const ContractChoice& choice : choices) all.push_back(choice.name);
  return all;
}

std::vector<std::string_view> RowSchema::values_of(std::string_view word) const {
  for (const WordParameter& one : word_parameters) {
    if (one.name == word) return one.values;
  }
  for (const ContractChoice& one : choices) {
    if (one.name == word) return one.values;
  }
  return {};
}

void RowSchema::check_word(std::string_view parameter, std::string_view value,
                           std::string_view where) const {
  if (value.empty()) return;
  const auto check = [&](const auto& word) {
    if (word.name != parameter || word.values.empty()) return;
    if (std::ranges::find(word.values, value) != word.values.end()) return;
    throw BadRow(fmt::format("{}: {} is {}, not {}", where, parameter,
                             fmt::join(word.values, " or "), value));
  };
  for (const WordParameter& word : word_parameters) check(word);
  for (const ContractChoice& choice : choices) check(choice);
}

std::int64_t Row::integer(std::string_view parameter) const {
  const auto found = integers.find(parameter);
  if (found == integers.end()) {
    throw std::out_of_range(op + " declares no parameter " + std::string(parameter));
  }
  return found->second;
}

std::int64_t Row::launched(std::string_view parameter) const {
  return picked_from > 0 ? picked_from : integer(parameter);
}

std::string_view Row::word(std::string_view parameter) const {
  const auto found = words.find(parameter);
  return found == words.end() ? std::string_view{} : std::string_view(found->second);
}

float Row::real(std::string_view member, float otherwise) const {
  const auto found = reals.find(member);
  return found == reals.end() ? otherwise : found->second;
}

}  // namespace plumb::cases
