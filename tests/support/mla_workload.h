// SPDX-License-Identifier: Apache-2.0
//
// Query rows of many kinds for tests of sparse MLA's bounds, the inputs of right kernels for them,
// and statistics of the kernels' errors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "reference/bound.h"
#include "tests/support/honest_mla.h"
#include "tests/support/mla_test_problem.h"

namespace plumb::tests {

// Errors of one tensor relative to their bounds, over many rows.
class Errors {
 public:
  void begin_row() { rows_.push_back(0); }
  void add(double got, const reference::Estimate& expected, std::int64_t i) {
    const double error = std::abs(got - expected.value[i]);
    const double ratio = error / expected.bound(i);
    rows_.back() = std::max(rows_.back(), std::isnan(ratio) ? INFINITY : ratio);
    const double u = reference::unit_roundoff(expected.output);
    if (error > 0.1 * u * std::abs(expected.value[i])) slack_.push_back(1 / ratio);
  }
  std::size_t count() const { return slack_.size(); }
  double worst() const { return *std::max_element(rows_.begin(), rows_.end()); }
  double median_slack() const { return quantile(slack_, 0.5); }
  double row_quantile() const { return quantile(rows_, 0.95); }

 private:
  static double quantile(std::vector<double> values, double part) {
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size()));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }
  std::vector<double> rows_, slack_;
};

struct Workload {
  std::int64_t heads = 4, count = 200;
  TokenValue value;
  double score_scale = 1;  // standard deviation of q
  std::uint64_t seed = 0;
  reference::KvLayout layout = reference::KvLayout::v4;
  std::function<double(std::int64_t)> query = {};  // if set, replaces the random queries
};

// One query row: inputs of the right kernels, and the reference's problem.
struct Honest {
  TestProblem test;
  std::vector<Vector> keys, queries;
  std::vector<float> sinks;

  explicit Honest(const Workload& work)
      : test(
            1, work.heads, work.count, work.value,
            [&](std::int64_t i) {
              return work.query ? work.query(i) : work.score_scale * normal(work.seed + 1000, i);
            },
            work.layout) {
    const std::int64_t dims = test.problem.key_dims();
    std::vector<double> token(dims);
    for (std::int64_t slot = 0; slot < work.count; ++slot) {
      reference::decode_token(test.problem.main_cache, slot, token.data());
      keys.emplace_back(token.begin(), token.end());
    }
    for (std::int64_t head = 0; head < work.heads; ++head) {
      Vector& query = queries.emplace_back();
      for (std::int64_t d = 0; d < dims; ++d) {
        query.push_back(static_cast<float>(reference::decode_bf16(test.q[head * dims + d])));
      }
      sinks.push_back(static_cast<float>(4 * normal(work.seed + 2000, head)));
    }
    test.problem.attn_sink = sinks.data();
  }
};

inline reference::Numerics numerics_of(const HonestKernel& how) {
  reference::Numerics numerics;
  numerics.chains = static_cast<int>(how.chains);
  numerics.probability = how.bf16_probability ? reference::Format::bf16 : reference::Format::f32;
  numerics.function_ulp = 0.5;
  if (how.unit != nullptr) numerics.unit = reference::SumUnit::sm90_bf16;
  return numerics;
}

// Different kinds of keys, with scores of a standard deviation of about `score_scale`.
inline Workload workload(int kind, double score_scale, std::uint64_t seed) {
  Workload work;
  work.seed = seed;
  work.score_scale = score_scale;
  const auto noise = [seed](std::int64_t t, std::int64_t d) {
    return normal(seed, t * reference::kV32Dim + d);
  };
  switch (kind) {
    case 0: work.value = noise; break;
    case 1:  // nearly equal for all d
      work.value = [=](std::int64_t t, std::int64_t d) { return noise(t, 7) + 0.01 * noise(t, d); };
      break;
    case 2:  // one outlier channel in every 64
      work.value = [=](std::int64_t t, std::int64_t d) {
        return (d % 64 == 5 ? 50 : 1) * noise(t, d);
      };
      work.score_scale /= 6;
      break;
    case 3:  // tokens of very different size
      work.value = [=](std::int64_t t, std::int64_t d) {
        return std::pow(10, 4 * uniform(seed + 9, t) - 3) * noise(t, d);
      };
      break;
    case 4:  // every key twice
      work.value = [=](std::int64_t t, std::int64_t d) { return noise(t / 2, d); };
      break;
    case 5:  // few distinct values, many zeros
      work.value = [=](std::int64_t t, std::int64_t d) { return std::round(noise(t, d)); };
      break;
    default: ADD_FAILURE() << "no such kind";
  }
  return work;
}

inline void expect_tight(const Errors& errors, const char* what) {
  EXPECT_GE(errors.count(), 1000u) << what;
  EXPECT_LE(errors.worst(), 1) << what;
  EXPECT_LE(errors.median_slack(), 16) << what;
  EXPECT_GE(errors.row_quantile(), 0.1) << what;
}

}  // namespace plumb::tests
