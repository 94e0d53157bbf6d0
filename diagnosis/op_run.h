// SPDX-License-Identifier: Apache-2.0
//
// Runs one call of an op on the simulator with the inputs of a failed run.
#pragma once

#include <cstdint>
#include <string>

#include "cases/drivers/run.h"
#include "diagnosis/match.h"

namespace plumb::cases {

struct CallMode {
  int times = 1;         // above 1: an in-place op runs again, on its own results
  bool checked = false;  // with the simulator's checks: a bad address throws
};

// Before the call, outputs and scratch hold the poison, or the input that they start as. Throws
// device::DeviceError.
TensorSet run_once(const Problem& problem, const device::OpEntry& entry,
                   const std::string& platform, const CaseEvidence& evidence, CallMode mode = {});

// The simulated platform with the same formats and wave size as `platform`.
std::string simulated_like(const std::string& platform);
// How values of `platform` are compared with those of simulated_like(platform).
Closeness closeness_to_simulator(const std::string& platform);

}  // namespace plumb::cases
