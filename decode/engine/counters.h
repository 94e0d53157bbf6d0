// SPDX-License-Identifier: Apache-2.0
//
// Counts of what an engine did. They show whether a step is as cheap as it should be: in a steady
// schedule no step captures a graph, and no step waits for the device.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::device::decode {

struct Counters {
  std::int64_t steps = 0;
  // Sums over target and drafter.
  std::int64_t eager_steps = 0, captures = 0, recaptures = 0, graph_launches = 0;
  std::int64_t drafter_eager_steps = 0, drafter_graph_launches = 0;
  // Steps that ran eagerly only because they are larger than every captured size   [10.2].
  std::int64_t oversized_steps = 0;
  std::int64_t metadata_launches = 0;           // ops enqueued to build metadata
  std::int64_t plans_made = 0, plans_kept = 0;  // V3.2 plans computed or reused   [3.3]
  std::int64_t host_synchronizations = 0;
  std::int64_t event_waits = 0;  // waits for events of earlier steps (CountingDevice)

  bool operator==(const Counters&) const = default;
};

// Difference of two readings.
Counters operator-(Counters now, const Counters& before);
std::string to_string(const Counters& counters);  // "steps 3, eager_steps 0, ..."

}  // namespace plumb::device::decode
