// SPDX-License-Identifier: Apache-2.0
//
// What an engine did, for who wants to know whether a step is as cheap as it should be. In a steady
// schedule no step captures, and none waits for the device.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::device::decode {

struct Counters {
  std::int64_t steps = 0;
  // Of the target and the drafter together.
  std::int64_t eager_steps = 0, captures = 0, recaptures = 0, graph_launches = 0;
  std::int64_t drafter_eager_steps = 0, drafter_graph_launches = 0;
  // That a graph could hold, were they not larger than every captured size: run eagerly   [10.2].
  std::int64_t oversized_steps = 0;
  std::int64_t metadata_launches = 0;           // ops enqueued to build metadata
  std::int64_t plans_made = 0, plans_kept = 0;  // of V3.2's metadata   [3.3]
  std::int64_t host_synchronizations = 0;
  std::int64_t event_waits = 0;  // for work of the past (CountingDevice)

  bool operator==(const Counters&) const = default;
};

// What happened between two readings.
Counters operator-(Counters now, const Counters& before);
std::string to_string(const Counters& counters);  // "steps 3, eager_steps 0, ..."

}  // namespace plumb::device::decode
