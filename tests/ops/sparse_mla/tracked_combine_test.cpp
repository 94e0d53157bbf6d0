// SPDX-License-Identifier: Apache-2.0
//
// Tests the combine of a sparse MLA decode's splits: fp32 results of 1000 seeds in three orders,
// before the store in bf16, stay within the bounds, which follow from tracked arrays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/sparse_mla/mla_combine.h"
#include "tests/support/honest_mla.h"

namespace plumb::tests {
namespace tracked_combine_test {

using reference::Estimate;
using reference::kMlaDim;

// Random partial results, [splits, 512] and [splits]. Some splits have no candidates.
struct StoredSplits {
  std::vector<float> out, lse;
  float sink = 0;

  StoredSplits(std::uint64_t seed, std::int64_t splits) {
    const double spread = std::pow(4, static_cast<double>(seed % 4) - 1);
    for (std::int64_t i = 0; i < splits; ++i) {
      const bool empty = i > 0 && uniform(seed + 7, i) < 0.1;
      lse.push_back(empty ? -INFINITY : static_cast<float>(10 + spread * normal(seed, i)));
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        out.push_back(empty ? 0 : static_cast<float>(normal(seed + 50, i * kMlaDim + d)));
      }
    }
    sink = static_cast<float>(7 + 5 * normal(seed + 90, 0));
  }

  reference::SparseMlaDecode joined() const {
    reference::SparseMlaProblem problem;
    problem.requests = 1;
    problem.attn_sink = &sink;
    reference::SparseMlaDecode result;
    result.out.resize(1, kMlaDim);
    result.lse.resize(1, 1);
    result.lse.output = reference::Format::f32;
    const std::vector<std::int32_t> num_splits{0, static_cast<std::int32_t>(lse.size())};
    reference::mla_combine(problem, {.chains = 32, .function_ulp = 0.5}, num_splits, out.data(),
                           lse.data(), result);
    return result;
  }
};

struct JoinedF32 {
  std::vector<float> out;
  float lse = 0;
};
// Combines the splits in fp32 in this order. `fault`: relative error of all weights.
JoinedF32 join_in_order(const StoredSplits& splits, const std::vector<std::size_t>& order,
                        double fault = 0) {
  constexpr float kLog2E = 1.44269504F;
  const float top = *std::ranges::max_element(splits.lse);
  float sum = 0;
  for (const std::size_t i : order) sum += exp2_f32(splits.lse[i] - top);
  float total = log2_f32(sum) + top;
  JoinedF32 joined{Vector(kMlaDim), total / kLog2E};
  total += log2_f32(1 + exp2_f32(splits.sink * kLog2E - total));
  for (const std::size_t i : order) {
    const auto weight = static_cast<float>(exp2_f32(splits.lse[i] - total) * (1 + fault));
    for (std::size_t d = 0; d < kMlaDim; ++d) joined.out[d] += weight * splits.out[i * kMlaDim + d];
  }
  return joined;
}

// Three orders: ascending, descending, and even splits before odd ones.
std::vector<std::vector<std::size_t>> orders_of(std::size_t splits) {
  std::vector<std::size_t> rising(splits);
  for (std::size_t i = 0; i < splits; ++i) rising[i] = i;
  std::vector<std::size_t> falling(rising.rbegin(), rising.rend()), odd_last;
  for (std::size_t i = 0; i < splits; i += 2) odd_last.push_back(i);
  for (std::size_t i = 1; i < splits; i += 2) odd_last.push_back(i);
  return {rising, falling, odd_last};
}

// Number of elements outside their bounds: of `out` before it is rounded to bf16, and of lse.
std::int64_t count_beyond(int seeds, double fault) {
  std::int64_t beyond = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const std::int64_t count = seed % 16 == 15 ? 160 : 2 + seed % 16;
    const StoredSplits splits(static_cast<std::uint64_t>(seed), count);
    const reference::SparseMlaDecode expected = splits.joined();
    for (const auto& order : orders_of(splits.lse.size())) {
      const JoinedF32 got = join_in_order(splits, order, fault);
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        const double error = got.out[static_cast<std::size_t>(d)] - expected.out.value[d];
        beyond += !(std::abs(error) <= expected.out.arithmetic(d));
      }
      beyond += !(std::abs(got.lse - expected.lse.value[0]) <= expected.lse.bound(0));
    }
  }
  return beyond;
}

TEST(TrackedCombine, NoResultOfManySeedsExceedsItsBound) { EXPECT_EQ(count_beyond(1000, 0), 0); }
TEST(TrackedCombine, ASmallErrorExceedsItsBound) {
  EXPECT_GT(count_beyond(10, 0x1p-17), 10 * 3 * kMlaDim / 2);
}

TEST(TrackedCombine, ALargeSinkAndEmptySplitsLeaveExactZeros) {
  StoredSplits splits(1, 3);
  splits.sink = INFINITY;
  const Estimate beside_sink = splits.joined().out;
  std::ranges::fill(splits.lse, -INFINITY);
  std::ranges::fill(splits.out, NAN);  // the contents of an empty split are unspecified
  const reference::SparseMlaDecode lonely = splits.joined();
  for (std::int64_t d = 0; d < kMlaDim; ++d) {
    for (const Estimate* out : {&beside_sink, &lonely.out}) {
      EXPECT_EQ(out->value[d], 0);
      EXPECT_EQ(out->arithmetic(d), 0);
    }
  }
  EXPECT_EQ(lonely.lse.value[0], INFINITY);
  EXPECT_EQ(lonely.lse.arithmetic(0), 0);
}

}  // namespace tracked_combine_test
}  // namespace plumb::tests
