// SPDX-License-Identifier: Apache-2.0
//
// Each case of the default tier on each platform as a GoogleTest. The suite is the platform with
// "_" for "-" (a filter reads "-" as "but not"), the name is the case. ctest runs them in builds
// with PLUMB_CTEST_CASES; otherwise plumb run does. An unavailable platform has one test per op,
// skipped with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "cases/drivers/run.h"
#include "decode/schedule/any_case.h"
#include "device/device.h"
#include "diagnosis/decode_step_run.h"
#include "reference/bound.h"
#include "tools/report.h"

namespace {

using plumb::cases::AnyCase;
using plumb::cases::Outcome;

class CaseTest : public testing::Test {
 public:
  CaseTest(const AnyCase& which, std::string platform)
      : which_(which), platform_(std::move(platform)) {}

  void TestBody() override {
    plumb::cases::RunOptions options;
    options.platform = platform_;
    plumb::tools::Finished finished;
    if (const plumb::cases::StepCase* steps = which_.of_steps()) {
      auto [result, findings, features, digests] =
          plumb::cases::run_decode_step(*steps, options, true);
      finished.result = std::move(result);
      finished.findings = std::move(findings);
      finished.features = std::move(features);
      EXPECT_TRUE(digests.empty());  // nobody asked for them
    } else {
      finished.result = plumb::cases::run_case(*which_.of_op(), options);
    }
    finished.reproduce = "plumb run --case " + which_.id() + " --platform " + platform_;
    if (finished.result.outcome == Outcome::skipped) GTEST_SKIP() << finished.result.reason;
    const std::string failure = plumb::tools::failure_text(finished, {});
    if (!failure.empty()) FAIL() << failure;
  }

 private:
  const AnyCase& which_;
  std::string platform_;
};

class AbsentPlatformTest : public testing::Test {
 public:
  explicit AbsentPlatformTest(std::string why) : why_(std::move(why)) {}
  void TestBody() override { GTEST_SKIP() << why_; }

 private:
  std::string why_;
};

std::string suite_of(std::string platform) {
  std::replace(platform.begin(), platform.end(), '-', '_');
  return platform;
}

void register_cases(const std::vector<AnyCase>& all, const std::string& platform) {
  for (const AnyCase& which : all) {
    if (which.tier() > plumb::cases::Tier::standard) continue;
    testing::RegisterTest(
        suite_of(platform).c_str(), which.id().c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&which, platform]() -> testing::Test* { return new CaseTest(which, platform); });
  }
}

void register_absent(const std::string& platform, const std::string& why) {
  for (const plumb::cases::OpDefinition& op : plumb::cases::all_ops()) {
    const std::string name = std::string(op.name) + "/every_case";
    testing::RegisterTest(suite_of(platform).c_str(), name.c_str(), nullptr, nullptr, __FILE__,
                          __LINE__,
                          [why]() -> testing::Test* { return new AbsentPlatformTest(why); });
  }
}

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  // ctest runs several of these processes at once
  plumb::reference::set_thread_count(1);
  static const std::vector<AnyCase> all = plumb::cases::cases_of_all_kinds();
  for (const std::string& platform : plumb::device::known_platforms()) {
    const std::string why = plumb::device::why_unavailable(platform);
    if (why.empty()) {
      register_cases(all, platform);
    } else {
      register_absent(platform, why);
    }
  }
  return RUN_ALL_TESTS();
}
