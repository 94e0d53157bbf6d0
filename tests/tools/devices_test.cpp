// SPDX-License-Identifier: Apache-2.0
//
// Selection of the GPUs that workers see.
#include "tools/run/devices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/selection.h"

namespace plumb::tools {
namespace devices_test {

using Words = std::vector<std::string>;

std::string device_of(const Words& devices, std::size_t worker) {
  for (const std::string& variable : worker_environment(devices, worker)) {
    constexpr std::string_view kName = "CUDA_VISIBLE_DEVICES=";
    if (variable.starts_with(kName)) return variable.substr(kName.size());
  }
  return "none";
}

TEST(Devices, TakeTurnsAmongWorkers) {
  const Words devices{"0", "3"};
  EXPECT_EQ(device_of(devices, 0), "0");
  EXPECT_EQ(device_of(devices, 1), "3");
  EXPECT_EQ(device_of(devices, 2), "0");
  EXPECT_EQ(device_of({}, 1), "none");
}

TEST(Devices, AreRefusedWhereTheyMakeNoSense) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      devices_named(text, {"sim-sm90"});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* text : {"", "x", "0,", "0,,1", "-1", "0 1", "all,0"}) {
    EXPECT_EQ(refusal(text),
              "--devices " + std::string(text) + ": neither all nor numbers, as 0,3");
  }
  EXPECT_EQ(refusal("0"), "--devices is for GPUs: no selected platform is a GPU of this machine");
  EXPECT_EQ(refusal("all"), refusal("0"));
}

}  // namespace devices_test
}  // namespace plumb::tools
