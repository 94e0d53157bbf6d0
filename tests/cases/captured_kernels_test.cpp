// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/captured_kernels.h"

#include <gtest/gtest.h>

#include "device/forwarding_device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {

namespace captured_kernels_test {

// A device whose driver returns no names for kernels.
class NamelessKernels final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::vector<device::GraphNode> nodes(device::Graph graph) override {
    std::vector<device::GraphNode> all = ForwardingDevice::nodes(graph);
    for (device::GraphNode& node : all) node.name.clear();
    return all;
  }
};

std::vector<std::string> unexpected_in(const std::string& id, const RunOptions& options,
                                       const std::string& pattern) {
  const CapturedKernels captured;
  EXPECT_EQ(run_case(find_case(id), captured.noting(options)).outcome, Outcome::passed);
  return captured.unexpected({pattern});
}

TEST(CapturedKernelNames, OneThatMatchesIsEnough) {
  RunOptions options;
  options.platform = "sim-sm90";
  EXPECT_TRUE(unexpected_in("rms_norm/hidden_769/full_graph", options, "*norm*").empty());
  const auto lines = unexpected_in("rms_norm/hidden_769/full_graph", options, "fast_*");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines.front().starts_with("no captured kernel matches fast_*: ")) << lines.front();
}

TEST(CapturedKernelNames, UnknownOnesMatchNothing) {
  RunOptions options;
  options.platform = "sim-sm90";
  options.open = [](std::string_view name, const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(
        new NamelessKernels(device::open_device(name, conditions)));
  };
  const auto lines = unexpected_in("rms_norm/hidden_769/full_graph", options, "*");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines.front().find("captured kernels are unknown"), std::string::npos) << lines.front();
}

TEST(CapturedKernelNames, WithoutACaptureNothingIsProved) {
  RunOptions options;
  options.platform = "sim-sm90";
  EXPECT_EQ(unexpected_in("rms_norm/hidden_769/eager", options, "*"),
            std::vector<std::string>{"no graph was captured"});
}

}  // namespace captured_kernels_test

}  // namespace plumb::cases
