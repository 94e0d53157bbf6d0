// SPDX-License-Identifier: Apache-2.0
//
// Which cases of an op fail and which pass, and the one property of their rows or scenarios that
// tells these apart.
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

// Of cases of one op. "fails in every row where x has gaps between its rows (6 rows), passes in all
// others (14 rows)". "" unless a property separates all of them and chance cannot explain it.
std::string case_contrast(const std::vector<JudgedCase>& cases);

}  // namespace plumb::tools
