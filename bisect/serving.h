// SPDX-License-Identifier: Apache-2.0
//
// What is plainer than what in a decode step: its traffic, lengths, conditions; and the parts of
// its schedule.
#pragma once

#include <string>

#include "bisect/shrink.h"
#include "cases/registry.h"

namespace plumb::bisect {

bool is_serving(const cases::OpDefinition& op);

// Gives the knobs of a decode step their orders, and puts those first that make the schedule.
void describe_serving(Subject& subject);

// "2 requests in 3 steps"
std::string serving_size(const cases::Case& which);

}  // namespace plumb::bisect
