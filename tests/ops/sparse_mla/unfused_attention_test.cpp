// SPDX-License-Identifier: Apache-2.0
//
// Attention in separate steps that store bf16, as torch computes it: within its own bound, and
// beyond the bound of a fused kernel, as a fused kernel is beyond its own.
#include "reference/sparse_mla/unfused_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/honest_mla.h"
#include "tests/support/long_tests.h"
#include "tests/support/mla_workload.h"

namespace plumb::tests {
namespace unfused_attention_test {

using reference::Estimate;
using reference::Format;
using reference::kMlaDim;
using reference::Numerics;

constexpr int kHeads = 4;

float stored(float x) { return round_probability(x, true); }

// One head in fp32 steps, each of whose results is rounded to bf16. `chains`: of q k.
std::vector<std::uint16_t> attend_in_steps(const float* query, const std::vector<Vector>& keys,
                                           float sm_scale, float sink, std::int64_t chains) {
  Vector scores;
  for (const Vector& key : keys) {
    scores.push_back(stored(stored(dot(query, key, chains)) * sm_scale));
  }
  scores.push_back(stored(sink));
  const float top = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(stored(score - top));
    sum += score;
  }
  Vector out(kMlaDim, 0.0F);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const float p = stored(scores[i] / sum);
    for (std::int64_t d = 0; d < kMlaDim; ++d) out[d] += p * keys[i][d];
  }
  std::vector<std::uint16_t> bits;
  for (const float value : out) bits.push_back(reference::encode_bf16(value));
  return bits;
}

double largest_ratio(const std::vector<std::uint16_t>& out, int head, const Estimate& expected) {
  double most = 0;
  for (std::int64_t d = 0; d < kMlaDim; ++d) {
    const double got = reference::decode_bf16(out[static_cast<std::size_t>(d)]);
    const std::int64_t at = head * kMlaDim + d;
    const double ratio = std::abs(got - expected.centre(at)) / expected.bound(at);
    most = std::isnan(ratio) ? INFINITY : std::max(most, ratio);
  }
  return most;
}

// Largest error / bound, by what computed the result and under what it was judged.
struct UnfusedRatios {
  double steps = 0, steps_as_fused = 0, fused_as_steps = 0;
};

// Rows of four kinds, with flat and with steep scores.
Honest row_of(int seed) {
  const std::vector<double> scales{0.1, 1, 3, 10};
  Workload work = workload(seed % 4, scales[static_cast<std::size_t>(seed / 4 % 4)],
                           static_cast<std::uint64_t>(seed));
  work.heads = kHeads;
  work.count = 70;
  return Honest(work);
}

UnfusedRatios ratios_of_workloads(int seeds) {
  const Numerics fused{.chains = 1, .probability = Format::bf16};
  Numerics in_steps = fused;
  in_steps.score = Format::bf16;
  UnfusedRatios most;
  for (int seed = 0; seed < seeds; ++seed) {
    const Honest honest = row_of(seed);
    const float sm_scale = honest.test.problem.sm_scale;
    const Estimate of_steps = unfused_mla_prefill(honest.test.problem, in_steps).out;
    const Estimate of_fused = sparse_mla_prefill(honest.test.problem, fused).out;
    for (int head = 0; head < kHeads; ++head) {
      const auto at = static_cast<std::size_t>(head);
      const float* const query = honest.queries[at].data();
      for (const std::int64_t chains : {1, 4, 16}) {
        const auto out = attend_in_steps(query, honest.keys, sm_scale, honest.sinks[at], chains);
        most.steps = std::max(most.steps, largest_ratio(out, head, of_steps));
        most.steps_as_fused = std::max(most.steps_as_fused, largest_ratio(out, head, of_fused));
      }
      const HonestRow row =
          finish(attend_split(query, honest.keys, sm_scale, {})[0], &honest.sinks[at]);
      most.fused_as_steps = std::max(most.fused_as_steps, largest_ratio(row.out, head, of_steps));
    }
  }
  return most;
}

TEST(UnfusedAttention, IsWithinItsBoundAndBeyondThatOfAFusedKernel) {
  const UnfusedRatios ratios = ratios_of_workloads(long_tests_run() ? 1000 : 200);
  EXPECT_LE(ratios.steps, 1);
  EXPECT_GT(ratios.steps_as_fused, 1);
  EXPECT_GT(ratios.fused_as_steps, 1);
}

// Holes are skipped, so a row has fewer keys than candidates.
TEST(UnfusedAttention, SkipsHoles) {
  const Numerics in_steps{.score = Format::bf16};
  Honest honest(workload(0, 1, 2));
  const Estimate whole = unfused_mla_prefill(honest.test.problem, in_steps).out;
  std::vector<std::int32_t>& indices = honest.test.indices;
  const std::int32_t first = indices.front();
  std::ranges::fill(indices, -1);
  indices[3] = first;
  const Estimate one = unfused_mla_prefill(honest.test.problem, in_steps).out;
  EXPECT_EQ(one.value.size(), whole.value.size());
  EXPECT_NE(one.value, whole.value);
}

TEST(UnfusedAttention, RowsWithoutCandidatesAreZero) {
  Honest honest(workload(0, 1, 1));
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(honest.test.problem.requests), 0);
  honest.test.problem.main.lengths = lengths.data();
  const Estimate out = unfused_mla_prefill(honest.test.problem, {.score = Format::bf16}).out;
  EXPECT_TRUE(std::ranges::all_of(out.value, [](double value) { return value == 0; }));
}

}  // namespace unfused_attention_test
}  // namespace plumb::tests
