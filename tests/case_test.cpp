// SPDX-License-Identifier: Apache-2.0
//
// Every case of the default tier on every platform, one GoogleTest each: the suite is the platform
// with
// "_" for "-" (which a GoogleTest filter reads as "but not"), the name is the case.
#include <gtest/gtest.h>

#include <algorithm>

#include "cases/run.h"
#include "device/device.h"
#include "reference/bound.h"
#include "tools/report.h"

namespace {

using plumb::cases::Case;
using plumb::cases::Outcome;

class CaseTest : public testing::Test {
 public:
  CaseTest(const Case& which, std::string platform)
      : which_(which), platform_(std::move(platform)) {}

  void TestBody() override {
    plumb::cases::RunOptions options;
    options.platform = platform_;
    plumb::tools::Finished finished;
    finished.result = plumb::cases::run_case(which_, options);
    finished.reproduce = "plumb run --case " + which_.id() + " --platform " + platform_;
    if (finished.result.outcome == Outcome::skipped) GTEST_SKIP() << finished.result.reason;
    const std::string failure = plumb::tools::failure_text(finished, {});
    if (!failure.empty()) FAIL() << failure;
  }

 private:
  const Case& which_;
  std::string platform_;
};

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  // ctest runs several of these side by side.
  plumb::reference::set_thread_count(1);
  static const std::vector<Case> all = plumb::cases::all_cases();
  for (const std::string& platform : plumb::device::known_platforms()) {
    std::string suite = platform;
    std::replace(suite.begin(), suite.end(), '-', '_');
    for (const Case& which : all) {
      if (which.row.tier > plumb::cases::Tier::standard) continue;
      testing::RegisterTest(
          suite.c_str(), which.id().c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [&which, platform]() -> testing::Test* { return new CaseTest(which, platform); });
    }
  }
  return RUN_ALL_TESTS();
}
