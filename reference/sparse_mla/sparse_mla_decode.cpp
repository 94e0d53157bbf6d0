// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/sparse_mla_decode.h"

#include "reference/sparse_mla/mla_row.h"

namespace plumb::reference {

SparseMlaDecode sparse_mla_decode(const SparseMlaProblem& problem, const Numerics& numerics,
                                  MlaWant want) {
  SparseMlaDecode result;
  result.out.resize(problem.requests * problem.queries * problem.heads, kMlaDim);
  result.out.output = Format::bf16;
  result.lse.resize(problem.requests * problem.heads, problem.queries);
  result.lse.output = Format::f32;
  const MlaOutput output(problem, numerics);
  // A row of lse holds all queries of a request, so one thread computes a whole request.
  parallel_for(problem.requests, 1, [&](std::int64_t begin, std::int64_t end) {
    MlaRowWorker worker(problem, numerics, want);
    for (std::int64_t row = begin * problem.queries; row < end * problem.queries; ++row) {
      const std::int64_t request = row / problem.queries, query = row % problem.queries;
      worker.run(request, query);
      for (std::int64_t head = 0; head < problem.heads; ++head) {
        const std::int64_t lse_at = (request * problem.heads + head) * problem.queries + query;
        output.store_lse(worker.attention(), worker.error(), head, lse_at, result.lse);
        output.store_out(worker.attention(), worker.error(), head, row * problem.heads + head,
                         result.out);
      }
    }
  });
  set_independent_row_means(result.lse);
  return result;
}

}  // namespace plumb::reference
