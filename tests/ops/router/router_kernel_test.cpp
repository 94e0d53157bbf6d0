// SPDX-License-Identifier: Apache-2.0
//
// Tests what no case of the router kernels tests: what their launchers refuse, and shapes at the
// limits of what is legal.
#include <gtest/gtest.h>
#include <plumb/ops/router.h>

#include <map>

#include "tests/support/op_session.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {

OpDefinition define_grouped_topk();
OpDefinition define_sqrt_softplus_topk();
OpDefinition define_hash_routing();

}  // namespace plumb::cases

namespace plumb::device::kernels {

device::OpEntry grouped_topk();
device::OpEntry sqrt_softplus_topk();
device::OpEntry hash_routing();

}  // namespace plumb::device::kernels

namespace plumb::cases {
namespace router_kernel_test {

namespace kernels = device::kernels;

void expect_right(const OpDefinition& op, const device::OpEntry& entry, const Integers& integers) {
  const Row row = row_of(op, integers);
  for (const std::string platform : {"sim-sm90", "sim-gfx942"}) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      const Step step{.seed = 7, .live = row.integer("tokens"), .fill = fill};
      OpSession session(op, row, step, platform);
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      for (const TensorReport& report : session.judge(step, entry)) {
        EXPECT_TRUE(report.passed())
            << platform << ", " << name_of(fill) << " fill: " << report.failures.front();
      }
    }
  }
}

TEST(GroupedTopKKernel, IsRightAtTheLimits) {
  const auto op = define_grouped_topk();
  expect_right(
      op, kernels::grouped_topk(),
      {{"tokens", 1}, {"experts", 1024}, {"n_group", 32}, {"topk_group", 32}, {"topk", 32}});
  expect_right(op, kernels::grouped_topk(),
               {{"tokens", 3}, {"experts", 2}, {"n_group", 1}, {"topk_group", 1}, {"topk", 2}});
}

TEST(SqrtSoftplusTopKKernel, IsRightAtTheLimits) {
  const auto op = define_sqrt_softplus_topk();
  expect_right(op, kernels::sqrt_softplus_topk(), {{"tokens", 1}, {"experts", 1024}, {"topk", 32}});
  expect_right(op, kernels::sqrt_softplus_topk(), {{"tokens", 2}, {"experts", 33}, {"topk", 32}});
}

TEST(HashRoutingKernel, IsRightAtTheLimits) {
  const auto op = define_hash_routing();
  expect_right(op, kernels::hash_routing(), {{"tokens", 5}, {"experts", 32}, {"topk", 32}});
}

TEST(GroupedTopKKernel, RefusesGroupsThatDoNotFit) {
  float number = 0;
  std::int32_t id = 0;
  plumb_grouped_topk_params p{};
  p.logits = p.bias = &number;
  p.weights = &number;
  p.ids = &id;
  p.experts = 256;
  p.logits_row_stride = 256;
  p.n_group = 8;
  p.topk_group = 4;
  p.topk = p.weights_row_stride = p.ids_row_stride = 8;
  p.logits_format = PLUMB_F32;
  const auto launch = kernels::grouped_topk().launch;
  EXPECT_EQ(launch(&p), PLUMB_OK) << "no tokens, nothing launched";
  const auto refused = [&](auto change) {
    plumb_grouped_topk_params other = p;
    change(other);
    return launch(&other) == PLUMB_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refused([](auto& q) { q.weights_row_stride = 7; }));
  EXPECT_TRUE(refused([](auto& q) { q.ids_row_stride = 7; }));
  EXPECT_TRUE(refused([](auto& q) { q.n_group = 7; }));
  EXPECT_TRUE(refused([](auto& q) { q.n_group = 64; }));
  EXPECT_TRUE(refused([](auto& q) { q.n_group = 256; }));
  EXPECT_TRUE(refused([](auto& q) { q.topk_group = 9; }));
  EXPECT_TRUE(refused([](auto& q) { q.topk = 33; }));
  EXPECT_TRUE(refused([](auto& q) { q.n_group = 32, q.topk_group = 1, q.topk = 9; }));
  EXPECT_TRUE(refused([](auto& q) { q.logits_row_stride = 255; }));
  EXPECT_TRUE(refused([](auto& q) { q.logits_format = PLUMB_E4M3FN; }));
  EXPECT_TRUE(refused([](auto& q) { q.tokens = 1, q.bias = nullptr; }));
}

}  // namespace router_kernel_test
}  // namespace plumb::cases
