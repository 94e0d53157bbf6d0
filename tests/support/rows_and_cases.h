// SPDX-License-Identifier: Apache-2.0
//
// What tests of single ops and cases start from: a row made by hand, a case by its name.
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

// The op's defaults, with these changed.
inline Row row_of(const OpDefinition& op, const Integers& integers, const Words& words = {}) {
  Row row;
  row.op = op.name;
  row.where = "test";
  for (const Parameter& parameter : op.parameters) {
    row.integers[std::string(parameter.name)] = parameter.default_value;
  }
  for (const auto& [name, value] : integers) row.integers.at(name) = value;
  row.words = words;
  return row;
}

// "rms_norm/v4_pro_hidden/eager". Throws BadRow if there is none.
inline const Case& find_case(std::string_view id) {
  static const std::vector<Case> all = all_cases();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Case& c) { return c.id() == id; });
  if (found == all.end()) throw BadRow("no case " + std::string(id));
  return *found;
}

inline RunOptions on(const std::string& platform) {
  RunOptions options;
  options.platform = platform;
  return options;
}

}  // namespace plumb::cases
