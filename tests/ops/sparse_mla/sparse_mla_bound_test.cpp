// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds of the sparse MLA reference: correct fp32 kernels stay within them for every
// order, block size, number of splits and format of p; the bounds are not much wider than the
// errors; and faults exceed them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/sparse_mla/mla_combine.h"
#include "reference/sparse_mla/mla_partials.h"
#include "reference/sparse_mla/sparse_mla_decode.h"
#include "tests/support/honest_mla.h"
#include "tests/support/mla_workload.h"

namespace plumb::tests {
namespace sparse_mla_bound_test {

using reference::kMlaDim;

// Checks a whole decode by kernels with different splits and orders.
void check_decode(const Honest& honest, HonestKernel how, Errors& out, Errors& lse,
                  bool structured = false) {
  auto expected = reference::sparse_mla_decode(honest.test.problem, numerics_of(how));
  expected.out.structured = expected.lse.structured = structured;
  for (std::size_t head = 0; head < honest.queries.size(); ++head) {
    for (const std::int64_t splits : {1, 2, 4}) {
      how.splits = splits;
      how.reversed = splits == 2;
      how.block = splits == 4 ? 16 : 64;
      how.fused_exponent = head % 2 == 1;
      const auto partials =
          attend_split(honest.queries[head].data(), honest.keys, honest.test.problem.sm_scale, how);
      const HonestRow row = splits == 1 ? finish(partials[0], &honest.sinks[head])
                                        : combine(partials, &honest.sinks[head]);
      out.begin_row();
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        out.add(reference::decode_bf16(row.out[d]), expected.out, head * kMlaDim + d);
      }
      lse.begin_row();
      lse.add(row.lse, expected.lse, head);
    }
  }
}

struct Bias {
  double worst = 0;    // largest mean error, in its standard deviations
  double squares = 0;  // sum of the squared mean errors
  int rows = 0;
};

// Checks the partial results that each of two splits stores.
void check_partials(const Honest& honest, const HonestKernel& how, Errors& out, Errors& lse,
                    Bias& bias) {
  const auto blocks = reference::blocks_of_requests(honest.test.problem, 64);
  const auto plan = reference::make_tile_plan(blocks, 2, 0);
  const auto expected =
      reference::sparse_mla_partials(honest.test.problem, numerics_of(how), plan, 64);
  const auto heads = std::ssize(honest.queries);
  for (const reference::PlannedSpan& span : reference::planned_spans(plan, blocks)) {
    const std::int64_t end = std::min<std::int64_t>(64 * span.end_block, std::ssize(honest.keys));
    const std::vector<Vector> keys(honest.keys.begin() + 64 * span.begin_block,
                                   honest.keys.begin() + end);
    for (std::int64_t head = 0; head < heads; ++head) {
      const HonestPartial partial =
          attend(honest.queries[head].data(), keys, honest.test.problem.sm_scale, how);
      const std::int64_t row = span.slot * heads + head;
      out.begin_row();
      double mean = 0;
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        const std::int64_t i = row * kMlaDim + d;
        out.add(partial.out[d], expected.out, i);
        const double error = partial.out[d] - expected.out.value[i];
        mean += std::copysign(1.0, expected.out.value[i]) * error / kMlaDim;
      }
      lse.begin_row();
      lse.add(partial.lse, expected.lse, row);
      const double size = std::abs(mean) - expected.out.row_systematic[row];
      const double deviations = std::max(size, 0.0) / expected.out.row_mean_sigma[row];
      bias.worst = std::max(bias.worst, deviations);
      bias.squares += deviations * deviations;
      ++bias.rows;
    }
  }
}

TEST(SparseMlaBound, HonestKernelsStayWithin) {
  for (int kind = 0; kind <= 5; ++kind) {
    Errors out, lse, partial_out, partial_lse;
    Bias bias;
    std::uint64_t seed = static_cast<std::uint64_t>(kind) * 100;
    for (const double scale : {1e-3, 0.1, 1.0, 3.0, 10.0, 100.0}) {
      for (const bool bf16 : {true, false}) {
        HonestKernel how;
        how.bf16_probability = bf16;
        how.chains = seed % 3 == 0 ? 32 : 1;
        const Honest honest(workload(kind, scale, ++seed));
        check_decode(honest, how, out, lse);
        check_partials(honest, how, partial_out, partial_lse, bias);
      }
    }
    EXPECT_LE(out.worst(), 1) << kind;
    EXPECT_LE(lse.worst(), 1) << kind;
    EXPECT_LE(partial_out.worst(), 1) << kind;
    EXPECT_LE(partial_lse.worst(), 1) << kind;
    EXPECT_LE(bias.worst, 5) << kind;
  }
}

// With a large sink, the factor of the accumulators is subnormal and a device may flush it to 0. If
// the factor is far from subnormal, a zero row is wrong.
TEST(SparseMlaBound, ARowIsFlushedOnlyWhereItsFactorIsSubnormal) {
  TestProblem test(
      1, 2, 3, [](std::int64_t t, std::int64_t d) { return normal(1, t * kMlaDim + d); },
      [](std::int64_t) { return 0; });
  // exp(-sink) is 2^-127 and 2^-115; three keys have a weight of 1 each.
  const std::vector<float> sinks{127 * 0.6931472F, 115 * 0.6931472F};
  test.problem.attn_sink = sinks.data();
  const auto result = reference::sparse_mla_decode(test.problem, reference::Numerics{});
  std::int64_t beyond = 0;
  for (std::int64_t d = 0; d < kMlaDim; ++d) {
    EXPECT_LE(std::abs(result.out.value[d]), result.out.bound(d)) << d;
    beyond += std::abs(result.out.value[kMlaDim + d]) > result.out.bound(kMlaDim + d);
  }
  EXPECT_GT(beyond, kMlaDim * 9 / 10);
}

// Fills with equal keys or values, in which a rounding error repeats for every key.
TEST(SparseMlaBound, StructuredKeysStayWithinTheWorstCase) {
  const std::vector<TokenValue> fills{
      [](std::int64_t, std::int64_t) { return 1; },                              // all ones
      [](std::int64_t, std::int64_t d) { return normal(3, d); },                 // one key for all
      [](std::int64_t t, std::int64_t d) { return normal(t == 0 ? 3 : 4, d); },  // one key differs
      [](std::int64_t t, std::int64_t d) {
        return std::ldexp(1, static_cast<int>((t + d) % 7));
      },  // powers of two
  };
  for (const TokenValue& fill : fills) {
    for (const bool bf16 : {true, false}) {
      for (const double scale : {0.0, 0.01, 0.1, 1.0}) {
        Workload work{.heads = 4, .count = 700, .value = fill, .score_scale = scale, .seed = 11};
        const Honest honest(work);
        Errors out, lse;
        HonestKernel how;
        how.bf16_probability = bf16;
        check_decode(honest, how, out, lse, true);
        EXPECT_LE(out.worst(), 1) << scale;
        EXPECT_LE(lse.worst(), 1) << scale;
      }
    }
  }
}

// A cache of duplicate keys, and one whose keys have nearly equal scores next to one key with a
// larger score. Equal numbers round equally, so their errors add up. `structured` is not set for
// them.
TEST(SparseMlaBound, EqualAndNearlyEqualScoresRoundTogether) {
  const std::vector<TokenValue> fills{
      [](std::int64_t t, std::int64_t d) { return normal(t == 0 ? 3 : 4, d); },
      [](std::int64_t t, std::int64_t d) {
        return t == 0 ? 100 * normal(3, d) : 1 + 0.3 * normal(4, t * kMlaDim + d);
      },
  };
  for (const bool bf16 : {true, false}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const bool duplicates = seed % 2 == 0;
      const Honest honest({.heads = 4,
                           .count = 500,
                           .value = fills[duplicates ? 0 : 1],
                           .score_scale = duplicates ? 1 : 0.002,
                           .seed = seed + 300});
      Errors out, lse, partial_out, partial_lse;
      Bias bias;
      HonestKernel how;
      how.bf16_probability = bf16;
      check_decode(honest, how, out, lse);
      check_partials(honest, how, partial_out, partial_lse, bias);
      EXPECT_LE(out.worst(), 1) << seed;
      EXPECT_LE(lse.worst(), 1) << seed;
      EXPECT_LE(partial_out.worst(), 1) << seed;
      EXPECT_LE(partial_lse.worst(), 1) << seed;
      EXPECT_LE(bias.worst, 5) << seed;
    }
  }
}

void expect_tight_decode(HonestKernel how) {
  Errors out, lse, partial_out, partial_lse;
  Bias bias;
  std::uint64_t seed = 5000;
  for (const double scale : {0.1, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      Workload work = workload(0, scale, ++seed);
      work.heads = 64;
      work.count = 128;
      const Honest honest(work);
      check_decode(honest, how, out, lse);
      check_partials(honest, how, partial_out, partial_lse, bias);
    }
  }
  expect_tight(out, "out");
  expect_tight(lse, "lse");
  expect_tight(partial_out, "partial out");
  expect_tight(partial_lse, "partial lse");
  EXPECT_LE(bias.worst, 5);
  EXPECT_GE(std::sqrt(bias.squares / bias.rows), 0.2);
}

TEST(SparseMlaBound, IsTightForProbabilitiesInBf16) { expect_tight_decode({}); }

TEST(SparseMlaBound, IsTightForProbabilitiesInF32) {
  expect_tight_decode({.bf16_probability = false, .chains = 32});
}

TEST(SparseMlaBound, FaultsLeaveIt) {
  const Workload work = workload(0, 1, 77);
  const Honest honest(work);
  const auto expected = reference::sparse_mla_decode(honest.test.problem, numerics_of({}));
  const auto worst = [&](const std::vector<Vector>& keys, float scale, const float* sink) {
    const auto partials = attend_split(honest.queries[0].data(), keys, scale, {});
    const HonestRow row = finish(partials[0], sink);
    Errors errors;
    errors.begin_row();
    for (std::int64_t d = 0; d < kMlaDim; ++d) {
      errors.add(reference::decode_bf16(row.out[d]), expected.out, d);
    }
    return errors.worst();
  };
  const float scale = honest.test.problem.sm_scale;
  EXPECT_LE(worst(honest.keys, scale, &honest.sinks[0]), 1);
  EXPECT_GT(worst(honest.keys, scale * 1.05f, &honest.sinks[0]), 1);
  EXPECT_GT(worst(honest.keys, scale, &honest.sinks[1]), 1);
  std::vector<Vector> fewer = honest.keys;
  fewer.pop_back();
  EXPECT_GT(worst(fewer, scale, &honest.sinks[0]), 1);
  std::vector<Vector> poisoned = honest.keys;
  poisoned[3][9] = NAN;
  EXPECT_GT(worst(poisoned, scale, &honest.sinks[0]), 1);
}

// Combines stored partial results in fp32, with up to 160 splits, the largest number in use. Every
// fifth split is empty.
TEST(SparseMlaBound, HonestCombinesStayWithin) {
  for (const std::int64_t splits : {2, 3, 17, 160}) {
    Errors out, lse;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      std::vector<float> partial_out(splits * kMlaDim), partial_lse(splits);
      std::vector<HonestPartial> partials(splits);
      for (std::int64_t i = 0; i < splits; ++i) {
        partial_lse[i] =
            static_cast<float>(10 + normal(seed, i) * static_cast<double>(1 + seed % 4));
        if (i % 5 == 4) partial_lse[i] = -INFINITY;
        for (std::int64_t d = 0; d < kMlaDim; ++d) {
          const double value = i % 5 == 4 ? 0 : normal(seed + 50, i * kMlaDim + d);
          partial_out[i * kMlaDim + d] = static_cast<float>(value);
        }
        partials[i].lse = partial_lse[i];
        partials[i].out.assign(partial_out.begin() + i * kMlaDim,
                               partial_out.begin() + (i + 1) * kMlaDim);
      }
      const auto sink = static_cast<float>(10 + 5 * normal(seed + 90, 0));
      reference::SparseMlaProblem problem;
      problem.requests = 1;
      problem.attn_sink = &sink;
      reference::SparseMlaDecode expected;
      expected.out.resize(1, kMlaDim);
      expected.lse.resize(1, 1);
      expected.lse.output = reference::Format::f32;
      const std::vector<std::int32_t> num_splits{0, static_cast<std::int32_t>(splits)};
      reference::mla_combine(problem, numerics_of({}), num_splits, partial_out.data(),
                             partial_lse.data(), expected);
      const HonestRow row = combine(partials, &sink);
      out.begin_row();
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        out.add(reference::decode_bf16(row.out[d]), expected.out, d);
      }
      lse.begin_row();
      lse.add(row.lse, expected.lse, 0);
    }
    EXPECT_LE(out.worst(), 1) << splits;
    EXPECT_LE(lse.worst(), 1) << splits;
    EXPECT_LE(out.median_slack(), 16) << splits;
    EXPECT_LE(lse.median_slack(), 16) << splits;
    EXPECT_GE(lse.row_quantile(), 0.1) << splits;
  }
}

}  // namespace sparse_mla_bound_test
}  // namespace plumb::tests
