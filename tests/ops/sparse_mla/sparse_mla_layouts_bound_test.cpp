// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds of sparse MLA with keys longer than values (V3.2, prefill over rows of 576), for
// kernels in base 2 and in base e, and the bounds of the largest score.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "reference/sparse_mla/sparse_mla_decode.h"
#include "reference/sparse_mla/sparse_mla_prefill.h"
#include "tests/support/honest_mla.h"
#include "tests/support/mla_workload.h"

namespace plumb::tests {
namespace sparse_mla_layouts_bound_test {

using reference::kMlaDim;
using reference::KvLayout;

struct Tally {
  Errors out, lse, max;

  void add(const HonestRow& row, const reference::SparseMlaPrefill& expected, std::int64_t head) {
    for (Errors* errors : {&out, &lse, &max}) errors->begin_row();
    for (std::int64_t d = 0; d < kMlaDim; ++d) {
      out.add(reference::decode_bf16(row.out[d]), expected.out, head * kMlaDim + d);
    }
    lse.add(row.lse, expected.lse, head);
    max.add(row.max, expected.max_logits, head);
  }
};

// Computes one row with a kernel in base 2 and blocks of 64, forwards and backwards, and with a
// kernel in base e and tiles of 16 or 32.
void check_row(const Honest& honest, HonestKernel how, Tally& tally, bool structured = false) {
  auto expected = reference::sparse_mla_prefill(honest.test.problem, numerics_of(how));
  for (auto* estimate : {&expected.out, &expected.lse, &expected.max_logits}) {
    estimate->structured = structured;
  }
  const float scale = honest.test.problem.sm_scale;
  for (std::int64_t head = 0; head < std::ssize(honest.queries); ++head) {
    const float* q = honest.queries[head].data();
    how.fused_exponent = head % 2 == 1;
    how.reversed = head % 4 >= 2;
    how.block = 64;
    const auto state = attend_split(q, honest.keys, scale, how);
    tally.add(finish(state[0], &honest.sinks[head]), expected, head);
    how.block = head % 2 == 0 ? 16 : 32;
    tally.add(attend_natural(q, honest.keys, scale, &honest.sinks[head], how), expected, head);
  }
}

void expect_within(const Tally& tally, const std::string& what) {
  EXPECT_LE(tally.out.worst(), 1) << what;
  EXPECT_LE(tally.lse.worst(), 1) << what;
  EXPECT_LE(tally.max.worst(), 1) << what;
}

TEST(SparseMlaLongKeysBound, HonestKernelsStayWithin) {
  for (const KvLayout layout : {KvLayout::v4, KvLayout::v32, KvLayout::rows}) {
    for (int kind = 0; kind <= 5; ++kind) {
      Tally tally;
      std::uint64_t seed = 7000 + static_cast<std::uint64_t>(kind) * 100;
      for (const double scale : {1e-3, 0.1, 1.0, 3.0, 10.0, 100.0}) {
        Workload work = workload(kind, scale, ++seed);
        work.layout = layout;
        work.count = 130;
        HonestKernel how;
        how.bf16_probability = seed % 3 != 0;
        how.chains = seed % 2 == 0 ? 32 : 1;
        check_row(Honest(work), how, tally);
      }
      expect_within(tally, "kind " + std::to_string(kind) + " layout " +
                               std::to_string(static_cast<int>(layout)));
    }
  }
}

TEST(SparseMlaLongKeysBound, StructuredKeysStayWithinTheWorstCase) {
  const std::vector<TokenValue> fills{
      [](std::int64_t, std::int64_t) { return 1; },               // all ones
      [](std::int64_t, std::int64_t d) { return normal(3, d); },  // one key for all
      [](std::int64_t t, std::int64_t d) { return std::ldexp(1, static_cast<int>((t + d) % 7)); },
  };
  for (const TokenValue& fill : fills) {
    for (const double scale : {0.0, 0.1, 1.0}) {
      Tally tally;
      check_row(Honest({.count = 300,
                        .value = fill,
                        .score_scale = scale,
                        .seed = 12,
                        .layout = KvLayout::rows}),
                {}, tally, true);
      expect_within(tally, std::to_string(scale));
    }
  }
}

// Products are added in several chains, as in matrix units. With one long chain, the allowance for
// its order would be most of the bound of max_logits.
TEST(SparseMlaLongKeysBound, IsTight) {
  for (const KvLayout layout : {KvLayout::v32, KvLayout::rows}) {
    Tally tally;
    std::uint64_t seed = 8000;
    for (const double scale : {0.1, 0.5, 1.0, 2.0, 4.0, 8.0}) {
      for (int repeat = 0; repeat < 2; ++repeat) {
        Workload work = workload(0, scale, ++seed);
        work.layout = layout;
        work.heads = 64;
        work.count = 128;
        check_row(Honest(work), {.chains = 32}, tally);
      }
    }
    expect_tight(tally.out, "out");
    expect_tight(tally.lse, "lse");
    expect_tight(tally.max, "max logits");
  }
}

// Every key has the same products in another order, so scores differ by their roundings only. The
// largest of them is too large on average, by at most the systematic part of the bound.
TEST(SparseMlaLongKeysBound, TheLargestOfManyNearlyEqualScoresLeansUpwards) {
  constexpr int kSeeds = 40;
  double lean = 0, without_allowance = 0;
  Tally tally;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Workload work;
    work.heads = 1;
    work.count = 256;
    work.layout = KvLayout::rows;
    work.value = [seed](std::int64_t t, std::int64_t d) {
      return d < kMlaDim ? normal(seed, (d * 37 + t * 64 + t) % kMlaDim) : 0;
    };
    work.query = [](std::int64_t) { return 255 / 128.0; };  // all significand bits set
    const Honest honest(work);
    const auto expected = reference::sparse_mla_prefill(honest.test.problem, numerics_of({}));
    const reference::Estimate& max = expected.max_logits;
    const float scale = honest.test.problem.sm_scale;
    const HonestRow row =
        attend_natural(honest.queries[0].data(), honest.keys, scale, &honest.sinks[0], {});
    tally.add(row, expected, 0);
    const double error = row.max - max.value[0];
    without_allowance += error / max.row_mean_sigma[0] / kSeeds;
    lean += (error - max.row_systematic[0]) / max.row_mean_sigma[0] / kSeeds;
  }
  expect_within(tally, "permuted keys");
  EXPECT_GT(without_allowance, 5 / std::sqrt(kSeeds));
  EXPECT_LE(lean, 5 / std::sqrt(kSeeds));
}

}  // namespace sparse_mla_layouts_bound_test
}  // namespace plumb::tests
