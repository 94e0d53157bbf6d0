// SPDX-License-Identifier: Apache-2.0
//
// Several runners on one device: faults that show only there are found and attributed to a runner.
// A simulated device interleaves in the same way every time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "cases/drivers/thread_team.h"
#include "device/forwarding_device.h"
#include "faults/faults.h"
#include "tests/support/rows_and_cases.h"
#include "tests/support/sim_device_fixture.h"
#include "tools/report.h"

namespace plumb::cases {

namespace concurrent_test {

std::string report_of(const CaseResult& result) {
  return tools::failure_text({result, {}, {}, {}, {}}, {});
}

void expect_found(const std::string& id, const RunOptions& options, const std::string& says) {
  const CaseResult result = run_case(find_case(id), options);
  EXPECT_EQ(result.outcome, Outcome::failed) << id << " " << options.platform;
  EXPECT_NE(report_of(result).find(says), std::string::npos) << "want " << says << "\n"
                                                             << report_of(result);
}

class OnPlatform : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Concurrent, OnPlatform,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"));

constexpr const char* kStateful = "sparse_mla_decode/edge_lengths_ragged/concurrent";

// After every replay, a kernel writes one byte at `offset` of the allocation labelled `label`.
class StrayWrites final : public device::ForwardingDevice {
 public:
  StrayWrites(std::unique_ptr<device::Device> inner, std::string label, std::ptrdiff_t offset)
      : ForwardingDevice(std::move(inner)), label_(std::move(label)), offset_(offset) {}

  void* allocate(std::size_t bytes, std::string_view label) override {
    void* memory = ForwardingDevice::allocate(bytes, label);
    if (label == label_) target_ = static_cast<std::uint8_t*>(memory) + offset_;
    return memory;
  }
  void replay(device::GraphExec graph, device::Stream stream) override {
    ForwardingDevice::replay(graph, stream);
    device::launch(stream, "stray", [target = target_] { *target = 0x11; });
  }

 private:
  const std::string label_;
  const std::ptrdiff_t offset_;
  std::uint8_t* target_ = nullptr;
};

// A simulated device with limited memory, like a real one.
class SmallDevice final : public device::ForwardingDevice {
 public:
  SmallDevice(std::unique_ptr<device::Device> inner, std::size_t bytes)
      : ForwardingDevice(std::move(inner)), properties_(ForwardingDevice::properties()) {
    properties_.memory_bytes = bytes;
  }
  const device::Properties& properties() const override { return properties_; }

 private:
  device::Properties properties_;
};

CaseResult run_with_memory(const std::string& id, std::size_t bytes) {
  RunOptions options = on("sim-sm90");
  options.open = [=](std::string_view platform, const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(
        new SmallDevice(device::open_device(platform, conditions), bytes));
  };
  return run_case(find_case(id), options);
}

// The tensors of rms_norm/v4_pro_hidden (4 rows of 7168 in and out, and the weight) take 126 KiB.
// For 4 runners and the work alone that is 630 KiB, three quarters of 840 KiB.
TEST(ConcurrentCases, AreSkippedWhereTheDeviceHasTooLittleMemory) {
  EXPECT_EQ(run_with_memory("rms_norm/v4_pro_hidden/concurrent", 842 << 10).outcome,
            Outcome::passed);
  const CaseResult skipped = run_with_memory("rms_norm/v4_pro_hidden/concurrent", 838 << 10);
  EXPECT_EQ(skipped.outcome, Outcome::skipped);
  EXPECT_NE(skipped.reason.find("4 runners and the same work run alone need 0 GiB, and the device "
                                "has 0"),
            std::string::npos)
      << skipped.reason;
}

// A device that has no memory for allocations whose label begins with `label`.
class FullDevice final : public device::ForwardingDevice {
 public:
  FullDevice(std::unique_ptr<device::Device> inner, std::string label, bool real)
      : ForwardingDevice(std::move(inner)),
        properties_(ForwardingDevice::properties()),
        label_(std::move(label)) {
    if (real) properties_.memory_bytes = std::size_t{80} << 30;
  }
  const device::Properties& properties() const override { return properties_; }
  void* allocate(std::size_t bytes, std::string_view label) override {
    if (label.starts_with(label_)) {
      throw device::DeviceError(device::ErrorKind::out_of_memory, "allocate");
    }
    return ForwardingDevice::allocate(bytes, label);
  }

 private:
  device::Properties properties_;
  std::string label_;
};

CaseResult run_without_memory_for(const std::string& label, const std::string& scenario,
                                  bool real) {
  RunOptions options = on("sim-sm90");
  options.open = [=](std::string_view platform, const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(
        new FullDevice(device::open_device(platform, conditions), label, real));
  };
  return run_case(find_case("rms_norm/v4_pro_hidden/" + scenario), options);
}

// `plumb run` repeats a case for which a real device had no memory left, with no other case
// running.
TEST(ConcurrentCases, AreSkippedIfARealDeviceHasNoMemoryLeft) {
  for (const char* scenario : {"concurrent", "eager", "full_graph"}) {
    const bool several = std::string_view(scenario) == "concurrent";
    const std::string label = several ? "runner 3 out" : "out";
    const CaseResult skipped = run_without_memory_for(label, scenario, true);
    EXPECT_EQ(skipped.outcome, Outcome::skipped);
    EXPECT_TRUE(skipped.lacked_memory);
    EXPECT_EQ(skipped.reason, "no memory left for " + label + ": 0.0 GiB of 80");
    EXPECT_EQ(run_without_memory_for(label, scenario, false).outcome, Outcome::failed);
  }
}

TEST(ConcurrentCases, FailWithTheKindOfTheDevicesError) {
  const CaseResult result = run_without_memory_for("occupancy hog", "concurrent", true);
  ASSERT_EQ(result.outcome, Outcome::failed);
  EXPECT_FALSE(result.lacked_memory);
  EXPECT_EQ(result.failures.front().kind, "out_of_memory");
  EXPECT_NE(result.failures.front().context.find("the background load"), std::string::npos)
      << result.failures.front().context;
}

RunOptions with_stray_writes(std::string label, std::ptrdiff_t offset) {
  RunOptions options = on("sim-sm90");
  options.open = [=](std::string_view platform, const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(
        new StrayWrites(device::open_device(platform, conditions), label, offset));
  };
  return options;
}

TEST(StrayWrites, AreFoundWhereverTheyLand) {
  const std::string id = "rms_norm/v4_pro_hidden/concurrent";
  expect_found(id, with_stray_writes("occupancy hog", 5), " of its 128 values are wrong");
  expect_found(id, with_stray_writes("slow copy", 7), "slow copy: byte 7 of 16384");
  expect_found(id, with_stray_writes("runner 3 out", 9), "runner 3 of 4");
  expect_found(id, with_stray_writes("runner 2 x", 11), "x: input changed");
  expect_found(id, with_stray_writes("runner 2 out", -3), "runner 2 out: guard zone damaged");
}

TEST_P(OnPlatform, InputsOfOneRunnerUnderAnotherAreFound) {
  expect_found("rms_norm/v4_pro_hidden/concurrent",
               with_runners_sharing(on(GetParam()), RunOptions::Sharing::inputs),
               "at runner 1 of 4");
}

TEST_P(OnPlatform, OpStateOfTwoRunnersIsFound) {
  expect_found(kStateful, with_runners_sharing(on(GetParam()), RunOptions::Sharing::state),
               "a graph captured alone launches plan_kernel");
}

TEST_P(OnPlatform, ACaptureThatANeighbourSpoilsIsFound) {
  const RunOptions options = with_global_captures(on(GetParam()));
  expect_found("rms_norm/v4_pro_hidden/concurrent", options, "the background load, capture");
  EXPECT_EQ(run_case(find_case("rms_norm/v4_pro_hidden/full_graph"), options).outcome,
            Outcome::passed);
}

TEST(ConcurrentCases, FailWithoutAReplay) {
  for (const Case& which : all_cases()) {
    if (which.scenario->mode != Scenario::Mode::concurrent || which.tier() > Tier::standard)
      continue;
    EXPECT_EQ(run_case(which, with_dead_replay(on("sim-sm90"))).outcome, Outcome::failed)
        << which.id();
  }
}

// The mutants of concurrency.cmake are wrong only if several calls run at the same time.
TEST(ConcurrencyMutants, PassWithoutNeighbours) {
  int tried = 0;
  for (const Mutant& mutant : all_mutants()) {
    const std::string id(mutant.case_id);
    if (!id.ends_with("/concurrent")) continue;
    ++tried;
    for (const char* scenario : {"eager", "full_graph"}) {
      const std::string other = id.substr(0, id.rfind('/') + 1) + scenario;
      const CaseResult result = run_case(find_case(other), with_mutant(on("sim-sm90"), mutant));
      EXPECT_EQ(result.outcome, Outcome::passed) << mutant.name << " " << report_of(result);
    }
  }
  EXPECT_GE(tried, 3);
}

TEST(ConcurrentCases, AreThereForEveryOpInTheDefaultTier) {
  std::vector<std::string_view> ops;
  for (const Case& which : all_cases()) {
    if (which.scenario->mode == Scenario::Mode::concurrent && which.tier() < Tier::full) {
      EXPECT_EQ(which.scenario->runners, 4);
      ops.push_back(which.op->name);
    }
  }
  for (const OpDefinition& op : all_ops()) {
    EXPECT_NE(std::find(ops.begin(), ops.end(), op.name), ops.end())
        << op.name << ": no row says concurrent = \"default\"";
  }
}

TEST(ConcurrentCases, WithOneAndWithSixteenRunnersPass) {
  for (const char* scenario : {"concurrent_1", "concurrent_16"}) {
    const CaseResult result =
        run_case(find_case("rms_norm/v4_pro_hidden/" + std::string(scenario)), on("sim-gfx950"));
    EXPECT_EQ(result.outcome, Outcome::passed) << report_of(result);
  }
}

// A failing case gives the same report every time, however the host schedules its threads.
TEST(ConcurrentCases, FailTheSameWayEveryTime) {
  for (const char* name : {"top_k_scratch_of_all_calls", "rms_norm_scratch_of_all_calls"}) {
    const auto mutant = std::find_if(all_mutants().begin(), all_mutants().end(),
                                     [&](const Mutant& m) { return m.name == name; });
    ASSERT_NE(mutant, all_mutants().end());
    const Case& which = find_case(mutant->case_id);
    const std::string first = report_of(run_case(which, with_mutant(on("sim-sm90"), *mutant)));
    for (int again = 0; again < 5; ++again) {
      EXPECT_EQ(report_of(run_case(which, with_mutant(on("sim-sm90"), *mutant))), first);
    }
  }
}

TEST(ThreadTeam, RunsAllAtOnceAndHandsErrorsBack) {
  ThreadTeam team(3);
  std::atomic<int> sum = 0;
  const auto errors = team.run([&](int i) {
    sum += i + 1;
    if (i == 1) throw std::runtime_error("one");
  });
  EXPECT_EQ(sum, 6);
  EXPECT_FALSE(errors[0]);
  EXPECT_TRUE(errors[1]);
  EXPECT_FALSE(team.run([&](int) { ++sum; })[1]);
  EXPECT_EQ(sum, 9);
}

}  // namespace concurrent_test

}  // namespace plumb::cases
