// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of single ops and cases: make a row, find a case by its name.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "cases/drivers/run.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

using Integers = std::map<std::string, std::int64_t, std::less<>>;
using Words = std::map<std::string, std::string, std::less<>>;

// A row with the op's defaults, changed by these values.
inline Row row_of(const OpDefinition& op, const Integers& integers, const Words& words = {}) {
  Row row;
  row.op = op.name;
  row.where = "test";
  for (const Parameter& parameter : op.parameters) {
    row.integers[std::string(parameter.name)] = parameter.default_value;
  }
  for (const auto& [name, value] : integers) row.integers.at(name) = value;
  for (const auto& [name, value] : words) op.check_word(name, value, row.where);
  row.words = words;
  return row;
}

// The case named "op/row/scenario", as "rms_norm/v4_pro_hidden/eager". Throws BadRow if it does not
// exist.
inline const Case& find_case(std::string_view id) {
  // Cases by op, read when first needed.
  static std::map<std::string, std::vector<Case>, std::less<>> known;
  const OpDefinition& op = find_op(id.substr(0, id.find('/')));
  const auto [of_op, is_new] = known.try_emplace(std::string(op.name));
  std::vector<Case>& cases = of_op->second;
  if (is_new) cases = cases_of(op);
  const auto found = std::ranges::find_if(cases, [&](const Case& one) { return one.id() == id; });
  if (found == cases.end()) throw BadRow("no case " + std::string(id));
  return *found;
}

inline RunOptions on(const std::string& platform) {
  RunOptions options;
  options.platform = platform;
  return options;
}

}  // namespace plumb::cases
