// SPDX-License-Identifier: Apache-2.0
//
// Pictures of wrong tensors: contents of their cells, and their size.
#include "tools/run/failure_picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace plumb {
namespace failure_picture_test {

using cases::Dtype;
using cases::HostTensor;

constexpr double kValue = 1.0;

// A tensor of ones (f32), and below an expectation of ones with the bound of an f32 store.
HostTensor ones(std::vector<std::int64_t> shape) {
  HostTensor tensor({.name = "out", .dtype = Dtype::f32, .shape = std::move(shape)});
  for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.data<float>()[i] = kValue;
  return tensor;
}

cases::Expectation expected(const HostTensor& stored, cases::RowMask promised = {}) {
  reference::Estimate estimate;
  estimate.resize(stored.rows(), stored.columns());
  estimate.output = reference::Format::f32;
  estimate.value.assign(estimate.value.size(), kValue);
  estimate.sigma.assign(estimate.value.size(), 1e-3);
  estimate.worst.assign(estimate.value.size(), 1e-2);
  return cases::expect_floats(stored, std::move(estimate), std::move(promised), {});
}

tools::TensorPicture picture(const HostTensor& stored, std::int64_t live = 0,
                             cases::RowMask promised = {}) {
  return tools::picture_of(expected(stored, std::move(promised)), live, stored.spec().shape[0]);
}

std::size_t level_at(const tools::TensorPicture& one, std::size_t y, std::size_t x) {
  return tools::picture_levels().find(one.cells.at(y).at(x));
}

TEST(FailurePicture, MarksTheElementThatIsWrong) {
  HostTensor stored = ones({4, 8});
  stored.data<float>()[2 * 8 + 5] = 2;
  const tools::TensorPicture one = picture(stored, 4);
  ASSERT_EQ(one.cells.size(), 4u);
  EXPECT_EQ(one.cells[0], "00000000");
  EXPECT_GT(level_at(one, 2, 5), 20u);
  ASSERT_EQ(one.worst.size(), 1u);
  EXPECT_EQ(one.worst[0].coordinates, "[2, 5]");
  EXPECT_EQ(one.worst[0].got, 2);
  EXPECT_EQ(one.wrong_values, "1:2");
  EXPECT_EQ(one.right, 31);
  EXPECT_EQ(std::accumulate(one.counts.begin(), one.counts.end(), std::int64_t{0}), 1);
}

TEST(FailurePicture, TheBoundSeparatesLevelsExactly) {
  HostTensor stored = ones({1, 2});
  const cases::Expectation expectation = expected(stored);
  const double bound = expectation.truth->estimate()->bound(0);
  stored.data<float>()[0] = std::nextafter(static_cast<float>(kValue + bound), 0.0F);
  stored.data<float>()[1] = std::nextafter(static_cast<float>(kValue + bound), 2.0F);
  const tools::TensorPicture one = picture(stored);
  EXPECT_EQ(level_at(one, 0, 0), 20u);
  EXPECT_EQ(level_at(one, 0, 1), 21u);
}

TEST(FailurePicture, NaNIsInfiniteAndUnpromisedRowsAreBlank) {
  HostTensor stored = ones({3, 4});
  stored.data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  const tools::TensorPicture one = picture(stored, 3, {true, true, false});
  EXPECT_EQ(level_at(one, 0, 1), tools::picture_levels().size() - 1);
  EXPECT_EQ(one.cells[2], "....");
  EXPECT_EQ(one.infinite, 1);
  EXPECT_EQ(one.unpromised, 4);
}

TEST(FailurePicture, KnowsPaddedRowsAndGroups) {
  const tools::TensorPicture one = picture(ones({6, 16, 8}), 4);
  EXPECT_EQ(one.rows, 96);
  EXPECT_EQ(one.group_rows, 16);
  EXPECT_EQ(one.live_rows, 64);
}

// The picture shows a single wrong element of a million, in a few kilobytes.
TEST(FailurePicture, IsSmallAndLosesNoWrongElement) {
  HostTensor stored = ones({1000, 1000});
  stored.data<float>()[777 * 1000 + 333] = -1;
  const tools::TensorPicture one = picture(stored, 1000);
  ASSERT_EQ(one.cells.size(), 64u);
  EXPECT_EQ(one.cells[0].size(), 64u);
  EXPECT_GT(level_at(one, 777 * 64 / 1000, 333 * 64 / 1000), 20u);
  EXPECT_LT(tools::to_json(one).dump().size(), 12'000u);
}

TEST(FailurePicture, IntegersAreRightOrWrong) {
  HostTensor stored(
      {.name = "indices", .dtype = Dtype::i32, .shape = {2, 3}, .role = cases::Role::output});
  for (int i = 0; i < 6; ++i) stored.data<std::int32_t>()[i] = i;
  const cases::Expectation expectation = cases::expect_exact(stored, {0, 1, 2, 3, 9, 5}, {});
  const tools::TensorPicture one = tools::picture_of(expectation, 2, 2);
  EXPECT_TRUE(one.exact);
  EXPECT_EQ(one.cells, (std::vector<std::string>{"000", "0_0"}));
  EXPECT_EQ(one.wrong_values, "9:4");
}

}  // namespace failure_picture_test
}  // namespace plumb
