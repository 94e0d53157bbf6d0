// SPDX-License-Identifier: Apache-2.0
//
// plumb run --plugin with launchers that keep too little for the calls that are pending
// (tests/must_fail/plugins/queues.c): only the scenario queued finds them.
#include <string>
#include <utility>

#include "tests/support/command_line.h"

namespace plumb {
namespace pending_calls_test {

class PendingCalls : public CommandLine {
 protected:
  Finished run_with(const std::string& fault, const std::string& scenario) const {
    return run({"run", "--case", "rms_norm/v4_pro_hidden/" + scenario, "--plugin",
                std::string(PLUMB_TEST_PLUGINS) + "/queues_" + fault + ".so", "--platform",
                "sim-sm90", "--point", "fill=real,policy=interleaved", "--json", ""});
  }
};

TEST_F(PendingCalls, AreWrongWithWhatTheLauncherKeeps) {
  for (const auto& [fault, says] :
       {std::pair("few_arguments", "the same call is right alone"),
        std::pair("scratch_of_thread", "the same call is right alone"),
        std::pair("scratch_of_largest",
                  "a buffer that grows or is freed, with its old address in a graph")}) {
    const Finished queued = run_with(fault, "queued");
    EXPECT_EQ(queued.code, 1) << fault << queued.out << queued.err;
    EXPECT_NE(queued.out.find(says), std::string::npos) << fault << queued.out;
    for (const char* other : {"eager", "full_graph", "concurrent"}) {
      const Finished passed = run_with(fault, other);
      EXPECT_EQ(passed.code, 0) << fault << " " << other << passed.out << passed.err;
    }
  }
}

TEST_F(PendingCalls, AreRightWithScratchOfEachCall) {
  for (const char* scenario : {"queued", "concurrent"}) {
    const Finished finished = run_with("right", scenario);
    EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  }
}

}  // namespace pending_calls_test
}  // namespace plumb
