// SPDX-License-Identifier: Apache-2.0
//
// Launches a case once with all rows live and keeps what it stored, for studies that compare
// launches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

struct StoredLaunch {
  std::unique_ptr<Problem> problem;
  Step step;
  TensorSet tensors;  // inputs, and outputs as stored by the device
  plumb_numerics declared = {};
  std::vector<std::string> damage;  // changed inputs, gaps and guard zones
};

// Opens a device with these options and closes it. Uses the case's row as it is, without a contract
// of the implementation. Throws DeviceError, and Unsupported if the implementation lacks the op or
// refuses the shape.
StoredLaunch launch_once(const Case& which, const RunOptions& options, Fill fill = Fill::real);

// True if the inputs of both launches have the same bytes.
bool same_inputs(const TensorSet& a, const TensorSet& b);

}  // namespace plumb::cases
