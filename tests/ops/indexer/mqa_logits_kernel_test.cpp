// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb's kernels of the lightning indexer's logits on simulated platforms: edge shapes,
// equal bits in every order of threads, addresses past 2^31 elements, and what their launchers
// refuse.
#include <gtest/gtest.h>
#include <plumb/ops/indexer.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/tables/problem.h"
#include "device/device.h"
#include "tests/support/device_buffers.h"
#include "tests/support/op_session.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry fp8_mqa_logits();
device::OpEntry fp8_paged_mqa_logits();
}  // namespace plumb::device::kernels
namespace plumb::cases {
OpDefinition define_fp8_mqa_logits();
OpDefinition define_fp8_paged_mqa_logits();
}  // namespace plumb::cases

namespace plumb::cases {
namespace mqa_logits_kernel_test {

using tests::DeviceBuffers;

using device::Conditions;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

void expect_right(const OpDefinition& op, const device::OpEntry& entry, const Row& row,
                  const Step& step) {
  for (const std::string& platform : kPlatforms) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      Step filled = step;
      filled.fill = fill;
      OpSession session(op, row, filled, platform);
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      for (const TensorReport& report : session.judge(filled, entry)) {
        EXPECT_TRUE(report.passed()) << platform << ": " << report.failures.front();
        EXPECT_GT(report.elements_compared, 0);
      }
    }
  }
}

TEST(MqaLogitsKernels, PrefillIsRightForEveryHeadCountAndDimension) {
  const OpDefinition op = define_fp8_mqa_logits();
  for (const std::int64_t heads : {1, 7, 8, 16, 32, 64}) {
    for (const std::int64_t dim : {16, 32, 64, 128}) {
      const Row row =
          row_of(op, {{"rows", 3}, {"length", 129}, {"lead", 1}, {"heads", heads}, {"dim", dim}});
      expect_right(op, device::kernels::fp8_mqa_logits(), row, {.seed = 3, .live = 2});
    }
  }
}

TEST(MqaLogitsKernels, PagedIsRightForEveryPageAndLayout) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  for (const std::int64_t page : {1, 2, 16, 32, 53, 64, 128, 256}) {
    for (const std::string layout : {"planar", "shuffled"}) {
      if (layout == "shuffled" && page % 16 != 0) continue;
      const Row row = row_of(op,
                             {{"requests", 3},
                              {"next_n", 2},
                              {"length", 150},
                              {"length_step", 70},
                              {"heads", 8},
                              {"dim", 32},
                              {"page", page}},
                             {{"layout", layout}});
      expect_right(op, device::kernels::fp8_paged_mqa_logits(), row,
                   {.seed = 4, .live = 2, .dead_rows = DeadRows::nan});
    }
  }
}

TEST(MqaLogitsKernels, EveryOrderOfThreadsGivesTheSameBits) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  const Row row = row_of(op, {{"requests", 2}, {"length", 140}, {"heads", 8}, {"gap", 30}});
  const Step step{.seed = 5, .live = 2};
  for (const std::string& platform : kPlatforms) {
    std::vector<Bytes> results;
    for (const Order order : {Order::forward, Order::reverse, Order::random}) {
      Conditions conditions;
      conditions.order = order;
      conditions.seed = 11;
      OpSession session(op, row, step, platform, conditions);
      ASSERT_EQ(session.launch(device::kernels::fp8_paged_mqa_logits()), PLUMB_OK);
      results.push_back(session.download().at("logits").bytes());
    }
    EXPECT_TRUE(results[0] == results[1] && results[0] == results[2]) << platform;
  }
}

// Row 1 is 2^31 elements after row 0 (aiter #4244). All codes are 1, so every logit is 16 * dim
// times a weight.
TEST(MqaLogitsKernels, RowsBeyondTwoToThe31ElementsAreWritten) {
  DeviceBuffers memory("sim-sm90");
  constexpr std::int64_t kStride = std::int64_t{1} << 31;
  plumb_fp8_mqa_logits_params p{};
  p.q = memory.upload(std::vector<std::uint8_t>(2 * 16 * 16, 0x38));
  p.k = memory.upload(std::vector<std::uint8_t>(130 * 16, 0x38));
  p.k_scale = memory.upload(std::vector<float>(130, 1.0F));
  p.weights = memory.upload(std::vector<float>(2 * 16, 2.0F));
  p.starts = memory.upload(std::vector<std::int32_t>{0, 0});
  p.ends = memory.upload(std::vector<std::int32_t>{130, 130});
  p.logits = static_cast<float*>(
      memory.device().allocate_sparse((kStride + 256) * sizeof(float), "logits"));
  p.rows = 2;
  p.keys = 130;
  p.logits_row_stride = kStride;
  p.heads = p.dim = 16;
  p.q_dialect = p.k_dialect = PLUMB_E4M3FN;
  p.stream = memory.stream();
  ASSERT_EQ(device::kernels::fp8_mqa_logits().launch(&p), PLUMB_OK);
  for (const std::int64_t row : {0, 1}) {
    EXPECT_EQ(memory.download(p.logits + row * kStride, 130), std::vector<float>(130, 512.0F))
        << row;
  }
}

// Context lengths around 2048, the border of a stage (the keys that a block keeps at once) of a
// known kernel, which returned noise for later columns.
TEST(MqaLogitsKernels, EveryColumnOfALongContextIsScored) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  for (const std::int64_t length : {2047, 2048, 2049, 4097}) {
    const Row row =
        row_of(op, {{"requests", 1}, {"length", length}, {"heads", 8}, {"dim", 32}, {"page", 1}});
    expect_right(op, device::kernels::fp8_paged_mqa_logits(), row, {.seed = 6, .live = 1});
  }
}

TEST(MqaLogitsKernels, NothingToDoIsNoLaunch) {
  plumb_fp8_mqa_logits_params prefill{};
  prefill.heads = prefill.dim = 16;
  prefill.q_dialect = prefill.k_dialect = PLUMB_E4M3FN;
  EXPECT_EQ(device::kernels::fp8_mqa_logits().launch(&prefill), PLUMB_OK);
  plumb_fp8_paged_mqa_logits_params paged{};
  paged.heads = paged.dim = 16;
  paged.next_n = paged.cache.page = 1;
  paged.context_lens_dims = 1;
  paged.cache.block_stride_bytes = 20;
  paged.q_dialect = paged.cache.dialect = PLUMB_E4M3FN;
  EXPECT_EQ(device::kernels::fp8_paged_mqa_logits().launch(&paged), PLUMB_OK);
}

TEST(MqaLogitsKernels, ImpossibleArgumentsAreRefused) {
  const auto refused = [](const device::OpEntry& entry, const auto& params) {
    return entry.launch(&params) == PLUMB_INVALID_ARGUMENT;
  };
  const device::OpEntry prefill = device::kernels::fp8_mqa_logits();
  EXPECT_EQ(prefill.launch(nullptr), PLUMB_INVALID_ARGUMENT);
  plumb_fp8_mqa_logits_params p{};
  p.heads = p.dim = 16;
  p.rows = p.keys = p.logits_row_stride = 1;
  p.q_dialect = PLUMB_E4M3FN;
  EXPECT_TRUE(refused(prefill, p)) << "keys of no dialect";
  p.k_dialect = PLUMB_E4M3FN;
  EXPECT_TRUE(refused(prefill, p)) << "null pointers";
  p.max_seqlen_k = 1;
  p.clean_logits = 1;
  EXPECT_TRUE(refused(prefill, p)) << "row-local and clean";

  const device::OpEntry paged = device::kernels::fp8_paged_mqa_logits();
  EXPECT_EQ(paged.launch(nullptr), PLUMB_INVALID_ARGUMENT);
  plumb_fp8_paged_mqa_logits_params d{};
  d.heads = d.dim = 16;
  d.next_n = 1;
  d.context_lens_dims = 2;
  d.q_dialect = d.cache.dialect = PLUMB_E4M3FN;
  d.cache.page = 8;
  d.cache.block_stride_bytes = 8 * 20;
  d.clean_logits = 1;
  EXPECT_TRUE(refused(paged, d)) << "2-D lengths and clean";
  d.clean_logits = 0;
  d.shuffled = 1;
  EXPECT_TRUE(refused(paged, d)) << "a page that cannot be shuffled";
  d.shuffled = 0;
  d.cache.block_stride_bytes = 8 * 20 - 4;
  EXPECT_TRUE(refused(paged, d)) << "blocks that overlap";
}

}  // namespace mqa_logits_kernel_test
}  // namespace plumb::cases
