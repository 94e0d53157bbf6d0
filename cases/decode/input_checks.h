// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cases/decode/watched_step.h"

namespace plumb::cases {

// The device's inputs are what the host planned, and padding in them is what the contract says.
void check_inputs(WatchedStep& step);

}  // namespace plumb::cases
