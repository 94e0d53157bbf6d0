// SPDX-License-Identifier: Apache-2.0
#include "reference/mla_partials.h"

#include "reference/mla_attention.h"

namespace plumb::reference {

namespace {

constexpr double kLog2E = 1.4426950408889634;

class SplitWorker {
 public:
  SplitWorker(const SparseMlaProblem& problem, std::int64_t block_n, MlaPartials& result)
      : problem_(problem), block_n_(block_n), result_(result) {
    attention_.queries.resize(kMlaDim, problem.heads);
  }

  void run(const PlannedSpan& span, const RequestBlocks& blocks, std::int64_t query) {
    gather_blocks(problem_, span.request, query, block_n_, blocks, span.begin_block, span.end_block,
                  keys_);
    decode_queries(problem_, span.request, query, attention_.queries.data());
    attend(keys_, problem_.sm_scale, attention_);
    store(span.slot * problem_.queries + query);
  }

 private:
  void store(std::int64_t lse_row) {
    for (std::int64_t head = 0; head < problem_.heads; ++head) {
      const std::int64_t out_row = lse_row * problem_.heads + head;
      result_.lse.value[out_row] = attention_.lse[head] * kLog2E;
      for (std::int64_t i = 0; i < kMlaDim; ++i) {
        result_.out.value[out_row * kMlaDim + i] = attention_.out(i, head);
      }
    }
  }

  const SparseMlaProblem& problem_;
  std::int64_t block_n_;
  MlaPartials& result_;
  GatheredKeys keys_;
  MlaAttention attention_;
};

}  // namespace

MlaPartials sparse_mla_partials(const SparseMlaProblem& problem, const Numerics&,
                                const TilePlan& plan, std::int64_t block_n) {
  const std::int64_t slots = problem.requests + std::ssize(plan.tiles);
  MlaPartials result;
  result.out.resize(slots * problem.queries * problem.heads, kMlaDim);
  result.out.output = Format::f32;
  result.lse.resize(slots * problem.queries, problem.heads);
  result.lse.output = Format::f32;
  result.out_written.assign(static_cast<std::size_t>(result.out.rows), false);
  result.lse_written.assign(static_cast<std::size_t>(result.lse.rows), false);

  const std::vector<RequestBlocks> blocks = blocks_of_requests(problem, block_n);
  std::vector<PlannedSpan> spans = planned_spans(plan, blocks);
  std::erase_if(spans, [](const PlannedSpan& span) { return !span.split; });
  for (const PlannedSpan& span : spans) {
    for (std::int64_t query = 0; query < problem.queries; ++query) {
      const std::int64_t row = span.slot * problem.queries + query;
      result.lse_written[row] = true;
      for (std::int64_t head = 0; head < problem.heads; ++head) {
        result.out_written[row * problem.heads + head] = true;
      }
    }
  }
  parallel_for(std::ssize(spans) * problem.queries, 1, [&](std::int64_t begin, std::int64_t end) {
    SplitWorker worker(problem, block_n, result);
    for (std::int64_t i = begin; i < end; ++i) {
      const PlannedSpan& span = spans[i / problem.queries];
      worker.run(span, blocks[span.request], i % problem.queries);
    }
  });
  return result;
}

}  // namespace plumb::reference
