// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_combine.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Relative error of the fp32 constants ln 2 and log2 e, in units of kUnitF32.
constexpr double kRoundingOfConstant = 0.3;

// Converts a logarithm to another base. Kernels do so in different ways, with up to `roundings`
// roundings.
Tracked in_other_base(Tracked a, double roundings) {
  Estimate errors;
  errors.resize(1, elements_of(a.sizes()));
  for (std::size_t i = 0; i < errors.worst.size(); ++i) {
    errors.worst[i] = roundings * kUnitF32 * std::abs(a.values()[i]);
    errors.sigma[i] = kUniformSigma * errors.worst[i];
  }
  return with_errors(std::move(a), errors);
}

// The non-empty splits of one head of one query row.
struct HeadSplits {
  std::vector<double> lse;  // natural logarithm
  std::vector<const float*> out;

  void add(const float* split_out, float split_lse) {
    if (split_lse == -kInfinity) return;
    lse.push_back(split_lse * std::numbers::ln2);
    out.push_back(split_out);
  }
  // The splits' outputs as the columns of [512, n].
  std::vector<double> columns() const {
    std::vector<double> numbers;
    numbers.reserve(out.size() * kMlaDim);
    for (std::int64_t d = 0; d < kMlaDim; ++d) {
      for (const float* split : out) numbers.push_back(split[d]);
    }
    return numbers;
  }
};

// The combine adds sequentially in fp32, independent of what the kernel declares for its long
// products.
Numerics of_combine(Numerics numerics) {
  numerics.chains = 1;
  numerics.product = numerics.accumulator = Format::f32;
  numerics.unit = SumUnit::fp32;
  return numerics;
}

struct JoinedHead {
  Tracked out, lse;  // [1, 512], [1, 1]
};
JoinedHead joined_splits(const HeadSplits& splits, const float* sink, const Numerics& numerics) {
  const std::int64_t count = std::ssize(splits.lse);
  if (count == 0) {
    return {Tracked(std::vector<double>(kMlaDim), {1, kMlaDim}, numerics),
            Tracked({kInfinity}, {1, 1}, numerics)};
  }
  const Tracked lse(splits.lse, {1, count}, numerics);
  const Tracked out(splits.columns(), {kMlaDim, count}, numerics);
  const Tracked top = max(lse, 1);
  const Tracked total = top + log(sum(exp(lse - top), 1));
  Tracked with_sink = total;
  if (sink != nullptr) {
    const Tracked exponent = in_other_base({{*sink}, {1, 1}, numerics}, 1 + kRoundingOfConstant);
    with_sink = total + log(exp(exponent - total) + 1.0);
  }
  Tracked result = sum(exp(lse - with_sink) * out, 1);
  return {reshaped(std::move(result), {1, kMlaDim}), in_other_base(total, kRoundingOfConstant)};
}

}  // namespace

void mla_combine(const SparseMlaProblem& problem, const Numerics& numerics,
                 std::span<const std::int32_t> num_splits, const float* partial_out,
                 const float* partial_lse, SparseMlaDecode& result) {
  const Numerics of_sums = of_combine(numerics);
  // All queries of a head, which form one row of lse.
  const auto combine = [&](std::int64_t request, std::int64_t head) {
    const float* sink = problem.attn_sink == nullptr ? nullptr : problem.attn_sink + head;
    std::vector<Tracked> of_queries;
    for (std::int64_t query = 0; query < problem.queries; ++query) {
      HeadSplits splits;
      for (std::int64_t slot = num_splits[request]; slot < num_splits[request + 1]; ++slot) {
        const std::int64_t at = (slot * problem.queries + query) * problem.heads + head;
        splits.add(partial_out + at * kMlaDim, partial_lse[at]);
      }
      JoinedHead row_of_head = joined_splits(splits, sink, of_sums);
      const std::int64_t row = (request * problem.queries + query) * problem.heads + head;
      write_rows(*row_of_head.out.node(), row, result.out);
      of_queries.push_back(std::move(row_of_head.lse));
    }
    write_rows(*joined(of_queries, 1).node(), request * problem.heads + head, result.lse);
  };
  parallel_for(problem.requests * problem.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t request = i / problem.heads;
      if (num_splits[request + 1] - num_splits[request] > 1) combine(request, i % problem.heads);
    }
  });
}

}  // namespace plumb::reference
