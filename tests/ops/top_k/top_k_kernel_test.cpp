// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb's top-k kernels on simulated platforms: right on waves of 32 and 64 for every fill,
// and what their launchers refuse. top_k_select_test.cpp tests the selection in one block.
#include <gtest/gtest.h>
#include <plumb/ops/top_k.h>

#include <cstring>
#include <string>
#include <vector>

#include "cases/ops/top_k/top_k.h"
#include "cases/tables/problem.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry top_k_per_row_prefill();
device::OpEntry top_k_per_row_decode();
}  // namespace plumb::device::kernels

namespace plumb::cases {
OpDefinition define_top_k_per_row_prefill();
OpDefinition define_top_k_per_row_decode();
}  // namespace plumb::cases

namespace plumb::cases {
namespace top_k_kernel_test {

using device::Conditions;
using device::Device;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

// Uploads, launches once, downloads, and checks that only outputs changed.
void run_once(const Problem& problem, const device::OpEntry& entry, TensorSet& tensors,
              Device& device) {
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

struct Outcome {
  Bytes indices;
  TensorReport report;
};

Outcome run_case(const OpDefinition& op, const device::OpEntry& entry, const Row& row,
                 const Step& step, const std::string& platform, const Conditions& conditions) {
  const auto device = device::open_device(platform, conditions);
  const auto problem = op.make_problem(row, device->properties());
  TensorSet tensors = problem->make_tensors();
  problem->fill(step, tensors);
  run_once(*problem, entry, tensors, *device);
  const auto reports = problem->judge(step, tensors, {}, entry.numerics);
  EXPECT_EQ(reports.size(), 1u);
  return {tensors.at("indices").bytes(), reports.at(0)};
}

void expect_right(const OpDefinition& op, const device::OpEntry& entry, const Row& row,
                  std::int64_t live) {
  for (const std::string& platform : kPlatforms) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      for (const DeadRows dead : {DeadRows::nan, DeadRows::huge}) {
        const Outcome outcome = run_case(op, entry, row, {7, live, fill, dead}, platform, {});
        EXPECT_TRUE(outcome.report.passed()) << platform << " fill " << static_cast<int>(fill)
                                             << ": " << outcome.report.failures.front() << "\n"
                                             << outcome.report.pattern;
      }
    }
  }
}

TEST(TopKKernels, PrefillIsRightForRaggedStridedRowsAroundK) {
  const OpDefinition op = define_top_k_per_row_prefill();
  const Row row = row_of(op, {{"k", 96},
                              {"rows", 9},
                              {"requests", 3},
                              {"length", 98},
                              {"length_step", 1},
                              {"lead", 33},
                              {"gap", 5},
                              {"row_gap", 3},
                              {"column_stride", 2}});
  expect_right(op, device::kernels::top_k_per_row_prefill(), row, 9);
  expect_right(op, device::kernels::top_k_per_row_prefill(), row, 4);
}

TEST(TopKKernels, PrefillIsRightForALongRow) {
  const OpDefinition op = define_top_k_per_row_prefill();
  const Row row = row_of(op, {{"k", 2048}, {"rows", 2}, {"length", 9001}, {"lead", 4100}});
  expect_right(op, device::kernels::top_k_per_row_prefill(), row, 2);
}

TEST(TopKKernels, DecodeIsRightForEveryFormOfSequenceLengths) {
  const OpDefinition op = define_top_k_per_row_decode();
  for (const std::int64_t next_n : {1, 2, 4}) {
    for (const std::int64_t dims : {1, 2}) {
      const Row row = row_of(op, {{"k", 40},
                                  {"requests", 6},
                                  {"next_n", next_n},
                                  {"seq_lens_dims", dims},
                                  {"seq_lens_gap", dims - 1},
                                  {"length", 70},
                                  {"length_step", 17},
                                  {"gap", 11}});
      expect_right(op, device::kernels::top_k_per_row_decode(), row, 5);
    }
  }
}

TEST(TopKKernels, NoRowsAreNoLaunch) {
  plumb_top_k_per_row_prefill_params prefill{};
  prefill.k = prefill.indices_row_stride = 1;
  EXPECT_EQ(device::kernels::top_k_per_row_prefill().launch(&prefill), PLUMB_OK);
  plumb_top_k_per_row_decode_params decode{};
  decode.k = decode.indices_row_stride = decode.next_n = 1;
  decode.seq_lens_dims = 1;
  EXPECT_EQ(device::kernels::top_k_per_row_decode().launch(&decode), PLUMB_OK);
}

TEST(TopKKernels, ImpossibleArgumentsAreRefused) {
  const auto refused = [](const device::OpEntry& entry, const void* params) {
    return entry.launch(params) == PLUMB_INVALID_ARGUMENT;
  };
  const device::OpEntry prefill = device::kernels::top_k_per_row_prefill();
  plumb_top_k_per_row_prefill_params p{};
  EXPECT_TRUE(refused(prefill, nullptr));
  EXPECT_TRUE(refused(prefill, &p)) << "k 0";
  p.k = 1;
  EXPECT_TRUE(refused(prefill, &p)) << "rows of indices over each other";
  p.indices_row_stride = 1;
  EXPECT_FALSE(refused(prefill, &p)) << "no rows";
  p.rows = 1;
  EXPECT_TRUE(refused(prefill, &p)) << "null pointers";
  p.rows = -1;
  EXPECT_TRUE(refused(prefill, &p)) << "negative size";

  const device::OpEntry decode = device::kernels::top_k_per_row_decode();
  plumb_top_k_per_row_decode_params d{};
  d.k = d.indices_row_stride = d.next_n = 1;
  EXPECT_TRUE(refused(decode, &d)) << "lengths of no dimension";
  d.seq_lens_dims = 1;
  d.next_n = 2;
  d.rows = 3;
  EXPECT_TRUE(refused(decode, &d)) << "rows that are no multiple of next_n";
}

}  // namespace top_k_kernel_test
}  // namespace plumb::cases
