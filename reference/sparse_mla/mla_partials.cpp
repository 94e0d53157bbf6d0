// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_partials.h"

#include <algorithm>

#include "reference/sparse_mla/mla_attention.h"
#include "reference/sparse_mla/mla_error.h"

namespace plumb::reference {

namespace {

class SplitWorker {
 public:
  SplitWorker(const SparseMlaProblem& problem, const Numerics& numerics, std::int64_t block_n,
              MlaPartials& result)
      : problem_(problem), block_n_(block_n), result_(result), model_(numerics) {
    attention_.queries.resize(problem.key_dims(), problem.heads);
  }

  void run(const PlannedSpan& span, const RequestBlocks& blocks, std::int64_t query) {
    gather_blocks(problem_, span.request, query, block_n_, blocks, span.begin_block, span.end_block,
                  keys_);
    decode_queries(problem_, span.request, query, attention_.queries.data());
    attend(keys_, problem_.sm_scale, attention_);
    model_.estimate(keys_, problem_.sm_scale, attention_, error_);
    store(span.slot * problem_.queries + query);
  }

 private:
  void store(std::int64_t lse_row) {
    for (std::int64_t head = 0; head < problem_.heads; ++head) {
      store_out(lse_row * problem_.heads + head, head);
      store_lse(lse_row, head);
    }
  }

  void store_out(std::int64_t row, std::int64_t head) {
    for (std::int64_t i = 0; i < kMlaDim; ++i) {
      result_.out.value[row * kMlaDim + i] = attention_.out(i, head);
      result_.out.sigma[row * kMlaDim + i] = error_.sigma(i, head);
      result_.out.worst[row * kMlaDim + i] = error_.worst(i, head);
    }
    result_.out.row_mean_sigma[row] = error_.mean_sigma[head];
    result_.out.row_systematic[row] = error_.systematic[head];
    result_.out.row_concentration[row] = error_.concentration[head];
  }

  void store_lse(std::int64_t row, std::int64_t head) {
    const std::int64_t at = row * problem_.heads + head;
    result_.lse.value[at] = attention_.lse[head] * std::numbers::log2e;
    result_.lse.sigma[at] = error_.lse_sigma[head] * std::numbers::log2e;
    result_.lse.worst[at] = error_.lse_worst[head] * std::numbers::log2e;
    result_.lse.row_systematic[row] +=
        error_.lse_systematic[head] * std::numbers::log2e / static_cast<double>(problem_.heads);
  }

  const SparseMlaProblem& problem_;
  std::int64_t block_n_;
  MlaPartials& result_;
  GatheredKeys keys_;
  MlaAttention attention_;
  MlaErrorModel model_;
  MlaError error_;
};

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
    SplitWorker worker(problem, numerics, block_n, result);
    for (std::int64_t i = begin; i < end; ++i) {
      const PlannedSpan& span = spans[i / problem.queries];
      worker.run(span, blocks[span.request], i % problem.queries);
    }
  });
  mark_rows(spans, problem, result);
  set_independent_row_means(result.lse);
  return result;
}

}  // namespace plumb::reference
