// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON report of plumb agreement --plugin.
#pragma once

#include <string>
#include <vector>

#include "cases/studies/implementation_diff.h"

namespace plumb::tools {

struct ComparedCase {
  std::string id, op, row, platform;
  cases::ImplementationDiff diff;
};

// Names of the two sides, such as "right_example 1.0 (./right.so)" or "plumb's own kernels".
struct AgreementSides {
  std::string base, change;
};

struct AgreementReport {
  AgreementSides sides;
  std::vector<ComparedCase> cases;
  std::vector<std::string> only_base, only_change;  // selected ops that only one side has
  // Whether a difference is larger than two right results may have, or a result is wrong.
  bool fails() const;
};

std::string text_of(const AgreementReport& report);
std::string to_json(const AgreementReport& report);

}  // namespace plumb::tools
