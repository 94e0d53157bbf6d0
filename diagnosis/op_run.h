// SPDX-License-Identifier: Apache-2.0
//
// One call of an op on the simulator, on inputs that somebody else was given.
#pragma once

#include <cstdint>
#include <string>

#include "cases/drivers/run.h"
#include "diagnosis/match.h"

namespace plumb::cases {

// Outputs and scratch hold the poison before, or the input that they start as. With `times` the
// call is repeated on what it has left where it works in place. Throws device::DeviceError.
TensorSet run_once(const Problem& problem, const device::OpEntry& entry,
                   const std::string& platform, const CaseEvidence& evidence, int times = 1);

// The simulated platform with the same formats as this one.
std::string simulated_like(const std::string& platform);
// How close its values come to those of that one.
Closeness closeness_to_simulator(const std::string& platform);

}  // namespace plumb::cases
