// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb's sparse MLA kernels on simulated platforms: right on waves of 32 and 64 for every
// fill and any number of parts, equal bits in every order of threads, and planned by the first call
// only.
#include <gtest/gtest.h>
#include <plumb/ops/sparse_mla.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define PLUMB_KERNEL_SET sparse_mla_test_kernels
#include "cases/tables/problem.h"
#include "device/device.h"
#include "device/kernels/fp8.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e8m0.h"
#include "tests/support/op_session.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry sparse_mla_decode();
}
namespace plumb::device::checked_kernels {
device::OpEntry sparse_mla_decode();
}
namespace plumb::cases {
OpDefinition define_sparse_mla_decode();
}

namespace plumb::cases {
namespace sparse_mla_kernel_test {

using device::Conditions;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

void expect_passed(const std::vector<TensorReport>& reports, const std::string& what) {
  for (const TensorReport& report : reports) {
    EXPECT_TRUE(report.passed()) << what << ": " << report.tensor << ": " << report.failures.front()
                                 << "\n"
                                 << report.pattern;
  }
}

void expect_right(const Row& row, const Step& step) {
  const device::OpEntry entry = device::kernels::sparse_mla_decode();
  for (const std::string& platform : kPlatforms) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      Step filled = step;
      filled.fill = fill;
      OpSession session(define_sparse_mla_decode(), row, filled, platform);
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      expect_passed(session.judge(filled, entry),
                    platform + " fill " + std::to_string(static_cast<int>(fill)));
    }
  }
}

TEST(SparseMlaKernels, TwoCachesWithHolesAndSinksAgreeWithTheReference) {
  expect_right(row_of(define_sparse_mla_decode(),
                      {{"requests", 3}, {"heads", 6}, {"extra_width", 200}, {"holes_percent", 20}},
                      {{"sinks", "infinite"}}),
               {.seed = 1, .live = 3});
}

TEST(SparseMlaKernels, RaggedRowsOfEveryEdgeLengthAgreeWithTheReference) {
  expect_right(row_of(define_sparse_mla_decode(),
                      {{"requests", 9},
                       {"heads", 2},
                       {"width", 130},
                       {"extra_width", 70},
                       {"page", 53},
                       {"extra_page", 2},
                       {"parts", 7},
                       {"lonely_every", 4}},
                      {{"form", "ragged"}, {"lengths", "edges"}}),
               {.seed = 2, .live = 7, .dead_rows = DeadRows::nan});
}

TEST(SparseMlaKernels, SeveralQueriesAndStridedRowsAgreeWithTheReference) {
  expect_right(row_of(define_sparse_mla_decode(), {{"requests", 2},
                                                   {"queries", 3},
                                                   {"heads", 17},
                                                   {"width", 65},
                                                   {"page", 1},
                                                   {"strided", 1},
                                                   {"repeats", 1},
                                                   {"block_n", 16},
                                                   {"parts", 5}}),
               {.seed = 3, .live = 2});
}

TEST(SparseMlaKernels, BlocksPastTwoAndFourGibibytesAgreeWithTheReference) {
  expect_right(
      row_of(define_sparse_mla_decode(),
             {{"requests", 2}, {"heads", 1}, {"extra_width", 96}, {"extra_page", 2}, {"far", 1}}),
      {.seed = 4, .live = 2});
}

TEST(SparseMlaKernels, EveryReadingOfTheScalesOfV32AgreesWithTheReference) {
  for (const char* reading : {"fp32", "bf16", "e8m0"}) {
    expect_right(row_of(define_sparse_mla_decode(),
                        {{"requests", 2},
                         {"heads", 17},
                         {"width", 70},
                         {"page", 53},
                         {"block_gap", 1},
                         {"extra_width", 20},
                         {"extra_page", 1}},
                        {{"layout", "v32"}, {"scale_reading", reading}, {"lengths", "random"}}),
                 {.seed = 10, .live = 2});
  }
}

TEST(SparseMlaKernels, AnyNumberOfPartsIsPlannedAsTheReferencePlans) {
  const device::OpEntry entry = device::kernels::sparse_mla_decode();
  for (const std::int64_t parts : {1, 2, 3, 4, 6, 9, 14, 60}) {
    for (const std::int64_t overhead : {0, 5}) {
      const Row row = row_of(define_sparse_mla_decode(),
                             {{"requests", 5},
                              {"heads", 1},
                              {"width", 96},
                              {"extra_width", 40},
                              {"block_n", 8},
                              {"parts", parts},
                              {"fixed_overhead", overhead}},
                             {{"lengths", "random"}});
      const Step step{.seed = 5, .live = 4};
      OpSession session(define_sparse_mla_decode(), row, step, "sim-sm90");
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      expect_passed(session.judge(step, entry), std::to_string(parts) + " parts");
    }
  }
}

Conditions in_order(Order order) {
  Conditions conditions;
  conditions.order = order;
  conditions.seed = 11;
  return conditions;
}

TEST(SparseMlaKernels, EveryOrderOfThreadsGivesTheSameBits) {
  const device::OpEntry entry = device::kernels::sparse_mla_decode();
  const Row row = row_of(define_sparse_mla_decode(),
                         {{"requests", 3}, {"heads", 5}, {"width", 100}, {"parts", 4}});
  const Step step{.seed = 6, .live = 3};
  for (const std::string& platform : kPlatforms) {
    std::vector<Bytes> seen;
    for (const Order order : {Order::forward, Order::reverse, Order::random}) {
      OpSession session(define_sparse_mla_decode(), row, step, platform, in_order(order));
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      for (const char* name : {"out", "lse", "partial_out", "partial_lse", "tiles"}) {
        seen.push_back(session.download().at(name).bytes());
      }
    }
    for (std::size_t i = 5; i < seen.size(); ++i) EXPECT_EQ(seen[i], seen[i - 5]) << platform;
  }
}

TEST(SparseMlaKernels, WithoutAPlanOneKernelDoesAll) {
  const Row row = row_of(define_sparse_mla_decode(),
                         {{"requests", 3}, {"heads", 17}, {"extra_width", 70}, {"strided", 1}},
                         {{"lengths", "edges"}, {"plan", "none"}, {"outputs", "out"}});
  expect_right(row, {.seed = 12, .live = 3});
  OpSession session(define_sparse_mla_decode(), row, {.seed = 12, .live = 3}, "sim-sm90");
  EXPECT_EQ(session.captured(device::kernels::sparse_mla_decode()),
            (std::vector<std::string>{"attend_kernel"}));
  for (const char* name : {"lse", "tiles", "num_splits", "partial_out", "partial_lse"}) {
    EXPECT_FALSE(session.download().contains(name)) << name;
  }
}

TEST(SparseMlaKernels, TheFirstCallOnAPlanLaunchesThePlannerAndLaterCallsDoNot) {
  const device::OpEntry entry = device::kernels::sparse_mla_decode();
  OpSession session(define_sparse_mla_decode(),
                    row_of(define_sparse_mla_decode(), {{"requests", 2}, {"heads", 1}}),
                    {.seed = 7, .live = 2}, "sim-sm90");
  EXPECT_EQ(session.captured(entry),
            (std::vector<std::string>{"plan_kernel", "attend_kernel", "combine_kernel"}));
  EXPECT_EQ(session.captured(entry), (std::vector<std::string>{"attend_kernel", "combine_kernel"}));
}

// A graph that was captured after a warm-up on the same plan replays with new lengths but the old
// plan. The tail blocks of requests that have grown are lost.
TEST(SparseMlaKernels, APlanKeptAcrossLongerLengthsFailsInPlanAndOutput) {
  const device::OpEntry entry = device::kernels::sparse_mla_decode();
  const Row row = row_of(define_sparse_mla_decode(),
                         {{"requests", 2}, {"heads", 2}, {"width", 192}, {"parts", 3}});
  OpSession session(define_sparse_mla_decode(), row, {.seed = 8, .live = 0}, "sim-sm90");
  ASSERT_EQ(session.launch(entry), PLUMB_OK);
  const Step grown{.seed = 8, .live = 2};
  session.fill(grown);
  ASSERT_EQ(session.launch(entry), PLUMB_OK);
  std::vector<std::string> failed;
  for (const TensorReport& report : session.judge(grown, entry)) {
    if (!report.passed()) failed.push_back(report.tensor);
  }
  EXPECT_GE(failed.size(), 2u);
  EXPECT_EQ(failed.front(), "tiles");
}

TEST(SparseMlaKernels, CheckedKernelsFindNeitherRaceNorStrayAccess) {
  const device::OpEntry entry = device::checked_kernels::sparse_mla_decode();
  const Row row = row_of(define_sparse_mla_decode(),
                         {{"requests", 3},
                          {"heads", 3},
                          {"width", 70},
                          {"extra_width", 20},
                          {"holes_percent", 10},
                          {"parts", 2}},
                         {{"form", "ragged"}, {"lengths", "random"}, {"sinks", "finite"}});
  for (const std::string& platform : kPlatforms) {
    const Step step{.seed = 9, .live = 2, .dead_rows = DeadRows::huge};
    Conditions conditions = in_order(Order::random);
    conditions.checked = true;
    OpSession session(define_sparse_mla_decode(), row, step, platform, conditions);
    ASSERT_EQ(session.launch(entry), PLUMB_OK);
    expect_passed(session.judge(step, entry), platform);
  }
}

// Status of a launch with one field changed. The pointers need not be valid, because nothing is
// enqueued.
plumb_status status_with(void (*change)(plumb_sparse_mla_decode_params&, plumb_mla_plan&)) {
  const auto some = [](auto*& pointer) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(std::uintptr_t{256});
  };
  plumb_mla_plan plan{};
  some(plan.tiles);
  some(plan.num_splits);
  plan.num_parts = 1;
  plan.block_n = 64;
  plumb_sparse_mla_decode_params params{};
  some(params.q);
  some(params.out);
  some(params.partial_out);
  some(params.partial_lse);
  some(params.main_cache.data);
  some(params.main.indices);
  some(params.main.indptr);
  params.main.width = 1;
  params.main_cache.block_stride_bytes = 1152;
  params.main_cache.num_blocks = params.main_cache.page = 1;
  params.main_cache.dialect = PLUMB_E4M3FN;
  params.plan = &plan;
  params.requests = params.queries = params.heads = 1;
  params.out_request_stride = params.out_query_stride = params.out_head_stride = 512;
  params.partial_out_slot_stride = params.partial_out_query_stride = 512;
  params.partial_out_head_stride = 512;
  params.partial_lse_slot_stride = params.partial_lse_query_stride = 1;
  change(params, plan);
  return device::kernels::sparse_mla_decode().launch(&params);
}

TEST(SparseMlaKernels, LaunchRefusesWhatTheContractForbids) {
  using Params = plumb_sparse_mla_decode_params;
  using Plan = plumb_mla_plan;
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.queries = 2; }),
            PLUMB_INVALID_ARGUMENT);  // ragged
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.out_head_stride = 511; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.requests = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.partial_lse = nullptr; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.partial_out_slot_stride = 511; }),
            PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params&, Plan& plan) { plan.block_n = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.main_cache.page = 2; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.main_cache.dialect = PLUMB_BF16; }),
            PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) { p.extra = p.main; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) {
              p.main_cache.layout = PLUMB_MLA_V32;
              p.main_cache.block_stride_bytes = 655;
            }),
            PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p, Plan&) {  // two layouts
              p.extra_cache = p.main_cache;
              p.extra = p.main;
              p.extra_cache.layout = PLUMB_MLA_V32;
            }),
            PLUMB_INVALID_ARGUMENT);
}

TEST(SparseMlaKernels, DeviceDecodesEveryCodeAsTheFormatTablesDo) {
  namespace kernels = device::sparse_mla_test_kernels;
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const auto expect_same = [&](float got, double expected) {
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected) << code;
      EXPECT_TRUE(std::isnan(expected) || std::signbit(got) == std::signbit(expected)) << code;
    };
    expect_same(kernels::decode_e4m3(byte, PLUMB_E4M3FN),
                reference::e4m3_values(reference::Dialect::e4m3fn)[byte]);
    expect_same(kernels::decode_e4m3(byte, PLUMB_E4M3FNUZ),
                reference::e4m3_values(reference::Dialect::e4m3fnuz)[byte]);
    expect_same(kernels::decode_ue8m0(byte), reference::decode_e8m0(byte));
  }
}

}  // namespace sparse_mla_kernel_test
}  // namespace plumb::cases
