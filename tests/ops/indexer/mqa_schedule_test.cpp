// SPDX-License-Identifier: Apache-2.0
//
// Tests the check of schedules for paged logits kernels (which slot scores which keys). Every right
// schedule passes: DeepGEMM's forms and any other ordered partition. A simulated kernel that works
// through the schedule segment by segment agrees with the check.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "reference/indexer/paged_mqa_logits_metadata.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry paged_mqa_logits_metadata();
}  // namespace plumb::device::kernels

namespace plumb::cases {

OpDefinition define_paged_mqa_logits_metadata();

namespace mqa_schedule_test {

using reference::LargerSlots;
using reference::PagedMqaWork;
using reference::Schedule;
using reference::ScheduleEntry;

// A random batch, with empty requests, and a random number of slots.
PagedMqaWork random_work(std::uint64_t seed) {
  constexpr std::int64_t kRequests[] = {1, 2, 5, 31, 32, 33, 64};
  constexpr std::int64_t kSlots[] = {1, 2, 4, 13, 78};
  PagedMqaWork work{{}, 256, integer(seed, 0, 1, 3), kSlots[integer(seed, 1, 0, 4)]};
  const std::int64_t requests = kRequests[integer(seed, 2, 0, 6)];
  const std::int64_t most = integer(seed, 3, 0, 3) * 500;
  for (std::int64_t i = 0; i < requests; ++i) {
    const std::int64_t length = integer(mix(seed, 4), i, 0, most);
    work.lengths.push_back(length % 3 == 0 ? 0 : length);
  }
  return work;
}

std::vector<std::int64_t> prefix_sums(const PagedMqaWork& work) {
  std::vector<std::int64_t> sums;
  for (std::int64_t b = 0; b < work.requests(); ++b) {
    sums.push_back((sums.empty() ? 0 : sums.back()) + (work.lengths[b] + 255) / 256);
  }
  return sums;
}

// DeepGEMM's planner: searches in the prefix sums.
ScheduleEntry found_by_prefix_sum(const PagedMqaWork& work, std::int64_t start, std::int64_t most) {
  const std::vector<std::int64_t> sums = prefix_sums(work);
  std::int64_t b = 0;
  while (b < work.requests() && sums[b] * work.atoms <= start) ++b;
  b = std::min(b, most);
  if (b == work.requests()) return {b * work.atoms, 0};
  const std::int64_t before = b == 0 ? 0 : sums[b - 1], n = sums[b] - before;
  const std::int64_t offset = start - before * work.atoms;
  return {b * work.atoms + (n == 0 ? 0 : offset / n), n == 0 ? 0 : offset % n};
}

Schedule old_form(const PagedMqaWork& work) {
  const std::int64_t total = prefix_sums(work).back() * work.atoms;
  const std::int64_t q = total / work.slots, rest = total % work.slots;
  Schedule schedule;
  for (std::int64_t i = 0; i <= work.slots; ++i) {
    schedule.push_back(found_by_prefix_sum(work, i * q + std::min(i, rest), work.requests()));
  }
  return schedule;
}

Schedule new_form(const PagedMqaWork& work) {
  const std::int64_t total = prefix_sums(work).back() * work.atoms;
  const std::int64_t q = total / work.slots, pivot = work.slots - total % work.slots;
  Schedule schedule;
  for (std::int64_t i = 0; i < work.slots; ++i) {
    const std::int64_t start = i * q + std::max<std::int64_t>(i - pivot, 0);
    schedule.push_back(found_by_prefix_sum(work, start, work.requests() - 1));
  }
  schedule.push_back({work.requests() * work.atoms, 0});
  return schedule;
}

// A right schedule with random cuts between slots. At an empty request, an entry may name an atom
// of this request or the atom after it: both are right.
Schedule any_form(const PagedMqaWork& work, std::uint64_t seed) {
  std::vector<ScheduleEntry> all;
  for (std::int64_t atom = 0; atom < work.requests() * work.atoms; ++atom) {
    const std::int64_t n = work.segments(atom / work.atoms);
    for (std::int64_t s = 0; s < std::max<std::int64_t>(n, 1); ++s) all.push_back({atom, s});
  }
  all.push_back({work.requests() * work.atoms, 0});
  Schedule schedule{all.front()};
  for (std::int64_t i = 1; i < work.slots; ++i) {
    schedule.push_back(all[integer(seed, i, 0, std::ssize(all) - 1)]);
  }
  schedule.push_back(all.back());
  std::sort(schedule.begin(), schedule.end());
  return schedule;
}

// Reads a schedule as kernels do: each slot works from its entry to the next one, a segment at a
// time. Returns false if it leaves the batch, reads a segment that does not exist, or reads a
// segment twice or never.
bool reads_right(const PagedMqaWork& work, const Schedule& schedule) {
  const std::int64_t atoms = work.requests() * work.atoms;
  std::vector<std::vector<int>> done;
  for (std::int64_t atom = 0; atom < atoms; ++atom) {
    done.emplace_back(work.segments(atom / work.atoms), 0);
  }
  for (std::size_t slot = 0; slot + 1 < schedule.size(); ++slot) {
    ScheduleEntry now = schedule[slot];
    if (now.atom < 0 || now.atom > atoms || now.segment < 0) return false;
    // Idle slots also look up their first segment.
    const std::int64_t first = now.atom == atoms ? 0 : work.segments(now.atom / work.atoms);
    if (now.segment > 0 && now.segment >= first) return false;
    while (now != schedule[slot + 1]) {
      if (now.atom >= atoms) return false;
      const std::int64_t n = work.segments(now.atom / work.atoms);
      if (now.segment < 0 || (now.segment >= n && now.segment > 0)) return false;
      if (n > 0 && ++done[now.atom][now.segment] > 1) return false;
      if (++now.segment >= n) now = {now.atom + 1, 0};
    }
  }
  for (const std::vector<int>& atom : done) {
    if (std::count(atom.begin(), atom.end(), 1) != std::ssize(atom)) return false;
  }
  return true;
}

TEST(MqaSchedule, EveryPartitionInOrderIsRight) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const PagedMqaWork work = random_work(seed);
    for (const Schedule& schedule : {old_form(work), new_form(work), any_form(work, seed)}) {
      ASSERT_TRUE(reads_right(work, schedule)) << seed;
      ASSERT_TRUE(check_schedule(work, schedule).empty()) << seed;
    }
    EXPECT_EQ(paged_mqa_schedule(work, LargerSlots::first), old_form(work)) << seed;
    EXPECT_EQ(paged_mqa_schedule(work, LargerSlots::last), new_form(work)) << seed;
  }
}

TEST(MqaSchedule, AReaderAgreesAboutWrongOnes) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const PagedMqaWork work = random_work(seed);
    Schedule schedule = seed % 2 == 0 ? old_form(work) : any_form(work, seed);
    for (std::int64_t change = integer(seed, 50, 1, 2); change > 0; --change) {
      ScheduleEntry& entry = schedule[integer(seed, 51 + change, 0, std::ssize(schedule) - 1)];
      entry.atom += integer(seed, 61 + change, -1, 1);
      entry.segment += integer(seed, 71 + change, -1, 1);
    }
    const bool right = check_schedule(work, schedule).empty();
    ASSERT_EQ(right, reads_right(work, schedule)) << seed;
    wrong += !right;
  }
  EXPECT_GT(wrong, 1000);
}

// Requests of 1, 0, 3 and 2 segments (300 tokens have 2 segments), two query rows each, 3 slots.
class ScheduleVerdict : public ::testing::Test {
 protected:
  ScheduleVerdict()
      : op(define_paged_mqa_logits_metadata()),
        problem(op.make_problem(row_of(op, {{"requests", 4}, {"slots", 3}, {"next_n", 2}}), {})),
        tensors(problem->make_tensors()) {
    const std::int32_t lens[] = {0, 1, 0, 0, 767, 768, 299, 300};
    std::copy(std::begin(lens), std::end(lens), tensors.at("context_lens").data<std::int32_t>());
  }

  TensorReport judge(const std::vector<std::pair<int, int>>& entries) {
    auto* stored = tensors.at("schedule").data<std::int32_t>();
    for (const auto& [atom, segment] : entries) {
      *stored++ = atom;
      *stored++ = segment;
    }
    return problem->judge({}, tensors, {}, {}).at(0);
  }
  // The first failure text, or "passed".
  std::string said(const std::vector<std::pair<int, int>>& entries) {
    const TensorReport report = judge(entries);
    return report.passed() ? "passed" : report.failures.front();
  }

  OpDefinition op;
  std::unique_ptr<Problem> problem;
  TensorSet tensors;
};

TEST_F(ScheduleVerdict, NamesTheRequestAndTheSegment) {
  EXPECT_EQ(said({{0, 0}, {2, 1}, {3, 0}, {4, 0}}), "passed");
  EXPECT_EQ(said({{0, 0}, {1, 0}, {3, 1}, {4, 0}}), "passed");
  EXPECT_EQ(said({{0, 0}, {4, 0}, {4, 0}, {4, 0}}), "passed");
  EXPECT_EQ(said({{0, 0}, {2, 1}, {3, 0}, {3, 1}}),
            "schedule: in no slot is request 3 (length 300): segment 1 of 2 of its atom 0: the "
            "last slot ends at (atom 3, segment 1)");
  EXPECT_EQ(said({{2, 1}, {2, 1}, {3, 0}, {4, 0}}),
            "schedule: in no slot is request 0 (length 1): segment 0 of 1 of its atom 0, and 1 "
            "behind it: the first slot begins at (atom 2, segment 1)");
  EXPECT_EQ(said({{0, 0}, {3, 0}, {2, 1}, {4, 0}}),
            "schedule: slot 1 begins at (atom 3, segment 0) and ends in front of it, at (atom 2, "
            "segment 1): in two slots is request 2 (length 768): segment 1 of 3 of its atom 0, and "
            "1 behind it");
  EXPECT_EQ(said({{0, 0}, {2, 3}, {3, 0}, {4, 0}}),
            "schedule: entry 1 is (atom 2, segment 3), and request 2 (length 768) has 3 segments");
  EXPECT_EQ(said({{0, 0}, {2, 1}, {5, 0}, {4, 0}}),
            "schedule: entry 2 is (atom 5, segment 0), and 4 requests have 4 atoms");
  EXPECT_EQ(said({{0, 0}, {2, 1}, {3, 0}, {4, 1}}),
            "schedule: entry 3 is (atom 4, segment 1); behind the last atom comes segment 0");
}

TEST_F(ScheduleVerdict, KnowsAPlanOfTheFirstRows) {
  // Request 0 has no token in its first query row, so a plan for the first rows begins after it.
  const TensorReport report = judge({{2, 0}, {2, 2}, {3, 0}, {4, 0}});
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{0});
  EXPECT_EQ(report.pattern,
            "right for the lengths of the first query row of each request; the last one counts");
}

TEST(MqaScheduleKernel, RefusesWhatTheContractForbids) {
  const auto device = device::open_device("sim-sm90");
  const device::OpEntry entry = device::kernels::paged_mqa_logits_metadata();
  std::int32_t lens[4] = {}, schedule[6] = {};
  const auto status = [&](auto change) {
    plumb_paged_mqa_logits_metadata_params p{};
    p.struct_size = sizeof p;
    p.context_lens = lens;
    p.schedule = schedule;
    p.requests = p.slots = p.next_n = p.context_lens_row_stride = p.schedule_row_stride = 2;
    p.context_lens_dims = 2;
    p.split_kv = 256;
    p.atoms = 1;
    p.stream = device->create_stream();
    change(p);
    return entry.launch(&p);
  };
  EXPECT_EQ(status([](auto&) {}), PLUMB_OK);
  EXPECT_EQ(status([](auto& p) { p.requests = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.slots = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.atoms = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.split_kv = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.context_lens_dims = 3; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.context_lens_row_stride = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.schedule_row_stride = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.schedule = nullptr; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(entry.launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace mqa_schedule_test
}  // namespace plumb::cases
