// SPDX-License-Identifier: Apache-2.0
//
// Compares sparse MLA without splits, written with tracked arrays, with the reference, whose bounds
// are derived by hand. The medians of both bounds are similar. The reference keeps the bounds by
// hand for three reasons: it knows that candidates with equal scores round together, its bias is
// narrower, and it is 4 to 9 times as fast.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/sparse_mla/sparse_mla_prefill.h"
#include "reference/tracked/other_forms.h"
#include "reference/tracked/tracked_node.h"
#include "tests/support/honest_mla.h"
#include "tests/support/mla_workload.h"

namespace plumb::tests {
namespace tracked_attention_test {

using reference::Estimate;
using reference::Format;
using reference::kMlaDim;
using reference::Numerics;
using reference::SparseMlaPrefill;
using reference::Tracked;

// ---- attention with tracked arrays ----

Tracked array_of(const std::vector<Vector>& rows, const Numerics& numerics) {
  std::vector<double> numbers;
  for (const Vector& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
  return {std::move(numbers), {std::ssize(rows), std::ssize(rows.front())}, numerics};
}

// The rounding error of the stored p. A kernel rounds p relative to the largest score so far, so
// the position of p between two numbers of the format differs between kernels. p = 1 is exact.
Tracked roundings_of(const Tracked& p, Format format) {
  Estimate errors;
  errors.resize(1, std::ssize(p.values()));
  for (std::size_t i = 0; i < p.values().size(); ++i) {
    if (p.values()[i] == 1) continue;
    errors.worst[i] = reference::unit_roundoff(format) * p.values()[i];
    errors.sigma[i] = reference::kUniformSigma * errors.worst[i];
  }
  const Tracked zeros(std::vector<double>(p.values().size()), p.sizes(), *p.node()->numerics);
  return with_errors(zeros, errors);
}

SparseMlaPrefill tracked_attention(const Honest& honest, const Numerics& numerics) {
  const std::int64_t heads = std::ssize(honest.queries);
  Numerics one_chain = numerics;  // for the sums over candidates
  one_chain.chains = 1;
  const Tracked keys = array_of(honest.keys, numerics), values = sliced(keys, 1, 0, kMlaDim);
  const Tracked scores =
      matmul(array_of(honest.queries, numerics), transposed(keys)) * honest.test.problem.sm_scale;
  const Tracked top = nth_largest(scores, 1, 0);
  const Tracked p = exp_by_exp2(scores - top), sum = reference::sum(p, 1);
  Tracked sums = matmul(p, values, one_chain);
  if (numerics.probability != Format::f32) {
    sums = sums + matmul(roundings_of(p, numerics.probability), values, one_chain);
  }
  const Tracked lse = top + log_by_log2(sum);
  const Tracked sink({honest.sinks.begin(), honest.sinks.end()}, {heads, 1}, numerics);
  const Tracked out = sums / sum * sigmoid_by_exp2_or_tanh(lse - sink);
  return {estimate_of(out, Format::bf16), estimate_of(reshaped(top, {1, heads}), Format::f32),
          estimate_of(reshaped(lse, {1, heads}), Format::f32)};
}

// ---- fp32 results against the bounds ----

constexpr int kCaches = 250, kHeads = 4, kOrders = 3;

HonestKernel kernel_of(int order, bool bf16) {
  switch (order) {
    case 0: return {.bf16_probability = bf16};
    case 1:
      return {.bf16_probability = bf16,
              .block = 16,
              .chains = 32,
              .reversed = true,
              .fused_exponent = true};
    default: return {.bf16_probability = bf16, .block = 32, .chains = 4};
  }
}
HonestRow result_of(const Honest& honest, int head, int order, const HonestKernel& how,
                    float scale = 1) {
  const float sm_scale = honest.test.problem.sm_scale * scale;
  const auto at = static_cast<std::size_t>(head);
  const float *query = honest.queries[at].data(), *sink = &honest.sinks[at];
  if (order == 2) return attend_natural(query, honest.keys, sm_scale, sink, how);
  return finish(attend_split(query, honest.keys, sm_scale, how)[0], sink);
}

struct LargestRatios {
  double out = 0, lse = 0, max = 0;  // error / bound

  void add(const HonestRow& row, int head, const SparseMlaPrefill& expected) {
    const auto keep = [](double got, const Estimate& estimate, std::int64_t i, double& most) {
      const double ratio = std::abs(got - estimate.centre(i)) / estimate.bound(i);
      most = std::isnan(ratio) ? INFINITY : std::max(most, ratio);
    };
    for (std::int64_t d = 0; d < kMlaDim; ++d) {
      keep(reference::decode_bf16(row.out[static_cast<std::size_t>(d)]), expected.out,
           head * kMlaDim + d, out);
    }
    keep(row.lse, expected.lse, head, lse);
    keep(row.max, expected.max_logits, head, max);
  }
};
struct BothRatios {
  LargestRatios tracked, by_hand;

  void add(const Honest& honest, int order, const HonestKernel& how, float scale = 1) {
    const Numerics numerics = numerics_of(how);
    const SparseMlaPrefill first = tracked_attention(honest, numerics);
    const SparseMlaPrefill second = sparse_mla_prefill(honest.test.problem, numerics);
    for (int head = 0; head < kHeads; ++head) {
      const HonestRow row = result_of(honest, head, order, how, scale);
      tracked.add(row, head, first);
      by_hand.add(row, head, second);
    }
  }
};

Workload four_heads(int kind, double scale, int seed) {
  Workload work = workload(kind, scale, static_cast<std::uint64_t>(seed));
  work.heads = kHeads;
  work.count = 70;
  return work;
}

// 1000 rows, each computed in three orders.
TEST(TrackedAttention, NoResultOfManyRowsExceedsItsBound) {
  const std::vector<double> scales{0.1, 1, 3, 10};
  BothRatios largest;
  for (int seed = 0; seed < kCaches; ++seed) {
    const double scale = scales[static_cast<std::size_t>(seed / 4 % 4)];
    const Honest honest(four_heads(seed % 4, scale, seed));
    for (int order = 0; order < kOrders; ++order) {
      largest.add(honest, order, kernel_of(order, seed % 3 != 0));
    }
  }
  for (const LargestRatios& ratios : {largest.tracked, largest.by_hand}) {
    EXPECT_LE(ratios.out, 1);
    EXPECT_LE(ratios.lse, 1);
    EXPECT_LE(ratios.max, 1);
  }
}
// Control: sm_scale has a relative error of 2^-10.
TEST(TrackedAttention, AWrongScaleExceedsItsBound) {
  const Honest honest(four_heads(0, 3, 1));
  for (int order = 0; order < kOrders; ++order) {
    BothRatios largest;
    largest.add(honest, order, kernel_of(order, false), 1 + 0x1p-10F);
    EXPECT_GT(largest.tracked.lse, 10) << order;
    EXPECT_GT(largest.tracked.max, 10) << order;
  }
}

// ---- medians ----

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Ratios of all elements: tracked bound / bound by hand.
class ElementRatios {
 public:
  void add(const Estimate& tracked, const Estimate& by_hand) {
    for (std::int64_t i = 0; i < std::ssize(tracked.value); ++i) {
      bounds_.push_back(tracked.arithmetic(i) / by_hand.arithmetic(i));
    }
    for (std::size_t row = 0; row < tracked.row_systematic.size(); ++row) {
      biases_.push_back(tracked.row_systematic[row] / by_hand.row_systematic[row]);
    }
  }
  double bound() const { return median(bounds_); }
  double bias() const { return median(biases_); }

 private:
  std::vector<double> bounds_, biases_;
};
struct AttentionRatios {
  ElementRatios out, lse, max;

  AttentionRatios(double scale, const HonestKernel& how) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Workload work = workload(0, scale, seed);
      work.heads = 16;
      work.count = 256;
      const Honest honest(work);
      const SparseMlaPrefill tracked = tracked_attention(honest, numerics_of(how));
      const auto by_hand = sparse_mla_prefill(honest.test.problem, numerics_of(how));
      out.add(tracked.out, by_hand.out);
      lse.add(tracked.lse, by_hand.lse);
      max.add(tracked.max_logits, by_hand.max_logits);
    }
  }
};

TEST(TrackedAttention, BoundsAreAsTightAsThoseByHand) {
  for (const double scale : {0.1, 1.0, 8.0}) {
    for (const bool bf16 : {true, false}) {
      const AttentionRatios ratios(scale, {.bf16_probability = bf16, .chains = 32});
      for (const ElementRatios* each : {&ratios.out, &ratios.lse, &ratios.max}) {
        EXPECT_LE(each->bound(), 4.0 / 3) << scale;
        EXPECT_GE(each->bound(), 0.5) << scale;
      }
    }
  }
}

// ---- where bounds by hand are better ----

// If all exponentials err in one direction, the errors cancel in the quotient of the sums. Tracked
// biases are magnitudes, which do not cancel.
TEST(TrackedAttention, TheBiasIsNarrowerByHand) {
  for (const double scale : {0.1, 1.0, 8.0}) {
    EXPECT_GT(AttentionRatios(scale, {.chains = 32}).out.bias(), 4) << scale;
  }
}
TEST(TrackedAttention, TheMaximumOfSumsInAUnitIsTighterByHand) {
  const AttentionRatios ratios(1, {.unit = &reference::kSm90Bf16});
  EXPECT_GT(ratios.max.bound(), 1.5);
  EXPECT_LE(ratios.out.bound(), 4.0 / 3);
}

// One key repeated many times, and one other key. All repetitions round p equally, so they have one
// common error.
TEST(TrackedAttention, EqualScoresExceedTrackedBounds) {
  BothRatios largest;
  for (int seed = 0; seed < 4; ++seed) {
    Workload work = four_heads(0, 1, seed + 300);
    work.count = 500;
    work.value = [](std::int64_t t, std::int64_t d) { return normal(t == 0 ? 3 : 4, d); };
    largest.add(Honest(work), 0, kernel_of(0, true));
  }
  EXPECT_GT(largest.tracked.out, 1);
  EXPECT_LE(largest.by_hand.out, 1);
}

}  // namespace tracked_attention_test
}  // namespace plumb::tests
