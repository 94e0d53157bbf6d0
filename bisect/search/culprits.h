// SPDX-License-Identifier: Apache-2.0
//
// Of things that can be switched on, all that make a case fail, each alone or some together: delta
// debugging, repeated on what is left until that passes (as FLiT bisects files).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "bisect/search/oracle.h"

namespace plumb::bisect {

using Switches = std::vector<std::size_t>;  // those that are on, ascending
using AskSwitches = std::function<Verdict(const Switches& on)>;

struct Culprits {
  // Each makes it fail with everything else off, and no longer if one of its members is off too.
  // One of several members is an interaction.
  std::vector<Switches> groups;
  Switches others;
  Verdict of_others = Verdict::good;  // together, without any culprit
  std::size_t unsaid = 0;             // combinations that could not say
};

// All of them on is bad, all of them off is good. Equal questions may come more than once.
Culprits find_culprits(std::size_t count, const AskSwitches& ask);

}  // namespace plumb::bisect
