// SPDX-License-Identifier: Apache-2.0
//
// Defects of a V4 decode step on sim-sm90 that resemble none of plumb's planted faults
// (faults/decode).
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "decode/watch/watched_engine.h"

namespace plumb::tests {

struct ForeignDefect {
  std::string name;
  std::function<cases::DecodeSetup(cases::DecodeSetup)> plant;
};
std::ostream& operator<<(std::ostream& out, const ForeignDefect& defect);  // prints its name
std::vector<ForeignDefect> foreign_defects();

}  // namespace plumb::tests
