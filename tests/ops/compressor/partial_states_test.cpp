// SPDX-License-Identifier: Apache-2.0
//
// Tests save_partial_states: its reference against results computed by hand, and what its launcher
// refuses.
#include <gtest/gtest.h>
#include <plumb/ops/compressor.h>

#include <cmath>
#include <vector>

#include "device/op_entry.h"
#include "reference/compressor/save_partial_states.h"

namespace plumb::device::kernels {
device::OpEntry save_partial_states();
}

namespace plumb::reference {
namespace partial_states_test {

using Floats = std::vector<float>;

// With groups of 4, position 5 adds row 5 % 4 = 1 of ape.
TEST(PartialStates, AddTheRowOfApeOfTheirPosition) {
  const Floats kv = {1, 2, 99, 3, 4, 99}, score = {10, 20, 30, 40}, ape = {5, 6, 7, 8, 0, 0, 0, 0};
  const std::vector<std::int64_t> positions = {4, 5};
  PartialStates input{kv.data(), score.data(), ape.data(), positions.data(), 2, 4, 3, 2};
  EXPECT_EQ(partial_state(input, 0), (Floats{1, 2, 15, 26}));
  EXPECT_EQ(partial_state(input, 1), (Floats{3, 4, 37, 48}));
  input.ape = nullptr;
  EXPECT_EQ(partial_state(input, 1), (Floats{3, 4, 30, 40}));
}

// 2^24 + 1.5 is between two fp32 numbers, nearer to the upper one, 2^24 + 2.
TEST(PartialStates, RoundTheirSumOnce) {
  const Floats kv = {0}, score = {0x1p24F}, ape = {1.5F};
  const std::int64_t position = 0;
  EXPECT_EQ(partial_state({kv.data(), score.data(), ape.data(), &position, 1, 1, 1, 1}, 0)[1],
            0x1p24F + 2);
}

TEST(PartialStates, KeepNaNAndTheSignOfZeroOfKv) {
  const Floats kv = {NAN, -0.0F}, score = {1, 1};
  const std::int64_t position = 0;
  const Floats state = partial_state({kv.data(), score.data(), nullptr, &position, 2, 1, 2, 2}, 0);
  EXPECT_TRUE(std::isnan(state[0]));
  EXPECT_TRUE(std::signbit(state[1]));
}

TEST(PartialStates, LieInTheirRowOfTheBlock) {
  EXPECT_EQ(state_entry(100, 3, 2).copied, (std::vector<std::int64_t>{300, 301}));
}

TEST(PartialStates, ImpossibleArgumentsAreRefused) {
  using P = plumb_save_partial_states_params;
  const auto status = [](auto spoil) {
    P params{};
    params.width = params.ratio = params.states.rows = 1;
    params.kv_row_stride = params.score_row_stride = 1;
    params.states.row_stride_bytes = params.states.block_stride_bytes = 8;
    spoil(params);
    return device::kernels::save_partial_states().launch(&params);
  };
  EXPECT_EQ(status([](P&) {}), PLUMB_OK);
  EXPECT_EQ(status([](P& p) { p.tokens = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.ratio = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.kv_row_stride = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.states.row_stride_bytes = 4; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.states.block_stride_bytes = 6; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::save_partial_states().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace partial_states_test
}  // namespace plumb::reference
