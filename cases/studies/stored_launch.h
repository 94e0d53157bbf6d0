// SPDX-License-Identifier: Apache-2.0
//
// One launch of a case with all rows live, and what it stored: for studies that compare launches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

struct StoredLaunch {
  std::unique_ptr<Problem> problem;
  Step step;
  TensorSet tensors;  // inputs, and what the device stored
  plumb_numerics declared = {};
  std::vector<std::string> damage;  // inputs, gaps and guard zones that the launch changed
};

// Opens a device of the options and closes it. The case's row is taken as it is, without the
// contract of an entry. Throws DeviceError, and Unsupported for an op that the implementation does
// not have or a shape that it refuses.
StoredLaunch launch_once(const Case& which, const RunOptions& options, Fill fill = Fill::real);

// Whether two launches had the same bytes in their inputs.
bool same_inputs(const TensorSet& a, const TensorSet& b);

}  // namespace plumb::cases
