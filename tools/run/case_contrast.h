// SPDX-License-Identifier: Apache-2.0
//
// Finds one property of rows or scenarios that separates the failed cases of an op from the passed
// ones.
#pragma once

#include <string>
#include <vector>

#include "cases/tables/registry.h"

namespace plumb::tools {

struct JudgedCase {
  const cases::Case* which;
  std::string platform;
  bool failed = false;
};

// `cases`: of one op. Returns a text such as "fails in every row where x has gaps between its rows
// (6 rows), passes in all others (14 rows)". "" unless a property separates all cases and chance
// cannot explain it.
std::string case_contrast(const std::vector<JudgedCase>& cases);

}  // namespace plumb::tools
