// SPDX-License-Identifier: Apache-2.0
//
// Causes of failures in which no value is wrong: stores outside a tensor, races, bad addresses,
// limits of a launch.
#pragma once

#include <string>

#include "cases/drivers/run.h"

namespace plumb::cases {

// Likely causes of the first failure, from its kind and its words; "" if values are wrong.
std::string accident_of(const CaseResult& result);

}  // namespace plumb::cases
