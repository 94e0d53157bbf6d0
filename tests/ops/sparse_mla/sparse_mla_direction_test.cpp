// SPDX-License-Identifier: Apache-2.0
//
// Tests the limit for the component of an error that is orthogonal to the expected row, which the
// judge derives from the reference's error model, with correct sparse MLA kernels. If one candidate
// takes nearly all weight, the error of a row is one random number times one vector, which is much
// longer than 512 independent errors usually are.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "cases/judge/row_model.h"
#include "reference/sparse_mla/mla_partials.h"
#include "tests/support/honest_mla.h"
#include "tests/support/mla_workload.h"

namespace plumb::tests {
namespace sparse_mla_direction_test {

using reference::Estimate;
using reference::kMlaDim;

// Length of the component orthogonal to the expected row, as a fraction of its limit.
double across(const Vector& stored, const Estimate& expected, std::int64_t row) {
  const Eigen::Map<const Eigen::VectorXd> value(&expected.value[row * kMlaDim], kMlaDim);
  const Eigen::VectorXd got =
      Eigen::Map<const Eigen::VectorXf>(stored.data(), kMlaDim).cast<double>();
  const Eigen::VectorXd error = got - value * (got.dot(value) / value.squaredNorm());
  return error.norm() / cases::model_row(expected, row).direction_limit;
}

// Orthogonal components of the fp32 results that each of two splits stores. No output rounding
// hides their errors.
std::vector<double> across_of_partials(const Honest& honest, const HonestKernel& how) {
  const auto blocks = reference::blocks_of_requests(honest.test.problem, 64);
  const auto plan = reference::make_tile_plan(blocks, 2, 0);
  const auto expected =
      reference::sparse_mla_partials(honest.test.problem, numerics_of(how), plan, 64);
  const std::int64_t heads = std::ssize(honest.queries);
  std::vector<double> all;
  for (const reference::PlannedSpan& span : reference::planned_spans(plan, blocks)) {
    const std::int64_t end = std::min<std::int64_t>(64 * span.end_block, std::ssize(honest.keys));
    const std::vector<Vector> keys(honest.keys.begin() + 64 * span.begin_block,
                                   honest.keys.begin() + end);
    for (std::int64_t head = 0; head < heads; ++head) {
      const HonestPartial partial =
          attend(honest.queries[head].data(), keys, honest.test.problem.sm_scale, how);
      all.push_back(across(partial.out, expected.out, span.slot * heads + head));
    }
  }
  return all;
}

// Parameter: p is rounded to bf16. Each test tries scores from all equal to one dominant candidate.
class SparseMlaDirection : public testing::TestWithParam<bool> {};

TEST_P(SparseMlaDirection, OfHonestRowsStaysWithinItsLimitAndNearsIt) {
  HonestKernel how;
  how.bf16_probability = GetParam();
  std::uint64_t seed = 9000;
  for (const double scale : {0.1, 1.0, 3.0, 10.0, 20.0, 30.0}) {
    double largest = 0;
    for (int repeat = 0; repeat < 5; ++repeat) {
      for (int kind = 0; kind <= 5; ++kind) {
        Workload work = workload(kind, scale, ++seed);
        work.heads = 32;
        for (const double part : across_of_partials(Honest(work), how)) {
          largest = std::max(largest, part);
        }
      }
    }
    EXPECT_LE(largest, 1) << scale;
    EXPECT_GE(largest, 0.1) << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(, SparseMlaDirection, testing::Bool(),
                         [](const auto& p) { return p.param ? "bf16" : "fp32"; });

}  // namespace sparse_mla_direction_test
}  // namespace plumb::tests
