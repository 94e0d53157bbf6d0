// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb's hyper-connection kernels on simulated platforms: right on waves of 32 and 64 for
// every fill and legal shape, equal bits in every order of threads, and what their launchers
// refuse.
#include <gtest/gtest.h>
#include <plumb/ops/hyper_connection.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/tables/problem.h"
#include "device/device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry mhc_pre();
device::OpEntry mhc_post();
device::OpEntry hc_head();
}  // namespace plumb::device::kernels

namespace plumb::cases {

OpDefinition define_mhc_pre();
OpDefinition define_mhc_post();
OpDefinition define_hc_head();

namespace mhc_kernel_test {

using device::Conditions;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

struct Op {
  OpDefinition definition;
  device::OpEntry entry;
};
Op mhc_pre() { return {define_mhc_pre(), device::kernels::mhc_pre()}; }
Op mhc_post() { return {define_mhc_post(), device::kernels::mhc_post()}; }
Op hc_head() { return {define_hc_head(), device::kernels::hc_head()}; }

reference::Numerics numerics_of(const plumb_numerics& declared) {
  reference::Numerics numerics;
  numerics.chains = declared.chains;
  numerics.function_ulp = static_cast<double>(declared.function_ulp);
  return numerics;
}

// Uploads, launches once, downloads, and checks that inputs and guard zones are unchanged.
void run_once(const Problem& problem, const device::OpEntry& entry, device::Device& device,
              TensorSet& tensors) {
  DeviceTensors addresses;
  const device::Stream stream = device.create_stream();
  for (HostTensor& tensor : tensors.all()) {
    void* memory = device.allocate(tensor.bytes().size(), tensor.spec().name);
    addresses.set(tensor.spec().name, memory);
    if (tensor.spec().role != Role::input) continue;
    device.copy(memory, tensor.bytes().data(), tensor.bytes().size(), stream);
  }
  ASSERT_EQ(problem.launch(entry, addresses, nullptr, stream), PLUMB_OK);
  for (HostTensor& tensor : tensors.all()) {
    Bytes stored(tensor.bytes().size());
    device.copy(stored.data(), addresses.get<void>(tensor.spec().name), stored.size(), stream);
    if (tensor.spec().role == Role::input) {
      EXPECT_EQ(std::memcmp(stored.data(), tensor.bytes().data(), stored.size()), 0);
    }
    tensor.bytes() = stored;
  }
  EXPECT_TRUE(device.check_guards().empty());
}

TensorSet run_case(const Op& op, const Row& row, const Step& step, const std::string& platform,
                   const Conditions& conditions, std::vector<TensorReport>* reports) {
  const auto device = device::open_device(platform, conditions);
  const auto problem = op.definition.make_problem(row, device->properties());
  TensorSet tensors = problem->make_tensors();
  problem->fill(step, tensors);
  run_once(*problem, op.entry, *device, tensors);
  if (reports != nullptr) {
    *reports = problem->judge(step, tensors, numerics_of(op.entry.numerics), op.entry.numerics);
  }
  return tensors;
}

void expect_right(const Op& op, const Row& row, std::int64_t live) {
  for (const std::string& platform : kPlatforms) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      for (const DeadRows dead : {DeadRows::zero, DeadRows::nan}) {
        std::vector<TensorReport> reports;
        run_case(op, row, {7, live, fill, dead}, platform, {}, &reports);
        for (const TensorReport& report : reports) {
          EXPECT_TRUE(report.passed())
              << op.definition.name << " on " << platform << ", fill " << static_cast<int>(fill)
              << ", " << report.tensor << ": " << report.failures.front() << "; " << report.pattern;
        }
      }
    }
  }
}

TEST(MhcKernels, MhcPreIsRightAroundTileAndBlockEdges) {
  for (const std::int64_t tokens : {1, 15, 16, 17, 63, 64, 65, 130}) {
    expect_right(mhc_pre(), row_of(mhc_pre().definition, {{"tokens", tokens}, {"hidden", 24}}),
                 tokens);
  }
}

TEST(MhcKernels, MhcPreIsRightForOddWidthsSplitsAndStrides) {
  for (const std::int64_t hidden : {1, 3, 255, 257, 769}) {
    for (const std::int64_t splits : {1, 4, 8}) {
      const Row row = row_of(mhc_pre().definition, {{"tokens", 5},
                                                    {"hidden", hidden},
                                                    {"splits", splits},
                                                    {"slot_gap", 5},
                                                    {"token_gap", 9},
                                                    {"fused_norm", splits == 4 ? 1 : 0}});
      expect_right(mhc_pre(), row, 4);
    }
  }
}

TEST(MhcKernels, MhcPreIsRightForEveryKindOfLogits) {
  for (const char* logits : {"usual", "wide", "equal", "one_hot", "huge"}) {
    for (const std::int64_t exponent : {0, 6}) {
      if (exponent == 0 && std::string(logits) == "huge") continue;
      const Row row = row_of(mhc_pre().definition,
                             {{"tokens", 18},
                              {"hidden", 64},
                              {"rms_eps_exponent", exponent},
                              {"hc_eps_exponent", exponent},
                              {"fused_norm", 1}},
                             {{"logits", logits}});
      expect_right(mhc_pre(), row, 18);
    }
  }
}

TEST(MhcKernels, MhcPostAndHcHeadAreRightForOddWidthsAndStrides) {
  for (const std::int64_t hidden : {1, 3, 64, 255, 257, 769}) {
    const Integers shape = {{"tokens", 7}, {"hidden", hidden}, {"slot_gap", 3}, {"token_gap", 1}};
    expect_right(mhc_post(), row_of(mhc_post().definition, shape), 6);
    for (const char* rounding : {"once", "twice"}) {
      const auto head = [&](const char* logits) {
        return row_of(hc_head().definition, shape, {{"rounding", rounding}, {"logits", logits}});
      };
      expect_right(hc_head(), head("usual"), 6);
      expect_right(hc_head(), head("huge"), 7);
    }
  }
}

TEST(MhcKernels, ResultsHaveTheSameBitsInEveryOrderOfThreads) {
  const Integers shape = {{"tokens", 70}, {"hidden", 40}};
  for (const Op& op : {mhc_pre(), mhc_post(), hc_head()}) {
    for (const std::string& platform : kPlatforms) {
      const Step step{3, 70, Fill::real, DeadRows::zero};
      Conditions reverse, random;
      reverse.order = Order::reverse;
      random.order = Order::random;
      random.seed = 11;
      const Row row = row_of(op.definition, shape);
      const TensorSet forward = run_case(op, row, step, platform, {}, nullptr);
      for (const Conditions& conditions : {reverse, random}) {
        const TensorSet other = run_case(op, row, step, platform, conditions, nullptr);
        for (const HostTensor& tensor : forward.all()) {
          EXPECT_EQ(tensor.bytes(), other.at(tensor.spec().name).bytes())
              << platform << " " << tensor.spec().name;
        }
      }
    }
  }
}

TEST(MhcKernels, LaunchersRefuseIllegalShapesAndDoNothingWithoutTokens) {
  const auto device = device::open_device("sim-sm90");
  plumb_mhc_pre_params pre{};
  pre.stream = device->create_stream();
  pre.hidden = pre.splits = pre.layer_input_row_stride = 1;
  pre.sinkhorn_iterations = 1;
  pre.post_row_stride = 4;
  pre.comb_token_stride = 16;
  EXPECT_EQ(mhc_pre().entry.launch(&pre), PLUMB_OK);
  pre.tokens = 1;
  EXPECT_EQ(mhc_pre().entry.launch(&pre), PLUMB_INVALID_ARGUMENT);  // no pointers
  pre.tokens = 0;
  pre.splits = 0;
  EXPECT_EQ(mhc_pre().entry.launch(&pre), PLUMB_INVALID_ARGUMENT);
  plumb_mhc_post_params post{};
  EXPECT_EQ(mhc_post().entry.launch(&post), PLUMB_INVALID_ARGUMENT);  // hidden 0
  post.hidden = post.out_token_stride = post.out_slot_stride = 1;
  EXPECT_EQ(mhc_post().entry.launch(&post), PLUMB_OK);
  plumb_hc_head_params head{};
  head.hidden = head.out_row_stride = 1;
  EXPECT_EQ(hc_head().entry.launch(&head), PLUMB_OK);
  EXPECT_EQ(hc_head().entry.launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace mhc_kernel_test
}  // namespace plumb::cases
