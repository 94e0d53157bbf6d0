// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/mla_attention.h"
#include "reference/mla_error.h"

namespace plumb::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double square(double x) { return x * x; }

// One thread's work on query rows.
class RowWorker {
 public:
  RowWorker(const SparseMlaProblem& problem, const Numerics& numerics, MlaWant want,
            SparseMlaDecode& result)
      : problem_(problem),
        want_(want),
        units_(attention_units(numerics)),
        model_(numerics),
        result_(result) {
    attention_.queries.resize(kMlaDim, problem.heads);
  }

  void run(std::int64_t request, std::int64_t query) {
    gather_row(problem_, request, query, keys_);
    decode_queries(problem_, request, query, attention_.queries.data());
    attend(keys_, problem_.sm_scale, attention_);
    if (want_ == MlaWant::value_and_bound) {
      model_.estimate(keys_, problem_.sm_scale, attention_, error_);
    }
    for (std::int64_t head = 0; head < problem_.heads; ++head) {
      store_lse(request * problem_.heads + head, query, head);
      if (keys_.count == 0) continue;  // out is 0
      const double share = share_of_keys(problem_, head, attention_.lse[head]);
      const std::int64_t row = (request * problem_.queries + query) * problem_.heads + head;
      store_out(row, head, share);
      // Without a share, out is exactly 0.
      if (want_ == MlaWant::value_and_bound && share > 0) store_out_error(row, head, share);
    }
  }

 private:
  void store_lse(std::int64_t row, std::int64_t query, std::int64_t head) {
    Estimate& lse = result_.lse;
    const std::int64_t at = row * problem_.queries + query;
    lse.value[at] = keys_.count == 0 ? kInfinity : attention_.lse[head];
    if (want_ == MlaWant::value) return;
    const double few = natural_logarithm(head);
    lse.sigma[at] = error_.lse_sigma[head] + few / kSigmas;
    lse.worst[at] = error_.lse_worst[head] + few;
    lse.row_systematic[row] += error_.lse_systematic[head] / static_cast<double>(problem_.queries);
  }

  // Most that the way from (sum, max) in base 2 to lse adds: the product of max and a constant that
  // is itself rounded, or the lse of each split and of all of them. Only the last rounding is the
  // output's own.
  double natural_logarithm(std::int64_t head) const {
    const double lse = attention_.lse[head], max = attention_.max[head];
    return std::max(fp32_rounding(max), 2 * exponent_rounding(lse)) +
           0.3 * units_.scalar * std::abs(lse) + units_.function;
  }

  void store_out(std::int64_t row, std::int64_t head, double share) {
    double* out = result_.out.value.data() + row * kMlaDim;
    for (std::int64_t i = 0; i < kMlaDim; ++i) out[i] = share * attention_.out(i, head);
  }

  // The share of the keys depends on lse, and is as wrong for a whole row; so are the weights with
  // which an implementation may have joined splits.
  void store_out_error(std::int64_t row, std::int64_t head, double share) {
    const double lse = attention_.lse[head];
    const double sink = problem_.attn_sink == nullptr ? 0 : problem_.attn_sink[head];
    const double exponent = units_.scalar * (2 * std::abs(lse) + (share < 1 ? std::abs(sink) : 0));
    const double common = 2 * units_.function + exponent;
    const double sigma =
        std::sqrt(square(common) / 3 + square((1 - share) * error_.lse_sigma[head]));
    const double worst = common + (1 - share) * error_.lse_worst[head];
    for (std::int64_t i = 0; i < kMlaDim; ++i) {
      const double size = std::abs(attention_.out(i, head));
      const std::int64_t at = row * kMlaDim + i;
      result_.out.sigma[at] =
          share * std::sqrt(square(error_.sigma(i, head)) + square(sigma * size));
      result_.out.worst[at] = share * (error_.worst(i, head) + worst * size);
    }
    const double size = error_.mean_size[head];
    result_.out.row_mean_sigma[row] =
        share * std::sqrt(square(error_.mean_sigma[head]) + square(sigma * size));
    result_.out.row_systematic[row] =
        share * (error_.systematic[head] + (1 - share) * error_.lse_systematic[head] * size);
  }

  const SparseMlaProblem& problem_;
  MlaWant want_;
  AttentionUnits units_;
  MlaErrorModel model_;
  SparseMlaDecode& result_;
  GatheredKeys keys_;
  MlaAttention attention_;
  MlaError error_;
};

}  // namespace

SparseMlaDecode sparse_mla_decode(const SparseMlaProblem& problem, const Numerics& numerics,
                                  MlaWant want) {
  SparseMlaDecode result;
  result.out.resize(problem.requests * problem.queries * problem.heads, kMlaDim);
  result.out.output = Format::bf16;
  result.lse.resize(problem.requests * problem.heads, problem.queries);
  result.lse.output = Format::f32;
  // A row of lse spans the queries of a request, so a request stays with one thread.
  parallel_for(problem.requests, 1, [&](std::int64_t begin, std::int64_t end) {
    RowWorker worker(problem, numerics, want, result);
    for (std::int64_t row = begin * problem.queries; row < end * problem.queries; ++row) {
      worker.run(row / problem.queries, row % problem.queries);
    }
  });
  set_independent_row_means(result.lse);
  return result;
}

}  // namespace plumb::reference
