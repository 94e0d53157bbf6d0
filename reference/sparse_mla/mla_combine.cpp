// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_combine.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "reference/sparse_mla/mla_error.h"

namespace plumb::reference {

namespace {

// The splits of one head of one query row, and where their results go.
struct Splits {
  const float* out = nullptr;  // [count, 512], rows out_stride apart
  const float* lse = nullptr;  // [count], lse_stride apart
  std::int64_t count = 0, out_stride = 0, lse_stride = 0;

  double lse_of(std::int64_t i) const { return lse[i * lse_stride] * std::numbers::ln2; }
};

struct Total {
  double lse = -kInfinity;  // natural
  double few = 0;           // most that single roundings on the way add
  double terms = 1;         // of a sum whose every addition rounds
  double sigma(double u) const { return few / kSigmas + u * std::sqrt(terms) / 3; }
  double worst(double u) const { return few + u * terms; }
};

// Rounding the arguments of exp2 and log2, their results, the sum and the changes of base.
Total log_sum(const Splits& splits, const AttentionUnits& units) {
  double top = -kInfinity;
  for (std::int64_t i = 0; i < splits.count; ++i) top = std::max(top, splits.lse_of(i));
  if (top == -kInfinity) return {};
  double sum = 0, error = 0;
  for (std::int64_t i = 0; i < splits.count; ++i) {
    const double weight = std::exp(splits.lse_of(i) - top);
    sum += weight;
    if (weight > 0) {
      error += weight * (units.function + exponent_rounding(splits.lse_of(i) - top));
    }
  }
  Total total;
  total.lse = top + std::log(sum);
  total.few = error / sum + units.function * std::log(sum) + exponent_rounding(total.lse) +
              0.3 * units.scalar * std::abs(total.lse);
  total.terms = static_cast<double>(splits.count);
  return total;
}

class Combiner {
 public:
  Combiner(const SparseMlaProblem& problem, const Numerics& numerics, SparseMlaDecode& result)
      : problem_(problem), units_(attention_units(numerics)), result_(result) {}

  void run(const Splits& splits, std::int64_t request, std::int64_t query, std::int64_t head) {
    const Total total = log_sum(splits, units_);
    store_lse(total, request * problem_.heads + head, query);
    const std::int64_t row = (request * problem_.queries + query) * problem_.heads + head;
    const std::int64_t first = row * kMlaDim;
    std::fill_n(result_.out.value.begin() + first, kMlaDim, 0.0);
    std::fill_n(result_.out.sigma.begin() + first, kMlaDim, 0.0);
    std::fill_n(result_.out.worst.begin() + first, kMlaDim, 0.0);
    result_.out.row_mean_sigma[row] = 0;
    result_.out.row_systematic[row] = 0;
    const double share = share_of_keys(problem_, head, total.lse);
    if (total.lse == -kInfinity || share == 0) return;
    const double common = common_error(total, share, head);
    for (std::int64_t i = 0; i < splits.count; ++i) add_split(splits, i, total, share, first);
    finish_row(row, static_cast<double>(splits.count), common);
  }

 private:
  void store_lse(const Total& total, std::int64_t row, std::int64_t query) {
    Estimate& lse = result_.lse;
    const std::int64_t at = row * problem_.queries + query;
    lse.value[at] = total.lse == -kInfinity ? kInfinity : total.lse;
    lse.sigma[at] = total.sigma(units_.scalar);
    lse.worst[at] = total.worst(units_.scalar);
    lse.row_systematic[row] = 0;
  }

  // Most by which the weights of all splits are wrong together: the total and the sink's part.
  double common_error(const Total& total, double share, std::int64_t head) const {
    double error = total.worst(units_.scalar) + units_.scalar * std::abs(total.lse);
    if (share < 1) {
      error += (1 - share) * (units_.function +
                              3 * units_.scalar * std::abs(problem_.attn_sink[head] - total.lse) +
                              2 * units_.scalar * std::abs(problem_.attn_sink[head])) +
               units_.function * std::abs(std::log(share));
    }
    return error;
  }

  void add_split(const Splits& splits, std::int64_t i, const Total& total, double share,
                 std::int64_t first) {
    const double exponent = splits.lse_of(i) - total.lse + std::log(share);
    const double weight = std::exp(exponent);
    if (weight == 0) return;
    const double relative = units_.function + exponent_rounding(exponent) + units_.scalar;
    const double flushed = std::min(weight, kLeastNormalF32);
    const float* out = splits.out + i * splits.out_stride;
    for (std::int64_t d = 0; d < kMlaDim; ++d) {
      const double term = weight * out[d];
      result_.out.value[first + d] += term;
      result_.out.sigma[first + d] += std::abs(term);  // magnitudes, until finish_row
      result_.out.worst[first + d] += std::abs(term) * relative + flushed * std::abs(out[d]);
    }
  }

  // So few roundings that their worst case is no looser than 6 sigma.
  void finish_row(std::int64_t row, double count, double common) {
    double mean = 0;
    for (std::int64_t i = row * kMlaDim; i < (row + 1) * kMlaDim; ++i) {
      double& sigma = result_.out.sigma[i];
      double& worst = result_.out.worst[i];
      worst += units_.scalar * count * sigma + common * std::abs(result_.out.value[i]);
      sigma = worst / kSigmas;
      mean += sigma / static_cast<double>(kMlaDim);
    }
    result_.out.row_mean_sigma[row] = mean;
  }

  const SparseMlaProblem& problem_;
  AttentionUnits units_;
  SparseMlaDecode& result_;
};

}  // namespace

void mla_combine(const SparseMlaProblem& problem, const Numerics& numerics,
                 std::span<const std::int32_t> num_splits, const float* partial_out,
                 const float* partial_lse, SparseMlaDecode& result) {
  const std::int64_t slot_rows = problem.queries * problem.heads;
  parallel_for(problem.requests, 1, [&](std::int64_t begin, std::int64_t end) {
    Combiner combiner(problem, numerics, result);
    for (std::int64_t request = begin; request < end; ++request) {
      const std::int64_t first = num_splits[request];
      const std::int64_t count = num_splits[request + 1] - first;
      if (count <= 1) continue;
      for (std::int64_t row = 0; row < slot_rows; ++row) {
        const std::int64_t at = first * slot_rows + row;
        const Splits splits{partial_out + at * kMlaDim, partial_lse + at, count,
                            slot_rows * kMlaDim, slot_rows};
        combiner.run(splits, request, row / problem.heads, row % problem.heads);
      }
    }
  });
  set_independent_row_means(result.lse);
}

}  // namespace plumb::reference
