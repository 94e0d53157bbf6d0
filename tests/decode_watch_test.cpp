// SPDX-License-Identifier: Apache-2.0
//
// The detectors of a decode step: a right step raises no alarm whatever happens to it, and each
// kind of fault is seen and put down to the op that is broken.
#include <gtest/gtest.h>

#include <algorithm>

#include "cases/decode/watch.h"
#include "cases/faults/decode_faults.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;

std::string text_of(const WatchResult& result) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (const Finding& finding : result.findings) {
    if (&finding - result.findings.data() == kMost) return text + "...\n";
    text += std::string(name_of(finding.detector)) + ", step " + std::to_string(finding.step) +
            ", " + finding.op + " (" + finding.call + "): " + finding.text + "\n";
  }
  return text;
}

constexpr GraphMode kModes[] = {GraphMode::none,
                                GraphMode::piecewise,
                                GraphMode::full,
                                GraphMode::full_decode_only,
                                GraphMode::full_and_piecewise,
                                GraphMode::breakable};

struct CleanSetting {
  std::string platform;
  GraphMode mode;
  std::uint64_t number;  // of the setting: which traffic, and its seed
};

std::vector<CleanSetting> clean_settings() {
  std::vector<CleanSetting> all;
  for (const char* platform : {"sim-sm90", "sim-gfx942", "sim-gfx950"}) {
    for (const GraphMode mode : kModes) all.push_back({platform, mode, all.size()});
  }
  return all;
}

class CleanSteps : public testing::TestWithParam<CleanSetting> {
 protected:
  // Steps of three or fewer have rows of padding, others have none.
  static DecodeSetup setup(std::int64_t speculated) {
    DecodeSetup setup;
    setup.platform = GetParam().platform;
    setup.mode = GetParam().mode;
    setup.geometry = device::decode::small_geometry(4, speculated, 48);
    setup.geometry.capture_sizes = {1, 4 + 4 * speculated};
    setup.geometry.drafter = true;
    return setup;
  }
  static void expect_clean(const DecodeSetup& setup, const ScheduleShape& shape) {
    const WatchResult result = watch(setup, shape);
    EXPECT_TRUE(result.clean()) << text_of(shape) << "\n" << text_of(result);
    EXPECT_EQ(result.steps, shape.steps);
    EXPECT_GT(result.calls_judged, 200);
  }
};

TEST_P(CleanSteps, RaiseNoAlarm) {
  constexpr Traffic kTraffic[] = {Traffic::steady,  Traffic::grow,    Traffic::there_and_back,
                                  Traffic::permute, Traffic::replace, Traffic::random,
                                  Traffic::shrink};
  const std::uint64_t n = GetParam().number;
  expect_clean(setup(0), {kTraffic[n % std::size(kTraffic)], static_cast<Lengths>(n % 6), 3, 4, n});
}

TEST_P(CleanSteps, WithPromptsRaiseNoAlarm) {
  const std::uint64_t n = GetParam().number;
  expect_clean(setup(0), {Traffic::prompts, static_cast<Lengths>((n + 2) % 6), 4, 4, n});
}

std::string name_of_setting(const testing::TestParamInfo<CleanSetting>& info) {
  std::string name = info.param.platform + "_" + std::string(name_of(info.param.mode));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Modes, CleanSteps, testing::ValuesIn(clean_settings()), name_of_setting);

TEST(CleanUnevenSteps, RaiseNoAlarm) {
  for (const GraphMode mode : {GraphMode::full_and_piecewise, GraphMode::breakable}) {
    DecodeSetup setup;
    setup.platform = "sim-gfx942";
    setup.mode = mode;
    setup.geometry = device::decode::small_geometry(4, 2, 48);
    setup.geometry.drafter = true;
    for (const Traffic traffic : {Traffic::uneven, Traffic::prompts}) {
      const ScheduleShape shape{traffic, Lengths::around_page, 3, 4, 7};
      const WatchResult result = watch(setup, shape);
      EXPECT_TRUE(result.clean()) << name_of(mode) << ", " << text_of(shape) << "\n"
                                  << text_of(result);
    }
  }
}

class EachFault : public testing::TestWithParam<std::string> {};

const DecodeFault& fault_of(const std::string& name) {
  const auto& all = all_decode_faults();
  return *std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
}

TEST_P(EachFault, IsSeenAndPutDownToWhatIsBroken) {
  const DecodeFault& fault = fault_of(GetParam());
  for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
    DecodeSetup setup;
    setup.platform = platform;
    const WatchResult result = watch(fault.inject(setup), fault.schedule);
    EXPECT_TRUE(result.found_by(fault.seen_by)) << platform << "\n" << text_of(result);
    EXPECT_FALSE(result.found_by(fault.blind)) << platform << "\n" << text_of(result);
    ASSERT_FALSE(result.clean());
    EXPECT_EQ(result.findings.front().op, fault.broken) << platform << "\n" << text_of(result);
  }
}

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const DecodeFault& fault : all_decode_faults()) names.push_back(fault.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(DecodeFaults, EachFault, testing::ValuesIn(fault_names()),
                         [](const auto& fault) { return fault.param; });

}  // namespace

}  // namespace plumb::cases
