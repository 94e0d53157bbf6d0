// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/sparse_mla_prefill.h"

namespace plumb::reference {

SparseMlaPrefill sparse_mla_prefill(const SparseMlaProblem& problem, const Numerics& numerics,
                                    MlaWant want) {
  SparseMlaPrefill result;
  result.out.resize(problem.requests * problem.heads, kMlaDim);
  result.out.output = Format::bf16;
  for (Estimate* estimate : {&result.max_logits, &result.lse}) {
    estimate->resize(problem.requests, problem.heads);
    estimate->output = Format::f32;
  }
  const MlaOutput output(problem, numerics);
  parallel_for(problem.requests, 1, [&](std::int64_t begin, std::int64_t end) {
    MlaRowWorker worker(problem, numerics, want);
    for (std::int64_t row = begin; row < end; ++row) {
      worker.run(row, 0);
      for (std::int64_t head = 0; head < problem.heads; ++head) {
        const std::int64_t at = row * problem.heads + head;
        output.store_max(worker.attention(), worker.error(), head, at, result.max_logits);
        output.store_lse(worker.attention(), worker.error(), head, at, result.lse);
        output.store_out(worker.attention(), worker.error(), head, at, result.out);
      }
    }
  });
  set_independent_row_means(result.max_logits);
  set_independent_row_means(result.lse);
  return result;
}

}  // namespace plumb::reference
