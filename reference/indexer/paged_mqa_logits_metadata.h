// SPDX-License-Identifier: Apache-2.0
//
// Schedules of a paged logits kernel: each slot gets a range of the segments of all atoms, in order
// (operations spec, 5.7). Any partition in order is right, so a schedule is checked by what its
// reader would do with it, and not compared with that of one planner.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

struct PagedMqaWork {
  std::vector<std::int64_t> lengths;  // of each request, 0 or more
  std::int64_t split_kv = 256;        // tokens of a segment
  std::int64_t atoms = 1;             // of each request
  std::int64_t slots = 1;

  std::int64_t requests() const { return static_cast<std::int64_t>(lengths.size()); }
  std::int64_t segments(std::int64_t request) const {
    return (lengths[static_cast<std::size_t>(request)] + split_kv - 1) / split_kv;
  }
};

struct ScheduleEntry {
  std::int64_t atom = 0, segment = 0;
  friend auto operator<=>(const ScheduleEntry&, const ScheduleEntry&) = default;
};
using Schedule = std::vector<ScheduleEntry>;  // [slots + 1]

// The planners of DeepGEMM. `first`: the first slots get a segment more, and idle slots stand
// behind the last one. `last`: the last slots do, and idle ones stand in front.
enum class LargerSlots { first, last };
Schedule paged_mqa_schedule(const PagedMqaWork& work, LargerSlots larger);

enum class ScheduleDefectKind {
  no_atom,     // an entry names an atom that no request has
  no_segment,  // an entry names a segment behind the last of its request
  backwards,   // a slot ends in front of where it begins: its reader runs on
  before,      // segments from (request, segment) on are in front of the first entry
  behind       // and here, from the last entry on
};
struct ScheduleDefect {
  ScheduleDefectKind kind = ScheduleDefectKind::no_atom;
  std::int64_t entry = 0;
  // Of `before` and `behind`: the first segment that no slot has, and how many there are.
  std::int64_t request = 0, atom = 0, segment = 0, missing = 0;
};
// None: every segment of every atom is in one slot. A request without a segment may get an empty
// task or none.
std::vector<ScheduleDefect> check_schedule(const PagedMqaWork& work, const Schedule& schedule);

}  // namespace plumb::reference
