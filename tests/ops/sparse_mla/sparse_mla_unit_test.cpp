// SPDX-License-Identifier: Apache-2.0
//
// Tests sparse MLA with products in the bf16 unit of sm90: emulated kernels stay within tight
// bounds and pass the check for bias. The same results fail if fp32 sums are declared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/sparse_mla/sparse_mla_decode.h"
#include "reference/sparse_mla/sparse_mla_prefill.h"
#include "tests/support/honest_mla.h"
#include "tests/support/mla_workload.h"

namespace plumb::tests {
namespace sparse_mla_unit_test {

using reference::Estimate;
using reference::kMlaDim;
using reference::KvLayout;

constexpr HonestKernel kUnitKernel{.unit = &reference::kSm90Bf16};

// Mean of sign(value) * error over many rows, and the mean that the estimates allow.
struct MeanError {
  double sum = 0, variance = 0, allowance = 0;
  int rows = 0;

  void add_row(const Estimate& expected, std::int64_t row, const std::vector<double>& got) {
    double mean = 0;
    for (std::int64_t c = 0; c < expected.columns; ++c) {
      const double value = expected.value[row * expected.columns + c];
      mean += std::copysign(1.0, value) * (got[c] - value) / static_cast<double>(expected.columns);
    }
    sum += mean;
    variance += expected.row_mean_sigma[row] * expected.row_mean_sigma[row];
    allowance += expected.row_systematic[row];
    ++rows;
  }
  double deviations() const {
    return std::max(0.0, std::abs(sum) - allowance) / std::sqrt(variance);
  }
};

struct UnitTally {
  Errors out, lse, max;
  MeanError lse_mean, max_mean;

  void add(const HonestRow& row, const reference::SparseMlaPrefill& expected, std::int64_t head) {
    for (Errors* errors : {&out, &lse, &max}) errors->begin_row();
    for (std::int64_t d = 0; d < kMlaDim; ++d) {
      out.add(reference::decode_bf16(row.out[d]), expected.out, head * kMlaDim + d);
    }
    lse.add(row.lse, expected.lse, head);
    max.add(row.max, expected.max_logits, head);
  }
  void add_means(const std::vector<double>& lses, const std::vector<double>& maxima,
                 const reference::SparseMlaPrefill& expected) {
    lse_mean.add_row(expected.lse, 0, lses);
    max_mean.add_row(expected.max_logits, 0, maxima);
  }
};

void check_row(const Workload& work, const HonestKernel& how, const reference::Numerics& declared,
               UnitTally& tally) {
  const Honest honest(work);
  const auto expected = reference::sparse_mla_prefill(honest.test.problem, declared);
  std::vector<double> lses, maxima;
  for (std::int64_t head = 0; head < work.heads; ++head) {
    const auto state =
        attend_split(honest.queries[head].data(), honest.keys, honest.test.problem.sm_scale, how);
    const HonestRow row = finish(state[0], &honest.sinks[head]);
    tally.add(row, expected, head);
    lses.push_back(row.lse);
    maxima.push_back(row.max);
  }
  tally.add_means(lses, maxima, expected);
}

TEST(SparseMlaUnit, EmulatedKernelsStayWithin) {
  for (const KvLayout layout : {KvLayout::v4, KvLayout::rows}) {
    for (int kind = 0; kind <= 5; ++kind) {
      UnitTally tally;
      std::uint64_t seed = 9000 + static_cast<std::uint64_t>(kind) * 100;
      for (const double scale : {1e-3, 0.1, 1.0, 3.0, 10.0, 100.0}) {
        Workload work = workload(kind, scale, ++seed);
        work.layout = layout;
        work.heads = 8;
        work.count = 130;
        HonestKernel how = kUnitKernel;
        how.reversed = seed % 2 == 0;
        check_row(work, how, numerics_of(how), tally);
      }
      const std::string what = "kind " + std::to_string(kind);
      EXPECT_LE(tally.out.worst(), 1) << what;
      EXPECT_LE(tally.lse.worst(), 1) << what;
      EXPECT_LE(tally.max.worst(), 1) << what;
      EXPECT_LE(tally.lse_mean.deviations(), 5) << what;
      EXPECT_LE(tally.max_mean.deviations(), 5) << what;
    }
  }
}

TEST(SparseMlaUnit, BoundsAreTightAndFp32SumsAreNot) {
  UnitTally unit, fp32, nearest;
  HonestKernel rounded;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    Workload work = workload(0, std::vector{0.5, 1.0, 2.0, 4.0}[seed % 4], 9700 + seed);
    work.layout = seed % 2 == 0 ? KvLayout::v4 : KvLayout::rows;
    work.heads = 32;
    work.count = 128;
    check_row(work, kUnitKernel, numerics_of(kUnitKernel), unit);
    check_row(work, kUnitKernel, numerics_of(rounded), fp32);
    check_row(work, rounded, numerics_of(rounded), nearest);
  }
  EXPECT_LE(unit.out.worst(), 1);
  EXPECT_LE(unit.lse.worst(), 1);
  EXPECT_LE(unit.max.worst(), 1);
  EXPECT_LE(unit.lse_mean.deviations(), 5);
  EXPECT_LE(unit.max_mean.deviations(), 5);
  // The median row uses at least a twentieth of its bound.
  EXPECT_LE(unit.lse.median_slack(), 20);
  EXPECT_GE(unit.lse.row_quantile(), 0.1);
  EXPECT_GT(fp32.lse_mean.deviations(), 5);
  EXPECT_GT(fp32.max_mean.deviations(), 5);
  EXPECT_LE(nearest.lse_mean.deviations(), 5);
  EXPECT_LE(nearest.max_mean.deviations(), 5);
}

}  // namespace sparse_mla_unit_test
}  // namespace plumb::tests
