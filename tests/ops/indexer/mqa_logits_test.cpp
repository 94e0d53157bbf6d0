// SPDX-License-Identifier: Apache-2.0
//
// Tests the reference of the lightning indexer's logits against results computed by hand.
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "reference/indexer/fp8_mqa_logits.h"
#include "reference/indexer/fp8_paged_mqa_logits.h"

namespace plumb::reference {
namespace mqa_logits_test {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// e4m3fn codes: exponent bias 7, three bits of mantissa.
constexpr std::uint8_t kOne = 0x38, kTwo = 0x40, kMinusOne = 0xb8, kMinusTwo = 0xc0;

// Two heads of 32 dims with +1 and -1 in dim 0, and weights 3 and 5. A key (x, ...) has the logit
// scale * (3 max(0, x) + 5 max(0, -x)).
struct TwoHeads {
  std::vector<std::uint8_t> q, k;
  std::vector<float> scales, weights;
  std::vector<std::int32_t> starts, ends;
  Fp8MqaLogits inputs;

  TwoHeads(std::vector<std::uint8_t> first_codes, std::vector<float> key_scales,
           std::vector<std::int32_t> row_starts, std::vector<std::int32_t> row_ends)
      : scales(std::move(key_scales)), starts(std::move(row_starts)), ends(std::move(row_ends)) {
    const std::size_t rows = starts.size();
    q.assign(rows * 2 * 32, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      q[row * 64] = kOne;
      q[row * 64 + 32] = kMinusOne;
      weights.insert(weights.end(), {3, 5});
    }
    k.assign(first_codes.size() * 32, 0);
    for (std::size_t n = 0; n < first_codes.size(); ++n) k[n * 32] = first_codes[n];
    inputs = {.q = q.data(),
              .k = k.data(),
              .k_scale = scales.data(),
              .weights = weights.data(),
              .starts = starts.data(),
              .ends = ends.data(),
              .rows = static_cast<std::int64_t>(rows),
              .keys = static_cast<std::int64_t>(first_codes.size()),
              .heads = 2,
              .dim = 32,
              .columns = static_cast<std::int64_t>(first_codes.size()) + 1};
  }
  std::vector<double> logits() const { return fp8_mqa_logits(inputs, {}).value; }
};

TEST(MqaLogits, AreWhatTheFormulaSays) {
  // 0x80 is -0 in fn; 0x7e is 448, 0x01 is 2^-9.
  const TwoHeads data({kTwo, kMinusTwo, 0x80, 0x7e, 0x01}, {0.5F, 0.5F, 1, 2, 1}, {0}, {5});
  EXPECT_EQ(data.logits(), (std::vector<double>{3, 5, 0, 2688, 3 * 0x1p-9, 0}));
}

TEST(MqaLogits, OfTheOtherDialectAreHalfAsLargePerOperand) {
  TwoHeads data({kTwo, kMinusTwo}, {1, 1}, {0}, {2});
  data.inputs.k_dialect = Dialect::e4m3fnuz;
  EXPECT_EQ(data.logits(), (std::vector<double>{3, 5, 0}));
  data.inputs.q_dialect = Dialect::e4m3fnuz;
  EXPECT_EQ(data.logits(), (std::vector<double>{1.5, 2.5, 0}));
}

TEST(MqaLogits, KnowTheirWindows) {
  TwoHeads data({kOne, kOne, kOne}, {1, 2, 3}, {1, -4, 2, 3, 7}, {2, 9, 1, 3, 8});
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected = {
      {1, 1}, {0, 3}, {2, 0}, {3, 0}, {3, 0}};
  for (std::int64_t row = 0; row < 5; ++row) {
    const KeyRange range = key_range(data.inputs, row);
    EXPECT_EQ(std::pair(range.first, range.count), expected[row]) << row;
  }
}

TEST(MqaLogits, CleanRowsAreMinusInfinityUpToTheLastKey) {
  TwoHeads data({kOne, kOne, kOne}, {1, 2, 3}, {1, 0}, {2, 0});
  data.inputs.clean = true;
  EXPECT_EQ(data.logits(),
            (std::vector<double>{kMinusInfinity, 6, kMinusInfinity, 0, kMinusInfinity,
                                 kMinusInfinity, kMinusInfinity, 0}));
}

TEST(MqaLogits, RowLocalColumnsCountFromTheClampedStart) {
  TwoHeads data({kOne, kOne, kOne}, {1, 2, 3}, {1, -2}, {3, 2});
  data.inputs.row_local = true;
  EXPECT_EQ(data.logits(), (std::vector<double>{6, 9, 0, 0, 3, 6, 0, 0}));
}

TEST(PagedMqaLogits, LengthsAreOfRowsOrOfRequests) {
  const std::vector<std::int32_t> lengths = {5, 0, 2, -1};
  Fp8PagedMqaLogits inputs;
  inputs.context_lens = lengths.data();
  inputs.next_n = 2;
  const auto all = [&](std::int64_t rows) {
    std::vector<std::int64_t> found;
    for (std::int64_t row = 0; row < rows; ++row) found.push_back(context_length(inputs, row));
    return found;
  };
  inputs.context_lens_dims = 2;
  inputs.context_lens_row_stride = 2;
  EXPECT_EQ(all(4), (std::vector<std::int64_t>{5, 0, 2, 0}));
  inputs.context_lens_dims = 1;
  inputs.context_lens_row_stride = 1;
  EXPECT_EQ(all(8), (std::vector<std::int64_t>{4, 5, 0, 0, 1, 2, 0, 0}));
}

TEST(MqaLogitsBound, AllowsNoErrorToDotProductsThatAreExact) {
  TwoHeads data({kTwo}, {1}, {0}, {1});
  data.inputs.heads = 1;
  EXPECT_EQ(fp8_mqa_logits(data.inputs, {}).worst[0], 0);
  // One head has one term: at most two products round, and no addition.
  data.scales[0] = 0.1F;
  data.weights[0] = 0.7F;
  const Estimate one_head = fp8_mqa_logits(data.inputs, {});
  const double two_roundings = 2 * kUnitF32 * one_head.value[0];
  EXPECT_GE(one_head.worst[0], two_roundings);
  EXPECT_LE(one_head.worst[0], 1.000001 * two_roundings);
}

}  // namespace mqa_logits_test
}  // namespace plumb::reference
