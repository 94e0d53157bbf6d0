// SPDX-License-Identifier: Apache-2.0
#include "reference/mla_combine.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.69314718055994531;

// One head of one query row: its splits are `stride` elements apart.
struct Splits {
  const float* out = nullptr;  // [count, 512]
  const float* lse = nullptr;  // [count], base 2
  std::int64_t count = 0, out_stride = 0, lse_stride = 0;
};

double log_sum(const Splits& splits) {
  double top = -kInfinity;
  for (std::int64_t i = 0; i < splits.count; ++i) {
    top = std::max(top, double{splits.lse[i * splits.lse_stride]});
  }
  if (top == -kInfinity) return top;
  double sum = 0;
  for (std::int64_t i = 0; i < splits.count; ++i) {
    sum += std::exp2(splits.lse[i * splits.lse_stride] - top);
  }
  return top + std::log2(sum);
}

}  // namespace

void mla_combine(const SparseMlaProblem& problem, const Numerics&,
                 std::span<const std::int32_t> num_splits, const float* partial_out,
                 const float* partial_lse, SparseMlaDecode& result) {
  const std::int64_t slot_rows = problem.queries * problem.heads;
  for (std::int64_t request = 0; request < problem.requests; ++request) {
    const std::int64_t first = num_splits[request];
    const std::int64_t count = num_splits[request + 1] - first;
    if (count <= 1) continue;
    for (std::int64_t row = 0; row < slot_rows; ++row) {
      const std::int64_t query = row / problem.heads, head = row % problem.heads;
      const Splits splits{partial_out + (first * slot_rows + row) * kMlaDim,
                          partial_lse + first * slot_rows + row, count, slot_rows * kMlaDim,
                          slot_rows};
      const double lse = log_sum(splits) * kLn2;
      const bool lonely = lse == -kInfinity;
      result.lse.value[(request * problem.heads + head) * problem.queries + query] =
          lonely ? kInfinity : lse;
      const double share =
          problem.attn_sink == nullptr ? 1 : 1 / (1 + std::exp(problem.attn_sink[head] - lse));
      double* out = result.out.value.data() + (request * slot_rows + row) * kMlaDim;
      std::fill_n(out, kMlaDim, 0.0);
      if (lonely || share == 0) continue;
      for (std::int64_t i = 0; i < count; ++i) {
        const double weight = std::exp2(splits.lse[i * splits.lse_stride] - lse / kLn2) * share;
        for (std::int64_t d = 0; d < kMlaDim; ++d) {
          out[d] += weight * splits.out[i * splits.out_stride + d];
        }
      }
    }
  }
}

}  // namespace plumb::reference
