// SPDX-License-Identifier: Apache-2.0
//
// Which of plumb's own kernels give a row other bits in batches of other sizes, and by how much.
// Checks reports on kernels that do and on kernels that do not.
#include "cases/studies/invariance.h"

#include <gtest/gtest.h>
#include <plumb/ops/norm.h>

#include <algorithm>

#include "cases/tables/case_file.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {

namespace invariance_test {

InvarianceResult measure(std::string_view id, const std::vector<std::int64_t>& sizes,
                         const std::string& platform = "sim-sm90") {
  const Case& which = find_case(id);
  RunOptions options;
  options.platform = platform;
  return measure_invariance(*which.op, which.row, sizes, options);
}

TEST(Invariance, RowsOfANormDoNotDependOnTheBatch) {
  const InvarianceResult result = measure("rms_norm/v4_pro_hidden/eager", {1, 2, 16, 17});
  EXPECT_EQ(result.not_measured, "");
  EXPECT_EQ(result.batch, "tokens");
  EXPECT_EQ(result.sizes.size(), 4u);
  EXPECT_TRUE(result.differs.empty()) << result.differs.front().tensor;
}

// For up to 16 tokens the fused kernel adds in another order.
TEST(Invariance, TheSmallPathOfTheFusedMixingEndsAtSixteenTokens) {
  const InvarianceResult result =
      measure("mhc_fused_post_pre/rows_17/eager", {1, 2, 16, 17, 24}, "sim-gfx942");
  EXPECT_EQ(result.not_measured, "");
  ASSERT_EQ(result.differs.size(), 2u);
  EXPECT_EQ(result.differs[0].size, 17);
  EXPECT_EQ(result.differs[1].size, 24);
  EXPECT_GE(result.differs[0].ulp, 1);
  EXPECT_GE(result.differs[0].elements, 1);
  EXPECT_NE(result.differs[0].alone, result.differs[0].in_batch);
}

// The tile plan splits a request depending on the work of the whole batch.
TEST(Invariance, TheSplitsOfADecodeDependOnTheBatch) {
  const InvarianceResult result = measure("sparse_mla_decode/v4_flash_c4a/eager", {1, 2, 16});
  EXPECT_EQ(result.not_measured, "");
  ASSERT_EQ(result.differs.size(), 1u);
  EXPECT_EQ(result.differs[0].size, 16);
  EXPECT_EQ(result.differs[0].ulp, 1);
}

TEST(Invariance, WhatCannotBeMovedIsNotMeasured) {
  const InvarianceResult ragged =
      measure("build_ragged_indices_from_dense/swa_window/eager", {1, 2});
  EXPECT_NE(ragged.not_measured, "");
  EXPECT_TRUE(ragged.sizes.empty());
}

TEST(Invariance, AKernelThatLooksAtTheBatchIsSeen) {
  static device::OpEntry right;
  right = *device::find_entry(device::builtin_implementation("sim-sm90"), "rms_norm");
  static const device::OpEntry wrong{"rms_norm",
                                     [](const void* params) {
                                       plumb_rms_norm_params p =
                                           *static_cast<const plumb_rms_norm_params*>(params);
                                       if (p.tokens > 2) p.rounding = PLUMB_ROUND_TWICE;
                                       return right.launch(&p);
                                     },
                                     right.numerics};
  static const device::Implementation table{"wrong", {wrong}};
  const Case& which = find_case("rms_norm/v4_pro_hidden/eager");
  RunOptions options;
  options.platform = "sim-sm90";
  options.implementation = [](std::string_view, bool) -> const device::Implementation& {
    return table;
  };
  const InvarianceResult result = measure_invariance(*which.op, which.row, {1, 2, 3}, options);
  ASSERT_EQ(result.differs.size(), 1u) << result.not_measured;
  EXPECT_EQ(result.differs[0].size, 3);
}

}  // namespace invariance_test

}  // namespace plumb::cases
