// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/unfused_attention.h"

#include <optional>
#include <utility>
#include <vector>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

namespace {

// The scores of a row's candidates and, as the last column, the sink.
Tracked with_sinks(const SparseMlaProblem& problem, const Tracked& scores,
                   const Numerics& numerics) {
  if (problem.attn_sink == nullptr) return scores;
  const Tracked sinks({problem.attn_sink, problem.attn_sink + problem.heads}, {problem.heads, 1},
                      numerics);
  return joined({scores, rounded(sinks, numerics.score)}, 1);
}

class UnfusedRow {
 public:
  UnfusedRow(const SparseMlaProblem& problem, std::int64_t row, const Numerics& numerics)
      : problem_(problem), numerics_(numerics) {
    gather_row(problem, row, 0, gathered_);
    if (gathered_.count == 0) return;
    std::vector<double> queries(static_cast<std::size_t>(problem.heads * gathered_.dims));
    decode_queries(problem, row, 0, queries.data());
    const Tracked q(std::move(queries), {problem.heads, gathered_.dims}, numerics);
    gathered_.values.resize(static_cast<std::size_t>(gathered_.count * gathered_.dims));
    keys_ = Tracked(gathered_.values, {gathered_.count, gathered_.dims}, numerics);
    const Tracked products = rounded(matmul(q, transposed(*keys_)), numerics.score);
    scores_ = rounded(products * double{problem.sm_scale}, numerics.score);
  }

  Tracked out() const {  // [heads, 512]
    if (!scores_) return constant(0, kMlaDim);
    const Tracked all = with_sinks(problem_, *scores_, numerics_);
    const Tracked weights = exp(rounded(all - nth_largest(all, 1, 0), numerics_.score));
    // A weight is part of its sum, so p is at most 1. The quotient alone may have an error without
    // a limit: errors of low scores can exceed the sum.
    const Tracked p = rounded(clamp(weights / sum(weights, 1), 0, 1), numerics_.score);
    return matmul(sliced(p, 1, 0, gathered_.count), sliced(*keys_, 1, 0, kMlaDim));
  }
  Tracked max_logits() const {  // [1, heads]
    if (!scores_) return reshaped(constant(-kInfinity, 1), {1, problem_.heads});
    return reshaped(nth_largest(*scores_, 1, 0), {1, problem_.heads});
  }
  Tracked lse() const {  // [1, heads]
    if (!scores_) return reshaped(constant(kInfinity, 1), {1, problem_.heads});
    const Tracked top = nth_largest(*scores_, 1, 0);
    return reshaped(top + log(sum(exp(*scores_ - top), 1)), {1, problem_.heads});
  }

 private:
  Tracked constant(double value, std::int64_t columns) const {
    return {std::vector<double>(static_cast<std::size_t>(problem_.heads * columns), value),
            {problem_.heads, columns},
            numerics_};
  }

  const SparseMlaProblem& problem_;
  const Numerics& numerics_;
  GatheredKeys gathered_;
  std::optional<Tracked> keys_, scores_;  // empty: the row has no candidates
};

}  // namespace

SparseMlaPrefill unfused_mla_prefill(const SparseMlaProblem& problem, const Numerics& numerics) {
  const auto row = [&](std::int64_t index) { return UnfusedRow(problem, index, numerics); };
  const auto of_row = [&](auto member) {
    return [&, member](std::int64_t begin, std::int64_t end) {
      if (begin == end) return Tracked({}, {0, problem.heads}, numerics);
      return (row(begin).*member)();
    };
  };
  SparseMlaPrefill result;
  result.out = estimate_by_blocks(problem.requests * problem.heads, problem.heads, Format::bf16,
                                  [&](std::int64_t begin, std::int64_t end) {
                                    if (begin == end) return Tracked({}, {0, kMlaDim}, numerics);
                                    return row(begin / problem.heads).out();
                                  });
  result.max_logits =
      estimate_by_blocks(problem.requests, 1, Format::f32, of_row(&UnfusedRow::max_logits));
  result.lse = estimate_by_blocks(problem.requests, 1, Format::f32, of_row(&UnfusedRow::lse));
  return result;
}

}  // namespace plumb::reference
