// SPDX-License-Identifier: Apache-2.0
//
// Tests values of the sparse MLA reference: results that can be checked by hand, identities, edge
// cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "reference/sparse_mla/mla_combine.h"
#include "reference/sparse_mla/mla_partials.h"
#include "reference/sparse_mla/sparse_mla_decode.h"
#include "tests/support/mla_test_problem.h"

namespace plumb::tests {
namespace sparse_mla_reference_test {

using reference::Dialect;
using reference::Estimate;
using reference::kMlaDim;
using reference::MlaWant;
using reference::Numerics;
using reference::SparseMlaDecode;
using reference::SparseMlaProblem;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double random_value(std::int64_t t, std::int64_t d) { return normal(1, t * kMlaDim + d); }
double random_query(std::int64_t i) { return normal(2, i); }

SparseMlaDecode value_of(const SparseMlaProblem& problem) {
  return reference::sparse_mla_decode(problem, Numerics{}, MlaWant::value);
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_LE(std::abs(a[i] - b[i]), tolerance) << i;
}

// Two keys, 1 and 3 in the first dimension, query 2, scale 1/4: the scores are 0.5 and 1.5.
TEST(SparseMlaReference, TwoKeysByHand) {
  const auto value = [](std::int64_t t, std::int64_t d) {
    return d == 0 ? (t == 0 ? 1.0 : 3.0) : 0.0;
  };
  TestProblem test(1, 1, 2, value, [](std::int64_t i) { return i == 0 ? 2.0 : 0.0; });
  test.problem.sm_scale = 0.25f;
  const SparseMlaDecode result = value_of(test.problem);
  const double p = 1 / (1 + std::exp(-1.0));  // weight of the second key
  EXPECT_NEAR(result.lse.value[0], 1.5 + std::log1p(std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(result.out.value[0], 1 - p + 3 * p, 1e-15);
  EXPECT_EQ(result.out.value[1], 0);
}

TEST(SparseMlaReference, ValuesOfOneGiveOne) {
  TestProblem test(2, 3, 100, [](std::int64_t, std::int64_t) { return 1; }, random_query);
  for (const double value : value_of(test.problem).out.value) EXPECT_NEAR(value, 1, 1e-14);
}

TEST(SparseMlaReference, AZeroQueryGivesTheMean) {
  TestProblem test(1, 1, 64, random_value, [](std::int64_t) { return 0; });
  const SparseMlaDecode result = value_of(test.problem);
  std::vector<double> mean(kMlaDim, 0), token(kMlaDim);
  for (std::int64_t slot = 0; slot < 64; ++slot) {
    reference::decode_token(test.problem.main_cache, slot, token.data());
    for (std::int64_t d = 0; d < kMlaDim; ++d) mean[d] += token[d] / 64;
  }
  EXPECT_EQ(result.out.value, mean);  // sums of short numbers are exact in any order
  EXPECT_NEAR(result.lse.value[0], std::log(64.0), 1e-15);
}

TEST(SparseMlaReference, PowersOfTwoOfTheScoresAndValuesScaleExactly) {
  TestProblem one(1, 2, 90, random_value, random_query);
  TestProblem two(
      1, 2, 90, [](std::int64_t t, std::int64_t d) { return 8 * random_value(t, d); },
      [](std::int64_t i) { return random_query(i) / 8; });
  const SparseMlaDecode a = value_of(one.problem), b = value_of(two.problem);
  for (std::size_t i = 0; i < a.out.value.size(); ++i) {
    ASSERT_EQ(8 * a.out.value[i], b.out.value[i]) << i;
  }
  EXPECT_EQ(a.lse.value, b.lse.value);
}

TEST(SparseMlaReference, PhysicalPlacesOfPagesChangeNoBit) {
  TestProblem test(2, 3, 150, random_value, random_query);
  const SparseMlaDecode before = value_of(test.problem);
  TestCache moved(40, 7);
  for (std::int32_t i = 0; i < 150; ++i) {
    const std::int32_t slot = (i / 7 * 11 + 3) % 40 * 7 + i % 7;
    moved.write(slot, i, random_value);
    test.indices[i] = test.indices[150 + i] = slot;
  }
  test.problem.main_cache = moved.view;
  const SparseMlaDecode after = value_of(test.problem);
  EXPECT_EQ(before.out.value, after.out.value);
  EXPECT_EQ(before.lse.value, after.lse.value);
}

TEST(SparseMlaReference, TheOrderOfCandidatesDoesNotMatter) {
  TestProblem test(1, 4, 130, random_value, random_query);
  const SparseMlaDecode before = value_of(test.problem);
  std::reverse(test.indices.begin(), test.indices.end());
  std::swap(test.indices[17], test.indices[80]);
  const SparseMlaDecode after = value_of(test.problem);
  expect_near(before.out.value, after.out.value, 1e-12);
  expect_near(before.lse.value, after.lse.value, 1e-12);
}

TEST(SparseMlaReference, ADuplicateCountsTwice) {
  TestProblem test(1, 1, 3, random_value, random_query);
  test.indices = {0, 1, 1};
  const SparseMlaDecode twice = value_of(test.problem);
  test.indices = {0, 1, -1};
  const SparseMlaDecode once = value_of(test.problem);
  std::vector<double> first(kMlaDim), second(kMlaDim);
  reference::decode_token(test.problem.main_cache, 0, first.data());
  reference::decode_token(test.problem.main_cache, 1, second.data());
  // out = (1 - p) first + p second. A duplicate of the second key doubles its odds p / (1 - p).
  const std::int64_t d = 5;
  const double p = (once.out.value[d] - first[d]) / (second[d] - first[d]);
  const double doubled = 2 * p / (1 + p);
  EXPECT_NEAR(twice.out.value[d], (1 - doubled) * first[d] + doubled * second[d], 1e-12);
  EXPECT_NEAR(twice.lse.value[0], once.lse.value[0] + std::log1p(p), 1e-12);
}

TEST(SparseMlaReference, RowsWithoutCandidatesAreZeroWithInfiniteLse) {
  for (const float sink : {0.0f, kInfinity, -kInfinity}) {
    TestProblem test(2, 2, 4, random_value, random_query);
    std::fill(test.indices.begin(), test.indices.begin() + 4, -1);
    const std::vector<std::int32_t> lengths{4, 0};
    const std::vector<float> sinks(2, sink);
    test.problem.main.lengths = lengths.data();
    test.problem.attn_sink = sinks.data();
    const SparseMlaDecode result = reference::sparse_mla_decode(test.problem, Numerics{});
    for (const double value : result.out.value) EXPECT_EQ(value, 0);
    for (const double value : result.lse.value) EXPECT_EQ(value, kInfinity);
    for (std::int64_t i = 0; i < 4 * kMlaDim; ++i) EXPECT_LE(result.out.bound(i), 0x1p-126);
  }
}

TEST(SparseMlaReference, SinksTakeTheirShareAndLeaveLseAlone) {
  TestProblem test(1, 4, 70, random_value, random_query);
  const SparseMlaDecode without = value_of(test.problem);
  const auto lse = static_cast<float>(without.lse.value[0]);
  const std::vector<float> sinks{lse, kInfinity, -kInfinity, 1e30f};
  test.problem.attn_sink = sinks.data();
  const SparseMlaDecode result = reference::sparse_mla_decode(test.problem, Numerics{});
  EXPECT_EQ(result.lse.value, without.lse.value);
  for (std::int64_t d = 0; d < kMlaDim; ++d) {
    EXPECT_NEAR(result.out.value[d], without.out.value[d] / 2, 1e-6);  // the sink is equal to lse
    EXPECT_EQ(result.out.value[kMlaDim + d], 0);
    EXPECT_LE(result.out.bound(kMlaDim + d), 0x1p-126);
    EXPECT_EQ(result.out.value[2 * kMlaDim + d], without.out.value[2 * kMlaDim + d]);
    EXPECT_EQ(result.out.value[3 * kMlaDim + d], 0);
  }
}

// All unused slots hold NaN bytes (TestCache). Slots past the end are skipped like -1.
TEST(SparseMlaReference, HolesAndWhatLiesBeyondLengthsNeverReachTheResult) {
  TestProblem test(2, 2, 40, random_value, random_query);
  const SparseMlaDecode full = value_of(test.problem);
  TestCache cache(2, 64);
  for (std::int64_t slot = 0; slot < 40; ++slot) cache.write(slot, slot, random_value);
  std::vector<std::int32_t> indices;
  for (std::int32_t row = 0; row < 2; ++row) {
    for (std::int32_t i = 0; i < 40; ++i) {
      indices.insert(indices.end(), {i, i % 2 == 0 ? -1 : 128});
    }
    for (std::int32_t i = 0; i < 20; ++i) indices.push_back(100);  // NaN, past the length
  }
  const std::vector<std::int32_t> lengths{80, 80};
  test.problem.main = {indices.data(), lengths.data(), nullptr, 100, 100, 100};
  test.problem.main_cache = cache.view;
  const SparseMlaDecode holes = value_of(test.problem);
  EXPECT_EQ(full.out.value, holes.out.value);
  EXPECT_EQ(full.lse.value, holes.lse.value);
}

TEST(SparseMlaReference, RaggedRowsEqualDenseRows) {
  TestProblem test(3, 2, 50, random_value, random_query);
  const std::vector<std::int32_t> lengths{7, 0, 50};
  test.problem.main.lengths = lengths.data();
  const SparseMlaDecode dense = value_of(test.problem);
  const std::vector<std::int32_t> indptr{0, 7, 7, 57};
  std::vector<std::int32_t> flat(57);
  std::iota(flat.begin(), flat.begin() + 7, 0);
  std::iota(flat.begin() + 7, flat.end(), 0);
  test.problem.main = {flat.data(), nullptr, indptr.data(), 0, 0, 50};
  const SparseMlaDecode ragged = value_of(test.problem);
  EXPECT_EQ(dense.out.value, ragged.out.value);
  EXPECT_EQ(dense.lse.value, ragged.lse.value);
}

// The extra cache has its own pages, slot numbers and dialect. Both dialects hold its values
// exactly.
TEST(SparseMlaReference, ExtraCandidatesComeFromTheirOwnCache) {
  const auto value = [](std::int64_t t, std::int64_t d) {
    return std::round(4 * random_value(t, d)) / 4;
  };
  TestProblem test(1, 2, 100, value, random_query);
  const SparseMlaDecode together = value_of(test.problem);
  TestCache extra(40, 2, Dialect::e4m3fnuz);
  std::vector<std::int32_t> slots;
  for (std::int32_t i = 60; i < 100; ++i) {
    slots.push_back(139 - i);
    extra.write(slots.back(), i, value);
  }
  test.problem.main.width = 60;
  test.problem.extra_cache = extra.view;
  test.problem.extra = {slots.data(), nullptr, nullptr, 40, 40, 40};
  const SparseMlaDecode apart = value_of(test.problem);
  EXPECT_EQ(together.out.value, apart.out.value);

  test.problem.extra_cache.dialect = Dialect::e4m3fn;
  EXPECT_NE(together.out.value, value_of(test.problem).out.value);

  test.problem.extra_cache.dialect = Dialect::e4m3fnuz;
  const std::vector<std::int32_t> none{0};
  test.problem.main.lengths = none.data();
  const SparseMlaDecode only_extra = value_of(test.problem);
  TestProblem alone(
      1, 2, 40, [&](std::int64_t t, std::int64_t d) { return value(60 + t, d); }, random_query);
  EXPECT_EQ(only_extra.out.value, value_of(alone.problem).out.value);
}

TEST(SparseMlaReference, StridedQueriesAndThreadsChangeNoBit) {
  TestProblem test(6, 2, 80, random_value, random_query);
  const SparseMlaDecode before = reference::sparse_mla_decode(test.problem, Numerics{});
  // The same rows as 2 requests of 3 queries, with gaps of NaN between heads.
  std::vector<std::uint16_t> q(6 * 2 * 600, 0x7fff);
  for (std::int64_t row = 0; row < 12; ++row) {
    std::copy_n(test.q.begin() + row * kMlaDim, kMlaDim, q.begin() + row * 600);
  }
  test.problem.q = q.data();
  test.problem.requests = 2;
  test.problem.queries = 3;
  test.problem.q_head_stride = 600;
  test.problem.q_query_stride = 1200;
  test.problem.q_request_stride = 3600;
  test.problem.main.query_stride = 80;
  test.problem.main.request_stride = 240;
  reference::set_thread_count(3);
  const SparseMlaDecode after = reference::sparse_mla_decode(test.problem, Numerics{});
  reference::set_thread_count(0);
  EXPECT_EQ(before.out.value, after.out.value);
  EXPECT_EQ(before.out.sigma, after.out.sigma);
  // lse is [requests, heads, queries].
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t head = 0; head < 2; ++head) {
      EXPECT_EQ(before.lse.value[row * 2 + head],
                after.lse.value[(row / 3 * 2 + head) * 3 + row % 3]);
    }
  }
}

// Partial results, rounded as a device stores them, are combined.
TEST(SparseMlaReference, SplitsJoinToTheUnsplitResult) {
  for (const std::int32_t parts : {1, 2, 3, 5, 9, 40}) {
    TestProblem test(3, 2, 300, random_value, random_query);
    TestCache extra(10, 16);
    std::vector<std::int32_t> slots(3 * 100);
    for (std::int32_t i = 0; i < 300; ++i) slots[i] = i % 7 == 0 ? -1 : (i * 37) % 160;
    for (std::int64_t slot = 0; slot < 160; ++slot) extra.write(slot, 1000 + slot, random_value);
    const std::vector<std::int32_t> lengths{300, 0, 130}, extra_lengths{33, 0, 100};
    const std::vector<float> sinks{0.5f, -2};
    test.problem.main.lengths = lengths.data();
    test.problem.extra_cache = extra.view;
    test.problem.extra = {slots.data(), extra_lengths.data(), nullptr, 100, 100, 100};
    test.problem.attn_sink = sinks.data();
    const SparseMlaDecode whole = reference::sparse_mla_decode(test.problem, Numerics{});

    const auto blocks = reference::blocks_of_requests(test.problem, 16);
    const auto plan = reference::make_tile_plan(blocks, parts, 1);
    const auto partials = reference::sparse_mla_partials(test.problem, Numerics{}, plan, 16);
    std::vector<float> out(partials.out.value.begin(), partials.out.value.end());
    std::vector<float> lse(partials.lse.value.begin(), partials.lse.value.end());
    for (std::size_t row = 0; row < lse.size(); ++row) {  // unwritten results must not be read
      if (partials.lse_written[row / 2]) continue;
      lse[row] = NAN;
      std::fill_n(out.begin() + row * kMlaDim, kMlaDim, NAN);
    }
    SparseMlaDecode joined = whole;
    reference::mla_combine(test.problem, Numerics{}, plan.num_splits, out.data(), lse.data(),
                           joined);
    expect_near(whole.out.value, joined.out.value, 1e-6);
    for (std::size_t i = 0; i < whole.lse.value.size(); ++i) {
      if (std::isinf(whole.lse.value[i])) {
        EXPECT_EQ(joined.lse.value[i], whole.lse.value[i]);
      } else {
        EXPECT_NEAR(joined.lse.value[i], whole.lse.value[i], 1e-5);
      }
    }
  }
}

TEST(SparseMlaReference, EmptySplitsAreZeroWithNegativeInfinity) {
  TestProblem test(1, 1, 64, random_value, random_query);
  std::fill(test.indices.begin() + 32, test.indices.end(), -1);
  const std::vector<reference::RequestBlocks> blocks{{2, 0}};
  const auto plan = reference::make_tile_plan(blocks, 2, 0);
  const auto partials = reference::sparse_mla_partials(test.problem, Numerics{}, plan, 32);
  EXPECT_EQ(partials.lse.value[1], -kInfinity);
  for (std::int64_t d = 0; d < kMlaDim; ++d) EXPECT_EQ(partials.out.value[kMlaDim + d], 0);
  EXPECT_EQ(partials.lse_written, (std::vector<bool>{true, true, false}));
}

TEST(SparseMlaReference, CombiningSplitsByHand) {
  TestProblem test(1, 1, 128, random_value, random_query);
  const std::vector<float> lse{3, 3, 4};  // base 2, so the weights are 1/4, 1/4, 1/2
  std::vector<float> out(3 * kMlaDim, 1);
  std::fill_n(out.begin() + 2 * kMlaDim, kMlaDim, 3.0f);
  const std::vector<std::int32_t> num_splits{0, 3};
  SparseMlaDecode result = value_of(test.problem);
  reference::mla_combine(test.problem, Numerics{}, num_splits, out.data(), lse.data(), result);
  EXPECT_NEAR(result.out.value[0], 2, 1e-14);
  EXPECT_NEAR(result.lse.value[0], 5 * std::log(2), 1e-14);
  const float sink = static_cast<float>(5 * std::log(2));
  test.problem.attn_sink = &sink;
  reference::mla_combine(test.problem, Numerics{}, num_splits, out.data(), lse.data(), result);
  EXPECT_NEAR(result.out.value[0], 1, 1e-6);
  EXPECT_NEAR(result.lse.value[0], 5 * std::log(2), 1e-14);
}

// In V3.2 the 64 RoPE dimensions are part of the key and not of the value. The two keys score
// differently in RoPE only: 0 and 1 in its first dimension, query 2 there, scale 1/4.
TEST(SparseMlaReference, RopeOfV32ScoresAndIsNoValue) {
  const auto value = [](std::int64_t t, std::int64_t d) {
    if (d == 512) return static_cast<double>(t);
    return d == 511 && t == 1 ? 3.0 : 0.0;
  };
  TestProblem test(
      1, 1, 2, value, [](std::int64_t i) { return i == 512 ? 2.0 : 0.0; },
      reference::KvLayout::v32);
  test.problem.sm_scale = 0.25f;
  const SparseMlaDecode result = value_of(test.problem);
  const double p = 1 / (1 + std::exp(-0.5));
  EXPECT_EQ(result.out.columns, 512);
  EXPECT_NEAR(result.lse.value[0], 0.5 + std::log1p(std::exp(-0.5)), 1e-15);
  EXPECT_NEAR(result.out.value[511], 3 * p, 1e-14);
  for (std::int64_t d = 0; d < 511; ++d) EXPECT_EQ(result.out.value[d], 0);
}

// Small integers are exact in both layouts, so without RoPE V3.2 is the same attention as V4.
TEST(SparseMlaReference, V32WithoutRopeIsV4) {
  const auto value = [](std::int64_t t, std::int64_t d) {
    return d < kMlaDim ? std::round(random_value(t, d)) : 0;
  };
  TestProblem v4(1, 1, 100, value, random_query);
  TestProblem v32(1, 1, 100, value, random_query, reference::KvLayout::v32);
  TestCache cache(2, 64, Dialect::e4m3fn, reference::KvLayout::v32);
  cache.writing = reference::ScaleWriting::power_of_two;
  for (std::int64_t slot = 0; slot < 100; ++slot) cache.write(slot, slot, value);
  v32.problem.main_cache = cache.view;
  v32.problem.sm_scale = v4.problem.sm_scale;
  const SparseMlaDecode a = value_of(v4.problem), b = value_of(v32.problem);
  expect_near(a.out.value, b.out.value, 1e-12);
  expect_near(a.lse.value, b.lse.value, 1e-12);
}

// A dead row may hold anything. It must not cause a crash or change other rows.
TEST(SparseMlaReference, NotANumberStaysInItsRow) {
  TestProblem test(3, 2, 70, random_value, random_query);
  const SparseMlaDecode before = reference::sparse_mla_decode(test.problem, Numerics{});
  std::fill_n(test.q.begin() + 2 * kMlaDim, 2 * kMlaDim, std::uint16_t{0x7fc0});
  const SparseMlaDecode after = reference::sparse_mla_decode(test.problem, Numerics{});
  EXPECT_TRUE(std::isnan(after.out.value[2 * kMlaDim]));
  for (const std::int64_t row : {0, 1, 4, 5}) {
    for (std::int64_t i = row * kMlaDim; i < (row + 1) * kMlaDim; ++i) {
      ASSERT_EQ(before.out.value[i], after.out.value[i]);
      ASSERT_EQ(before.out.bound(i), after.out.bound(i));
    }
  }
}

}  // namespace sparse_mla_reference_test
}  // namespace plumb::tests
