// SPDX-License-Identifier: Apache-2.0
//
// Events of a decode schedule other than coming and ending requests: rejected tokens, shared
// prefixes, idle ranks, padding and captures between steps, other users of the allocator, newly
// created engines, engines side by side.
#include <gtest/gtest.h>

#include <map>

#include "decode/watch/side_by_side.h"
#include "decode/watch/watch.h"
#include "device/forwarding_device.h"
#include "tests/support/decode_serving.h"

namespace plumb::cases {

namespace decode_schedules_test {

using device::decode::Geometry;
using device::decode::GraphMode;

struct Served {
  std::string name;
  std::string platform;
  GraphMode mode;
  Geometry geometry;
  ScheduleShape schedule;
};

Geometry v4(std::int64_t speculated, std::int64_t batched = 0) {
  Geometry geometry = device::decode::small_geometry(4, speculated, batched);
  geometry.capture_sizes = {1 + speculated, 4 + 4 * speculated};
  geometry.drafter = true;
  return geometry;
}

Geometry v32(std::int64_t speculated = 0) {
  Geometry geometry = device::decode::small_v32_geometry(4, speculated, 64, 32);
  geometry.capture_sizes = {1 + speculated, 4 + 4 * speculated};
  return geometry;
}

Geometry freeing(Geometry geometry) {
  geometry.frees_window = true;
  return geometry;
}

const std::vector<Served>& all_served() {
  using T = Traffic;
  using L = Lengths;
  using B = Between;
  static const std::vector<Served> kServed{
      {"OfEightIsAccepted",
       "sim-sm90",
       GraphMode::full,
       v4(8),
       {T::steady, L::mixed, 3, 3, 1, Acceptance::some}},
      {"NothingIsAccepted",
       "sim-gfx942",
       GraphMode::breakable,
       v4(3),
       {T::steady, L::around_page, 4, 4, 1, Acceptance::none}},
      {"SomeIsAcceptedInPieces",
       "sim-gfx950",
       GraphMode::full_and_piecewise,
       v4(2, 24),
       {T::uneven, L::around_k, 4, 4, 1, Acceptance::some}},
      {"V32AcceptsSome",
       "sim-gfx942",
       GraphMode::piecewise,
       v32(2),
       {T::steady, L::around_k, 4, 4, 1, Acceptance::some}},
      {"PrefixesAreShared", "sim-sm90", GraphMode::full, v4(0), {T::prefix, L::mixed, 4, 4, 1}},
      {"V32SharesPrefixes",
       "sim-gfx942",
       GraphMode::full_and_piecewise,
       v32(),
       {T::prefix, L::mixed, 4, 4, 1}},
      {"WindowsAreLeft",
       "sim-gfx942",
       GraphMode::full_and_piecewise,
       freeing(v4(1, 24)),
       {T::prompts, L::mixed, 4, 4, 1}},
      {"IdleInFullGraphs", "sim-sm90", GraphMode::full, v4(1), {T::idle, L::mixed, 4, 4, 1}},
      {"IdleInPieces", "sim-gfx942", GraphMode::piecewise, v4(0), {T::idle, L::around_k, 4, 4, 1}},
      {"IdleInABreakableGraph",
       "sim-gfx950",
       GraphMode::breakable,
       v4(0),
       {T::idle, L::random, 4, 4, 1}},
      {"IdleWithoutGraphs", "sim-sm90", GraphMode::none, v4(0), {T::idle, L::mixed, 4, 4, 1}},
      {"V32IsIdle", "sim-sm90", GraphMode::full_and_piecewise, v32(), {T::idle, L::mixed, 4, 4, 1}},
      {"BetweenCapturedSizes",
       "sim-gfx942",
       GraphMode::full,
       v4(0),
       {T::between, L::mixed, 4, 4, 1}},
      {"AroundATile", "sim-sm90", GraphMode::full, v4(0), {T::replace, L::around_tile, 4, 4, 1}},
      {"V32AroundATile",
       "sim-gfx942",
       GraphMode::full,
       v32(),
       {T::replace, L::around_tile, 4, 4, 1}},
      {"BesideDummies",
       "sim-sm90",
       GraphMode::full,
       v4(0),
       {T::random, L::mixed, 4, 4, 1, Acceptance::all, B::dummies}},
      {"BesideDummiesInPieces",
       "sim-gfx942",
       GraphMode::full_and_piecewise,
       v4(1, 24),
       {T::prompts, L::mixed, 4, 4, 1, Acceptance::all, B::dummies}},
      {"V32BesideDummies",
       "sim-gfx942",
       GraphMode::full,
       v32(),
       {T::shrink, L::mixed, 4, 4, 1, Acceptance::all, B::dummies}},
      {"BesideCaptures",
       "sim-gfx942",
       GraphMode::full,
       v4(0),
       {T::random, L::mixed, 4, 4, 1, Acceptance::all, B::captures}},
      {"BesideCapturesOfBreaks",
       "sim-sm90",
       GraphMode::breakable,
       v4(0),
       {T::there_and_back, L::mixed, 4, 4, 1, Acceptance::all, B::captures}}};
  return kServed;
}

// Other users of the allocator run between steps, and a newly created engine repeats the last step.
DecodeSetup setup_of(const Served& served) {
  DecodeSetup setup;
  setup.platform = served.platform;
  setup.mode = served.mode;
  setup.geometry = served.geometry;
  setup.environment = {.seed = 3, .churns = true, .fresh_every = served.schedule.steps};
  return setup;
}

std::string text_of(const WatchResult& result) {
  std::string text;
  for (const Finding& finding : result.findings) {
    text += std::string(name_of(finding.detector)) + ", step " + std::to_string(finding.step) +
            ", " + finding.op + " (" + finding.call + "): " + finding.text + "\n";
    if (&finding - result.findings.data() == 5) break;
  }
  return text;
}

class CleanSchedules : public testing::TestWithParam<Served> {};

TEST_P(CleanSchedules, RaiseNoAlarm) {
  const WatchResult result = watch(setup_of(GetParam()), GetParam().schedule);
  EXPECT_TRUE(result.clean()) << text_of(result);
  EXPECT_EQ(result.steps, GetParam().schedule.steps);
}

INSTANTIATE_TEST_SUITE_P(Decode, CleanSchedules, testing::ValuesIn(all_served()),
                         [](const auto& served) { return served.param.name; });

TEST(CleanRunners, SideBySideHaveTheResultsThatEachHasAlone) {
  for (const GraphMode mode : {GraphMode::full_and_piecewise, GraphMode::breakable}) {
    DecodeSetup setup;
    setup.platform = "sim-gfx942";
    setup.mode = mode;
    setup.geometry = v4(0, 24);
    setup.conditions.policy = device::Policy::interleaved;
    setup.environment.churns = true;
    const WatchResult result =
        watch_side_by_side(setup, {Traffic::prompts, Lengths::mixed, 4, 4, 1}, 3);
    EXPECT_TRUE(result.clean()) << text_of(result);
    EXPECT_EQ(result.steps, 4);
  }
}

// All engines get the same memory for the residual streams, so they overwrite each other's.
class OneForAll final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void* allocate(std::size_t bytes, std::string_view label) override {
    if (label != "streams") return ForwardingDevice::allocate(bytes, label);
    void*& shared = shared_[turn_++ % 2];
    if (shared == nullptr) shared = ForwardingDevice::allocate(bytes, label);
    return shared;
  }
  void free(void* memory) override {
    for (void*& shared : shared_) {
      if (shared != memory) continue;
      if (--turn_ < 2) ForwardingDevice::free(memory);
      return;
    }
    ForwardingDevice::free(memory);
  }

 private:
  void* shared_[2] = {};
  int turn_ = 0;
};

TEST(Runners, ThatShareMemoryAreSeen) {
  DecodeSetup setup;
  setup.geometry.layers.resize(1);
  setup.conditions.policy = device::Policy::interleaved;
  setup.wrap = [](std::unique_ptr<device::Device> device) -> std::unique_ptr<device::Device> {
    return std::make_unique<OneForAll>(std::move(device));
  };
  const WatchResult result =
      watch_side_by_side(setup, {Traffic::steady, Lengths::mixed, 3, 4, 1}, 2);
  EXPECT_TRUE(result.found_by(Detector::alone));
}

// Right for the first 7 copies, then wrong: a new engine differs from an old one.
class TiredMetadata final : public device::decode::MetadataPolicy {
 public:
  bool copies_indptr(std::int64_t copies) const override { return copies < 7; }
};

TEST(OldEngines, AreSeenToDifferFromNewOnes) {
  DecodeSetup setup;
  setup.environment.fresh_every = 5;
  setup.policies.metadata = std::make_shared<TiredMetadata>();
  const WatchResult result = watch(setup, {Traffic::steady, Lengths::mixed, 8, 4, 1});
  EXPECT_TRUE(result.found_by(Detector::fresh)) << text_of(result);
}

}  // namespace decode_schedules_test

}  // namespace plumb::cases
