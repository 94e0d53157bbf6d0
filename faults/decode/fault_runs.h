// SPDX-License-Identifier: Apache-2.0
//
// The runs of plumb faults: every fault of a decode step, and steps without a fault, which must
// raise no alarm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/decode/decode_faults.h"

namespace plumb::cases {

struct DecodeRun {
  std::string name;                    // name of the fault; without a fault: "random, FULL"
  const DecodeFault* fault = nullptr;  // nullptr: no detector may find anything
  DecodeSetup setup;
  ScheduleShape schedule;
  std::string not_here;    // why the platform cannot have the fault; "" if it can
  bool elsewhere = false;  // planted in another setup: only the diagnosis counts
};

// `seed` is added to the seeds of the schedules.
std::vector<DecodeRun> fault_runs(const std::vector<std::string>& platforms,
                                  const std::vector<const DecodeFault*>& faults,
                                  std::uint64_t seed);
// Each fault that must be found, once, on one of the platforms, in another geometry, schedule and
// seed. Detectors need not see it there.
std::vector<DecodeRun> elsewhere_runs(const std::vector<std::string>& platforms,
                                      const std::vector<const DecodeFault*>& faults,
                                      std::uint64_t seed);
// Watches the run. For faults within the numerics, also counts changed choices of routers.
WatchResult result_of(const DecodeRun& run);
// The setups and schedules of these faults without the faults, each different one once.
std::vector<DecodeRun> control_runs(const std::vector<std::string>& platforms,
                                    const std::vector<const DecodeFault*>& faults,
                                    std::uint64_t seed);
// Every kind of traffic in every graph mode, of V4 and of V3.2, each on one of the platforms.
std::vector<DecodeRun> traffic_runs(const std::vector<std::string>& platforms, std::uint64_t seed);
// `steps` steps in all. The seed draws models, modes, traffic, lengths and conditions.
std::vector<DecodeRun> random_runs(const std::vector<std::string>& platforms, std::int64_t steps,
                                   std::uint64_t seed);
// Production geometry with 512 requests: V4 with ragged and with dense lists, and V3.2, each in
// FULL_AND_PIECEWISE and breakable mode, `steps` steps in all. For real devices.
std::vector<DecodeRun> production_runs(const std::vector<std::string>& platforms,
                                       std::int64_t steps, std::uint64_t seed);

}  // namespace plumb::cases
