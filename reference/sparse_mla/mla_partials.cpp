// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_partials.h"

#include <Eigen/Core>
#include <algorithm>
#include <numbers>

#include "reference/sparse_mla/mla_row.h"

namespace plumb::reference {

namespace {

// Stores the result of one split. Row r of result.out belongs to element r of result.lse.
void store_split(const MlaAttention& attention, const MlaError& error, std::int64_t lse_row,
                 MlaPartials& result) {
  constexpr double kLog2E = std::numbers::log2e;
  const Eigen::Index heads = attention.out.cols();
  for (Eigen::Index head = 0; head < heads; ++head) {
    const std::int64_t row = lse_row * heads + head;
    const auto of_row = [row](std::vector<double>& all) {
      return Eigen::Map<Eigen::ArrayXd>(all.data() + row * kMlaDim, kMlaDim);
    };
    of_row(result.out.value) = attention.out.col(head).array();
    of_row(result.out.sigma) = error.sigma.col(head);
    of_row(result.out.worst) = error.worst.col(head);
    result.out.row_mean_sigma[row] = error.mean_sigma[head];
    result.out.row_systematic[row] = error.systematic[head];
    result.out.row_concentration[row] = error.concentration[head];
    result.lse.value[row] = attention.lse[head] * kLog2E;
    result.lse.sigma[row] = error.lse_sigma[head] * kLog2E;
    result.lse.worst[row] = error.lse_worst[head] * kLog2E;
    result.lse.row_systematic[lse_row] +=
        error.lse_systematic[head] * kLog2E / static_cast<double>(heads);
  }
}

void mark_rows(const std::vector<PlannedSpan>& spans, const SparseMlaProblem& problem,
               MlaPartials& result) {
  result.out_written.assign(static_cast<std::size_t>(result.out.rows), false);
  result.lse_written.assign(static_cast<std::size_t>(result.lse.rows), false);
  for (const PlannedSpan& span : spans) {
    for (std::int64_t query = 0; query < problem.queries; ++query) {
      const std::int64_t row = span.slot * problem.queries + query;
      result.lse_written[row] = true;
      std::fill_n(result.out_written.begin() + row * problem.heads, problem.heads, true);
    }
  }
}

}  // namespace

MlaPartials sparse_mla_partials(const SparseMlaProblem& problem, const Numerics& numerics,
                                const TilePlan& plan, std::int64_t block_n) {
  const std::int64_t slots = problem.requests + std::ssize(plan.tiles);
  MlaPartials result;
  result.out.resize(slots * problem.queries * problem.heads, kMlaDim);
  result.out.output = Format::f32;
  result.lse.resize(slots * problem.queries, problem.heads);
  result.lse.output = Format::f32;

  const std::vector<RequestBlocks> blocks = blocks_of_requests(problem, block_n);
  std::vector<PlannedSpan> spans = planned_spans(plan, blocks);
  std::erase_if(spans, [](const PlannedSpan& span) { return !span.split; });
  parallel_for(std::ssize(spans) * problem.queries, 1, [&](std::int64_t begin, std::int64_t end) {
    MlaRowWorker worker(problem, numerics, MlaWant::value_and_bound);
    for (std::int64_t i = begin; i < end; ++i) {
      const PlannedSpan& span = spans[i / problem.queries];
      const std::int64_t query = i % problem.queries;
      worker.run_blocks(span, blocks[span.request], block_n, query);
      store_split(worker.attention(), *worker.error(), span.slot * problem.queries + query, result);
    }
  });
  mark_rows(spans, problem, result);
  set_independent_row_means(result.lse);
  return result;
}

}  // namespace plumb::reference
