// SPDX-License-Identifier: Apache-2.0
//
// Plug-ins built with an older or newer interface of the same version, whose structures have fewer
// or more members at the end.

#include <plumb/ops/types.h>

#include <cstdlib>
#include <string>

#include "tests/support/command_line.h"

namespace plumb {
namespace plugin_versions_test {

class PluginVersions : public CommandLine {
 protected:
  static std::string library(const std::string& name) {
    return std::string(PLUMB_TEST_PLUGINS "/").append(name).append(".so");
  }
  Words run_of(const std::string& name, const std::string& pattern) const {
    return {"run",        "--case",   pattern,  "--plugin",         library(name),
            "--platform", "sim-sm90", "--json", path("report.json")};
  }
  void expect_unusable(const std::string& name, const std::string& says) const {
    expect_refused(run_of(name, "rms_norm"), library(name) + ": " + says);
  }
};

TEST_F(PluginVersions, StructuresOfAnotherLengthRun) {
  for (const char* name : {"grown_launches_right", "shrunk_launches_right"}) {
    const Finished finished = run(run_of(name, "q_kv_rms_norm/*/eager"));
    EXPECT_EQ(finished.code, 0) << name << finished.out << finished.err;
    EXPECT_EQ(finished.out.find("\n0 passed"), std::string::npos) << finished.out;
  }
}

TEST_F(PluginVersions, WhatCannotBeReadIsAUsageError) {
  expect_unusable("grown_tables_later_member",
                  "entry 1 has a member at byte 64 that this plumb does not know");
  expect_unusable("tables_short_table", "its table has a size of 8 bytes instead of 56");
  expect_unusable("tables_short_entries", "entry 0 has a size of 8 bytes instead of 64");
  expect_unusable("tables_no_numerics", "hc_head declares no numerics");
}

// The kernel's order changes from launch to launch. That is wrong, unless the numerics of the call
// declare any order.
TEST_F(PluginVersions, NumericsOfACallTakeThePlaceOfTheEntrys) {
  setenv("PLUMB_TEST_INDEX_ORDER", std::to_string(PLUMB_INDICES_OWN_ORDER).c_str(), 1);
  setenv("PLUMB_TEST_EQUAL_KEYS", std::to_string(PLUMB_EQUAL_KEYS_LOWEST_INDEX).c_str(), 1);
  const std::string cases = "top_k_per_row_decode/ties_at_the_threshold/*";
  EXPECT_EQ(run(run_of("selects_changes_order", cases)).code, 1);
  setenv("PLUMB_TEST_NUMERICS_OF", "1", 1);
  const Finished finished = run(run_of("selects_changes_order", cases));
  unsetenv("PLUMB_TEST_NUMERICS_OF");
  unsetenv("PLUMB_TEST_INDEX_ORDER");
  unsetenv("PLUMB_TEST_EQUAL_KEYS");
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
}

}  // namespace plugin_versions_test
}  // namespace plumb
