// SPDX-License-Identifier: Apache-2.0
//
// Finds all switches that make a case fail, alone or in combination. Uses delta debugging, repeated
// on the remaining switches until they pass (as FLiT bisects files).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "bisect/search/oracle.h"

namespace plumb::bisect {

using Switches = std::vector<std::size_t>;  // indices of the switches that are on, ascending
using AskSwitches = std::function<Verdict(const Switches& on)>;

struct Culprits {
  // Each group fails with everything else off, and passes if any of its members is off too. A group
  // of several members is an interaction.
  std::vector<Switches> groups;
  Switches others;
  Verdict of_others = Verdict::good;  // verdict on all other switches together
  std::size_t unsaid = 0;             // combinations without a verdict
};

// Requires that all switches on is bad and all off is good. May ask the same question twice.
Culprits find_culprits(std::size_t count, const AskSwitches& ask);

}  // namespace plumb::bisect
