// SPDX-License-Identifier: Apache-2.0
//
// What plumb faults runs: every fault of a decode step, and steps without one, which must raise no
// alarm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/decode/decode_faults.h"

namespace plumb::cases {

struct DecodeRun {
  std::string name;                    // of the fault; "random, FULL" of steps without one
  const DecodeFault* fault = nullptr;  // none: nothing may be found
  DecodeSetup setup;
  ScheduleShape schedule;
  std::string not_here;    // why the platform cannot have the fault; "": it can
  bool elsewhere = false;  // than where it was planted first: only the diagnosis counts
};

// The seed is added to those of the schedules.
std::vector<DecodeRun> fault_runs(const std::vector<std::string>& platforms,
                                  const std::vector<const DecodeFault*>& faults,
                                  std::uint64_t seed);
// Each on one of the platforms, in another geometry, schedule and seed, in which it need not show.
std::vector<DecodeRun> elsewhere_runs(const std::vector<std::string>& platforms,
                                      const std::vector<const DecodeFault*>& faults,
                                      std::uint64_t seed);
// What comes of it.
WatchResult result_of(const DecodeRun& run);
// The setups and schedules of these faults, without the faults.
std::vector<DecodeRun> control_runs(const std::vector<std::string>& platforms,
                                    const std::vector<const DecodeFault*>& faults,
                                    std::uint64_t seed);
// Every kind of traffic in every graph mode, of V4 and of V3.2, each on one of the platforms.
std::vector<DecodeRun> traffic_runs(const std::vector<std::string>& platforms, std::uint64_t seed);
// So many steps in all: models, modes, traffic, lengths and conditions drawn by the seed.
std::vector<DecodeRun> random_runs(const std::vector<std::string>& platforms, std::int64_t steps,
                                   std::uint64_t seed);
// In production geometry, 512 requests: V4 with ragged and with dense lists, and V3.2, each in
// FULL_AND_PIECEWISE and breakable mode, so many steps in all. For real devices.
std::vector<DecodeRun> production_runs(const std::vector<std::string>& platforms,
                                       std::int64_t steps, std::uint64_t seed);

}  // namespace plumb::cases
