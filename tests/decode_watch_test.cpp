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

std::string name_of_platform(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class CleanSteps : public testing::TestWithParam<std::string> {};

TEST_P(CleanSteps, RaiseNoAlarm) {
  DecodeSetup setup;
  setup.platform = GetParam();
  std::uint64_t seed = 1;
  for (const Traffic traffic : {Traffic::steady, Traffic::grow, Traffic::shrink,
                                Traffic::there_and_back, Traffic::permute, Traffic::replace}) {
    const auto lengths = static_cast<Lengths>(seed % 6);
    const ScheduleShape shape{traffic, lengths, 4, 4, seed++};
    const WatchResult result = watch(setup, shape);
    EXPECT_TRUE(result.clean()) << text_of(shape) << "\n" << text_of(result);
    EXPECT_EQ(result.steps, 4);
    EXPECT_GT(result.calls_judged, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, CleanSteps,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"), name_of_platform);

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
