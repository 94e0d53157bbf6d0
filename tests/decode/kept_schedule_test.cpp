// SPDX-License-Identifier: Apache-2.0
//
// Parts of schedules: omitted requests and steps are gone, kept ones are unchanged, and an engine
// can run the part.
#include "decode/schedule/kept_schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "decode/watch/watch.h"

namespace plumb::cases {

namespace kept_schedule_test {

using device::decode::Geometry;
using Steps = std::vector<ScheduledStep>;

TEST(KeepLists, AreReadAndWritten) {
  for (const char* text : {"", "none", "3", "0", "3,17", "3,17,20-22", "0-1"}) {
    EXPECT_EQ(KeepList::from(text).text(), text);
  }
  EXPECT_EQ(KeepList::from("5,3,4,3").text(), "3-5");
  EXPECT_EQ(KeepList({9, 2, 1}).text(), "1-2,9");
}

TEST(KeepLists, SayWhatTheyKeep) {
  EXPECT_TRUE(KeepList().keeps(7));
  EXPECT_FALSE(KeepList::from("none").keeps(7));
  const KeepList list = KeepList::from("3,6-8");
  EXPECT_TRUE(list.keeps(3) && list.keeps(7));
  EXPECT_FALSE(list.keeps(4) || list.keeps(9) || list.keeps_all());
}

TEST(KeepLists, RefuseWhatIsNoList) {
  for (const char* text :
       {"x", "3,", ",3", "3-", "-3", "3 4", "7-5", "3,,4", "1-9999999999", "all"}) {
    EXPECT_THROW(KeepList::from(text), std::invalid_argument) << text;
  }
}

// Request 1 runs from step 0 to 4. Request 3 comes in step 1 and ends in step 3. Request 2 comes in
// step 2, and request 4 shares its prefix in step 3.
Steps some() {
  Steps steps(5);
  steps[0].admitted = {{1, 10}};
  steps[0].batch = {{1, 2}};
  steps[1].admitted = {{3, 5}};
  steps[1].batch = {{1, 2, false, 1}, {3, 2}};
  steps[2].admitted = {{2, 40}};
  steps[2].batch = {{1, 2}, {3, 2}, {2, 8, true}};
  steps[3].finished = {3};
  steps[3].shared = {{4, 2, 16}};
  steps[3].batch = {{1, 2}, {2, 1}, {4, 1}};
  steps[4].finished = {1};
  steps[4].batch = {{2, 1}, {4, 1}};
  return steps;
}

std::vector<std::uint64_t> batch_of(const ScheduledStep& step) {
  std::vector<std::uint64_t> ids;
  for (const auto& one : step.batch) ids.push_back(one.request);
  return ids;
}

using Ids = std::vector<std::uint64_t>;
using Admitted = std::vector<std::pair<std::uint64_t, std::int64_t>>;

TEST(KeptSchedules, LoseRequestsEverywhere) {
  const Steps kept = kept_part(some(), KeepList::from("1,2"), {});
  ASSERT_EQ(kept.size(), 5u);
  EXPECT_TRUE(kept[1].admitted.empty());
  EXPECT_TRUE(kept[3].finished.empty());
  EXPECT_TRUE(kept[3].shared.empty());
  EXPECT_EQ(batch_of(kept[2]), (Ids{1, 2}));
  EXPECT_EQ(requests_of(kept), 2);
}

TEST(KeptSchedules, MoveWhoComesWithTheContextOfThatStep) {
  const Steps kept = kept_part(some(), {}, KeepList::from("2-4"));
  ASSERT_EQ(kept.size(), 3u);
  // Request 1: admitted with 10 tokens, and 2 + 1 accepted since. Request 3: 5 + 2. Request 2: 40.
  EXPECT_EQ(kept[0].admitted, (Admitted{{1, 13}, {3, 7}, {2, 40}}));
  EXPECT_EQ(batch_of(kept[0]), (Ids{1, 3, 2}));
}

TEST(KeptSchedules, MoveWhoGoesAndForgetWhoCameAndWentMeanwhile) {
  const Steps moved = kept_part(some(), {}, KeepList::from("0,1,4"));
  EXPECT_EQ(moved[2].finished, (Ids{3, 1}));
  const Steps forgotten = kept_part(some(), {}, KeepList::from("0,3"));
  EXPECT_TRUE(forgotten[1].finished.empty());
  EXPECT_EQ(batch_of(forgotten[1]), (Ids{1, 2, 4}));
}

TEST(KeptSchedules, ShareAPrefixOnlyWithWhoIsThere) {
  const Steps kept = kept_part(some(), {}, {});
  EXPECT_EQ(kept[3].shared.size(), 1u);
  // Request 2, which owns the prefix, is omitted or comes in the same step.
  for (const auto& part :
       {kept_part(some(), KeepList::from("4"), {}), kept_part(some(), {}, KeepList::from("3-4"))}) {
    const ScheduledStep& step = part.size() == 5 ? part[3] : part[0];
    EXPECT_TRUE(step.shared.empty());
    EXPECT_EQ(step.admitted.back(), (std::pair<std::uint64_t, std::int64_t>{4, 16}));
  }
}

// An engine serves a part of each kind of traffic (some of its requests and steps) without an
// alarm.
TEST(KeptSchedules, AreServedWithoutAnAlarm) {
  for (const Traffic traffic :
       {Traffic::random, Traffic::prompts, Traffic::prefix, Traffic::same_ends, Traffic::idle}) {
    DecodeSetup setup;
    setup.geometry = device::decode::small_geometry(4, 1, 24);
    setup.geometry.capture_sizes = {2, 8};
    ScheduleShape shape{traffic, Lengths::random, 9, 4, 5, Acceptance::some, Between::dummies};
    shape.keep_requests = KeepList::from("2-6,9,11-30");
    shape.keep_steps = KeepList::from("1,4-5,8");
    const WatchResult result = watch(setup, shape);
    EXPECT_TRUE(result.clean()) << name_of(traffic) << ": " << result.findings.front().text;
    EXPECT_EQ(result.steps, 4);
    EXPECT_NE(text_of(shape).find(", requests 2-6,9,11-30 only, steps 1,4-5,8 only"),
              std::string::npos);
  }
}

}  // namespace kept_schedule_test

}  // namespace plumb::cases
