// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/paged_mqa_logits_metadata.h"

#include <algorithm>

namespace plumb::reference {

namespace {

using Kind = ScheduleDefectKind;

std::int64_t total_of(const PagedMqaWork& work) {
  std::int64_t total = 0;
  for (std::int64_t request = 0; request < work.requests(); ++request) {
    total += work.segments(request) * work.atoms;
  }
  return total;
}

// Position of segment `number` if segments are counted in order of atoms; the end position if
// `number` is past the last segment.
ScheduleEntry entry_at(const PagedMqaWork& work, std::int64_t number) {
  for (std::int64_t request = 0; request < work.requests(); ++request) {
    const std::int64_t segments = work.segments(request), all = segments * work.atoms;
    if (number < all) return {request * work.atoms + number / segments, number % segments};
    number -= all;
  }
  return {work.requests() * work.atoms, 0};
}

// Number of segments before a legal entry.
std::int64_t number_of(const PagedMqaWork& work, const ScheduleEntry& entry) {
  std::int64_t number = entry.segment;
  const std::int64_t request = entry.atom / work.atoms;
  for (std::int64_t r = 0; r < request; ++r) number += work.segments(r) * work.atoms;
  if (request < work.requests()) number += entry.atom % work.atoms * work.segments(request);
  return number;
}

// True if the entry names an existing segment, the end, or segment 0 of an atom without segments.
// Else `kind` says what is wrong.
bool is_legal(const PagedMqaWork& work, const ScheduleEntry& entry, Kind& kind) {
  const std::int64_t atoms = work.requests() * work.atoms;
  kind = Kind::no_atom;
  if (entry.atom < 0 || entry.atom > atoms) return false;
  kind = Kind::no_segment;
  const std::int64_t segments = entry.atom == atoms ? 0 : work.segments(entry.atom / work.atoms);
  return entry.segment >= 0 && entry.segment < std::max<std::int64_t>(segments, 1);
}

ScheduleDefect missing(const PagedMqaWork& work, Kind kind, std::int64_t entry, std::int64_t first,
                       std::int64_t end) {
  const ScheduleEntry at = entry_at(work, first);
  return {kind, entry, at.atom / work.atoms, at.atom % work.atoms, at.segment, end - first};
}

}  // namespace

Schedule paged_mqa_schedule(const PagedMqaWork& work, LargerSlots larger) {
  const std::int64_t total = total_of(work), slots = work.slots;
  const std::int64_t share = total / slots, rest = total % slots;
  Schedule schedule;
  const bool first = larger == LargerSlots::first;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int64_t in_front =
        first ? std::min(slot, rest) : std::max<std::int64_t>(slot - (slots - rest), 0);
    ScheduleEntry entry = entry_at(work, slot * share + in_front);
    // In the form `last`, entries name a request even if there is no work: kernels that read this
    // form look up the length of the first request of every slot.
    if (!first && total == 0) entry.atom -= work.atoms;
    schedule.push_back(entry);
  }
  schedule.push_back({work.requests() * work.atoms, 0});
  return schedule;
}

std::vector<ScheduleDefect> check_schedule(const PagedMqaWork& work, const Schedule& schedule) {
  std::vector<ScheduleDefect> defects;
  const std::int64_t last = static_cast<std::int64_t>(schedule.size()) - 1, total = total_of(work);
  // Number of segments before the previous entry; -1: that entry was illegal.
  std::int64_t before = -1;
  for (std::int64_t i = 0; i <= last; ++i) {
    const ScheduleEntry& entry = schedule[static_cast<std::size_t>(i)];
    ScheduleDefect defect{.entry = i};
    if (!is_legal(work, entry, defect.kind)) {
      defect.request = entry.atom / work.atoms;
      defects.push_back(defect);
      before = -1;
      continue;
    }
    const std::int64_t number = number_of(work, entry);
    const bool follows = before >= 0 && entry < schedule[static_cast<std::size_t>(i - 1)];
    if (follows) {
      defects.push_back(missing(work, Kind::backwards, i, number, std::max(before, number)));
    }
    if (i == 0 && number > 0) defects.push_back(missing(work, Kind::before, 0, 0, number));
    if (i == last && number < total) {
      defects.push_back(missing(work, Kind::behind, i, number, total));
    }
    before = number;
  }
  return defects;
}

}  // namespace plumb::reference
