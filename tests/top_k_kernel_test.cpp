// SPDX-License-Identifier: Apache-2.0
//
// plumb's top-k kernels on simulated platforms: right on waves of 32 and 64 for every fill, the
// same bits whatever the block size and the order of threads, and what their launchers refuse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#define PLUMB_KERNEL_SET top_k_test_kernels
#include "cases/fill.h"
#include "cases/problem.h"
#include "cases/top_k.h"
#include "device/device.h"
#include "device/kernels/top_k_select.h"
#include "tests/rows_and_cases.h"

namespace plumb::device::kernels {
plumb_op_entry top_k_per_row_prefill();
plumb_op_entry top_k_per_row_decode();
}  // namespace plumb::device::kernels

namespace plumb::cases {
OpDefinition define_top_k_per_row_prefill();
OpDefinition define_top_k_per_row_decode();
}  // namespace plumb::cases

namespace plumb::device::top_k_test_kernels {

// One block of any size on one contiguous row; room for the flags of `span` tiles, 0: of all.
template <bool kept>
PLUMB_KERNEL void select_one(const float* logits, std::int64_t length, std::int32_t k,
                             std::int32_t* indices, int span) {
  PLUMB_SHARED(TopKShared, shared, 1);
  select_top_k<kept>({logits, 1, length}, k, indices, span, shared);
}

plumb_status launch_select_one(int block, int span, const float* logits, std::int64_t length,
                               std::int32_t k, std::int32_t* indices, plumb_stream stream) {
  const std::int64_t tile = block * kTopKColumns;
  if (span == 0) span = static_cast<int>((length + kTopKChunk + tile - 1) / tile);
  const LaunchShape shape{1, 1, block, top_k_flag_bytes(block, span)};
  if (length + kTopKChunk <= tile) {
    return PLUMB_LAUNCH(select_one<true>, shape, stream, logits, length, k, indices, span);
  }
  return PLUMB_LAUNCH(select_one<false>, shape, stream, logits, length, k, indices, span);
}

}  // namespace plumb::device::top_k_test_kernels

namespace plumb::cases {
namespace {

using device::Conditions;
using device::Device;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

// Uploads, launches once, downloads, and checks that nothing but outputs changed.
void run_once(const Problem& problem, const plumb_op_entry& entry, TensorSet& tensors,
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

Outcome run_case(const OpDefinition& op, const plumb_op_entry& entry, const Row& row,
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

void expect_right(const OpDefinition& op, const plumb_op_entry& entry, const Row& row,
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
  prefill.k = 1;
  EXPECT_EQ(device::kernels::top_k_per_row_prefill().launch(&prefill), PLUMB_OK);
  plumb_top_k_per_row_decode_params decode{};
  decode.k = decode.next_n = decode.seq_lens_dims = 1;
  EXPECT_EQ(device::kernels::top_k_per_row_decode().launch(&decode), PLUMB_OK);
}

TEST(TopKKernels, ImpossibleArgumentsAreRefused) {
  const auto refused = [](const plumb_op_entry& entry, const void* params) {
    return entry.launch(params) == PLUMB_INVALID_ARGUMENT;
  };
  const plumb_op_entry prefill = device::kernels::top_k_per_row_prefill();
  plumb_top_k_per_row_prefill_params p{};
  EXPECT_TRUE(refused(prefill, nullptr));
  EXPECT_TRUE(refused(prefill, &p)) << "k 0";
  p.k = 1;
  p.num_rows = 1;
  EXPECT_TRUE(refused(prefill, &p)) << "null pointers";
  p.num_rows = -1;
  EXPECT_TRUE(refused(prefill, &p)) << "negative size";

  const plumb_op_entry decode = device::kernels::top_k_per_row_decode();
  plumb_top_k_per_row_decode_params d{};
  d.k = d.next_n = 1;
  EXPECT_TRUE(refused(decode, &d)) << "lengths of no dimension";
  d.seq_lens_dims = 1;
  d.next_n = 2;
  d.num_rows = 3;
  EXPECT_TRUE(refused(decode, &d)) << "rows that are no multiple of next_n";
}

// The row starts `lead` elements behind an aligned address.
std::vector<std::int32_t> select_with(int block, const std::vector<float>& logits, std::int32_t k,
                                      const std::string& platform, const Conditions& conditions,
                                      int span = 0, std::size_t lead = 0) {
  const auto device = device::open_device(platform, conditions);
  const device::Stream stream = device->create_stream();
  const std::size_t bytes = logits.size() * sizeof(float);
  auto* in = static_cast<float*>(device->allocate(bytes + lead * sizeof(float), "logits")) + lead;
  std::vector<std::int32_t> indices(static_cast<std::size_t>(k));
  const std::size_t out_bytes = indices.size() * sizeof(std::int32_t);
  auto* out = static_cast<std::int32_t*>(device->allocate(out_bytes, "indices"));
  device->copy(in, logits.data(), bytes, stream);
  EXPECT_EQ(device::top_k_test_kernels::launch_select_one(block, span, in, std::ssize(logits), k,
                                                          out, stream),
            PLUMB_OK);
  device->copy(indices.data(), out, out_bytes, stream);
  EXPECT_TRUE(device->check_guards().empty());
  return indices;
}

// 1100 logits of eleven values, many of them tied at the threshold.
std::vector<float> tied_logits() {
  std::vector<float> logits(1100);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(integer(3, i, -5, 5));
  }
  return logits;
}

// Columns of the k largest, of equal ones the first, in ascending order.
std::vector<std::int32_t> first_winners(const std::vector<float>& logits, std::int32_t k) {
  std::vector<std::int32_t> winners(static_cast<std::size_t>(k));
  reference::select_top_k({logits.data(), 1, std::ssize(logits)}, k, winners.data());
  std::sort(winners.begin(), winners.end());
  return winners;
}

TEST(TopKKernels, EveryBlockSizeGivesTheSameIndicesInAscendingOrder) {
  const std::vector<float> logits = tied_logits();
  const std::vector<std::int32_t> expected = first_winners(logits, 300);
  for (const std::string& platform : kPlatforms) {
    for (const int block : {1, 7, 31, 32, 33, 64, 100, 192, 256, 1000, 1024}) {
      EXPECT_EQ(select_with(block, logits, 300, platform, {}), expected)
          << platform << " block " << block;
    }
  }
}

// Checked kernels: nothing in front of the row is read to fill its first chunk.
TEST(TopKKernels, EveryStartAndEveryRoomForFlagsGivesTheSameIndices) {
  const std::vector<float> logits = tied_logits();
  const std::vector<std::int32_t> expected = first_winners(logits, 300);
  Conditions conditions;
  conditions.checked = true;
  for (const std::string& platform : kPlatforms) {
    for (const std::size_t lead : {0, 1, 2, 3}) {
      for (const int block : {7, 32, 64}) {
        for (const int span : {0, 1, 3}) {
          EXPECT_EQ(select_with(block, logits, 300, platform, conditions, span, lead), expected)
              << platform << " block " << block << " span " << span << " lead " << lead;
        }
      }
    }
  }
}

TEST(TopKKernels, EveryOrderOfThreadsGivesTheSameIndices) {
  const std::vector<float> logits = tied_logits();
  const std::vector<std::int32_t> expected = first_winners(logits, 257);
  for (const std::string& platform : kPlatforms) {
    for (const Order order : {Order::forward, Order::reverse, Order::random}) {
      Conditions conditions;
      conditions.order = order;
      conditions.seed = 11;
      EXPECT_EQ(select_with(192, logits, 257, platform, conditions), expected) << platform;
    }
  }
}

// Blocks of 32 threads: tiles of 1024 columns, and the sample 128 columns amid each quarter.
TEST(TopKKernels, ASampleThatMisleadsCostsNothingButTime) {
  for (const float sampled : {9.0F, -9.0F}) {
    std::vector<float> logits(4096);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const bool in_sample = i % 1024 >= 448 && i % 1024 < 576;
      logits[i] = (in_sample ? sampled : 0.0F) + static_cast<float>(integer(5, i, -400, 400)) / 256;
    }
    for (const std::int32_t k : {1, 100, 700}) {
      EXPECT_EQ(select_with(32, logits, k, "sim-sm90", {}), first_winners(logits, k))
          << sampled << " k " << k;
    }
  }
}

TEST(TopKKernels, RowsBeyondEightGigabytesAreFound) {
  const auto device = device::open_device("sim-sm90", {});
  const device::Stream stream = device->create_stream();
  constexpr std::int64_t kRowStride = std::int64_t{1} << 31;  // elements: past 32 bits twice over
  const std::vector<float> logits = tied_logits();
  const std::size_t bytes = logits.size() * sizeof(float);
  auto* sparse =
      static_cast<float*>(device->allocate_sparse(kRowStride * sizeof(float) + bytes, "logits"));
  const std::vector<std::int32_t> bounds = {0, 0, 1100, 1100};
  auto* starts = static_cast<std::int32_t*>(device->allocate(16, "bounds"));
  auto* indices = static_cast<std::int32_t*>(device->allocate(2 * 300 * 4, "indices"));
  for (const std::int64_t row : {0, 1}) {
    device->copy(sparse + row * kRowStride, logits.data(), bytes, stream);
  }
  device->copy(starts, bounds.data(), 16, stream);
  const plumb_top_k_per_row_prefill_params params{sparse, starts,     starts + 2, indices, 2,
                                                  1100,   kRowStride, 1,          300,     stream};
  ASSERT_EQ(device::kernels::top_k_per_row_prefill().launch(&params), PLUMB_OK);
  std::vector<std::int32_t> stored(600);
  device->copy(stored.data(), indices, 2 * 300 * 4, stream);
  const std::vector<std::int32_t> expected = first_winners(logits, 300);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), stored.begin()));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), stored.begin() + 300));
}

}  // namespace
}  // namespace plumb::cases
