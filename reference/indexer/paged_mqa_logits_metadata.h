// SPDX-License-Identifier: Apache-2.0
//
// Schedules of a paged logits kernel: each slot gets a range of the segments of all atoms, in order
// (operations spec, 5.7). Any ordered partition is right, so a schedule is checked by what a kernel
// would do with it and is not compared with the output of one planner.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

struct PagedMqaWork {
  std::vector<std::int64_t> lengths;  // context length of each request, 0 or more
  std::int64_t split_kv = 256;        // tokens per segment
  std::int64_t atoms = 1;             // per request
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

// DeepGEMM's two planners: which slots get one segment more if segments do not divide evenly.
// `first`: the first slots, and idle slots come last. `last`: the last slots, and idle slots come
// first.
enum class LargerSlots { first, last };
Schedule paged_mqa_schedule(const PagedMqaWork& work, LargerSlots larger);

enum class ScheduleDefectKind {
  no_atom,     // an entry names an atom past the last request
  no_segment,  // an entry names a segment past the last one of its request
  backwards,   // a slot ends before it begins: its reader does not stop
  before,      // the first entry skips segments, from (request, segment) on
  behind       // the last entry leaves segments over, from (request, segment) on
};
struct ScheduleDefect {
  ScheduleDefectKind kind = ScheduleDefectKind::no_atom;
  std::int64_t entry = 0;
  // The first segment that no slot has, and the number of such segments.
  std::int64_t request = 0, atom = 0, segment = 0, missing = 0;
};
// Empty if every segment of every atom is in exactly one slot. For a request without segments, an
// entry may name segment 0 of its atoms or skip them.
std::vector<ScheduleDefect> check_schedule(const PagedMqaWork& work, const Schedule& schedule);

}  // namespace plumb::reference
