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

std::string_view ContractChoice::why_unnamed(std::string_view of, std::string_view under) const {
  return why(unnamed, of, under);
}

std::vector<std::string_view> RowSchema::words() const {
  std::vector<std::string_view> all = word_parameters;
  for (const ContractChoice& choice : choices) all.push_back(choice.name);
  return all;
}

void RowSchema::check_word(std::string_view word, std::string_view value,
                           std::string_view where) const {
  for (const ContractChoice& choice : choices) {
    // No value is the first one.
    if (value.empty() || choice.name != word ||
        std::ranges::find(choice.values, value) != choice.values.end()) {
      continue;
    }
    throw BadRow(
        fmt::format("{}: {} is {}, not {}", where, word, fmt::join(choice.values, " or "), value));
  }
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
