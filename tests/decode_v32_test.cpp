// SPDX-License-Identifier: Apache-2.0
//
// The decode step of V3.2 on simulated platforms: every op is right on the bytes that it was given,
// a replay gives the bits of the same step run eagerly, the persistent buffers hold what the step
// asks for and nothing else, and the plan is made anew when, and only when, it has to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "cases/decode/paged_buffers.h"
#include "tests/v32_serving.h"

namespace plumb::tests {

namespace {

using cases::Taps;
using cases::wrong_paged_buffers;
using device::decode::Geometry;
using device::decode::GraphMode;
using device::decode::small_v32_geometry;
using Lines = std::vector<std::string>;

class DecodeV32 : public testing::TestWithParam<std::string> {};

void expect_right_ops(const std::string& platform, const Geometry& geometry) {
  V32Serving serving(platform, GraphMode::none, geometry);
  Taps taps(*serving.device, serving.engine.geometry(), serving.ops);
  serving.engine.observe(&taps);
  serving.admit_all();
  for (const Ids& ids : {Ids{1, 2, 3, 4}, Ids{4, 2}, Ids{3}}) {
    serving.engine.step(ids);
    serving.device->synchronize();
    const std::int64_t tokens = serving.engine.plan().tokens;
    EXPECT_EQ(failures(taps, "metadata", tokens), "");
    EXPECT_EQ(failures(taps, "plan", tokens), "");
    EXPECT_EQ(failures(taps, "layers", tokens), "");
    EXPECT_GT(taps.fetch("layers", tokens).size(), 35u);
    EXPECT_EQ(wrong_paged_buffers(serving.engine, *serving.device), Lines{});
  }
}

TEST_P(DecodeV32, EveryOpIsRightOnTheBytesThatItWasGiven) {
  expect_right_ops(GetParam(), small_v32_geometry(4));
}
TEST_P(DecodeV32, EveryOpIsRightWithPagesOfOneToken) {
  expect_right_ops(GetParam(), small_v32_geometry(4, 0, 1));
}
TEST_P(DecodeV32, EveryOpIsRightWithSpeculation) {
  expect_right_ops(GetParam(), small_v32_geometry(4, 2));
}

INSTANTIATE_TEST_SUITE_P(Platforms, DecodeV32,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace

}  // namespace plumb::tests
