// SPDX-License-Identifier: Apache-2.0
//
// plumb_smoke runs the cases that it is given, and a kernel that writes nothing fails.
#include "tools/smoke/smoke.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cases/tables/registry.h"
#include "faults/replaced_op.h"

namespace plumb::tools {
namespace smoke_test {

TEST(Smoke, HasEveryOpOnEverySimulatedPlatform) {
  const std::vector<SmokeTask> tasks = smoke_tasks({});
  std::size_t ops_and_platforms = 0;
  for (const cases::OpDefinition& op : cases::all_ops()) {
    for (const char* platform : {"sim-sm90", "sim-gfx942", "sim-gfx950"}) {
      for (const SmokeTask& task : tasks) {
        if (task.which.op->name != op.name || task.platform != platform) continue;
        ++ops_and_platforms;
        break;
      }
    }
  }
  EXPECT_EQ(ops_and_platforms, 3 * cases::all_ops().size());
  EXPECT_TRUE(smoke_tasks({"no_such_op"}).empty());
}

TEST(Smoke, PassesRightKernelsAndSaysHowFarItIs) {
  const std::vector<SmokeTask> tasks = smoke_tasks({"rms_norm/one_token"});
  std::vector<std::size_t> told;
  const SmokeSummary summary =
      run_smoke(tasks, {}, [&](std::size_t done) { told.push_back(done); });
  EXPECT_TRUE(summary.is_good());
  EXPECT_EQ(summary.passed, tasks.size());
  EXPECT_EQ(summary.failures, "");
  ASSERT_EQ(told.size(), tasks.size());
  EXPECT_EQ(told.back(), tasks.size() - 1);
}

TEST(Smoke, FailsAKernelThatWritesNothing) {
  const std::vector<SmokeTask> tasks = smoke_tasks({"rms_norm/one_token/eager"});
  ASSERT_FALSE(tasks.empty());
  device::OpEntry entry =
      *device::find_entry(device::builtin_implementation("sim-sm90"), "rms_norm");
  entry.launch = [](const void*) { return PLUMB_OK; };
  cases::RunOptions options;
  options.implementation = cases::with_op_replaced({entry, {}});
  const SmokeSummary summary = run_smoke(tasks, options, [](std::size_t) {});
  EXPECT_FALSE(summary.is_good());
  EXPECT_EQ(summary.failed, tasks.size());
  EXPECT_NE(summary.failures.find("FAIL  rms_norm/one_token/eager   sim-sm90\n"),
            std::string::npos);
  EXPECT_NE(summary.failures.find(
                "reproduce: plumb run --case rms_norm/one_token/eager --platform sim-sm90\n"),
            std::string::npos)
      << summary.failures;
}

}  // namespace smoke_test
}  // namespace plumb::tools
