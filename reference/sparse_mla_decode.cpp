// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla_decode.h"

#include <cmath>
#include <limits>

#include "reference/mla_attention.h"

namespace plumb::reference {

namespace {

// Share of the keys in the softmax once the sink has joined it: 1 / (1 + exp(sink - lse)).
double share_of_keys(const SparseMlaProblem& problem, std::int64_t head, double lse) {
  if (problem.attn_sink == nullptr) return 1;
  return 1 / (1 + std::exp(problem.attn_sink[head] - lse));
}

void store_row(const SparseMlaProblem& problem, std::int64_t request, std::int64_t query,
               const MlaAttention& attention, SparseMlaDecode& result) {
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    const double lse = attention.lse[head];
    const bool lonely = lse == -std::numeric_limits<double>::infinity();
    const std::int64_t lse_row = request * problem.heads + head;
    result.lse.value[lse_row * problem.queries + query] =
        lonely ? std::numeric_limits<double>::infinity() : lse;
    const std::int64_t out_row = (request * problem.queries + query) * problem.heads + head;
    const double share = lonely ? 0 : share_of_keys(problem, head, lse);
    double* out = result.out.value.data() + out_row * kMlaDim;
    for (std::int64_t i = 0; i < kMlaDim; ++i) {
      out[i] = share == 0 ? 0 : attention.out(i, head) * share;
    }
  }
}

}  // namespace

SparseMlaDecode sparse_mla_decode(const SparseMlaProblem& problem, const Numerics&, MlaWant) {
  SparseMlaDecode result;
  result.out.resize(problem.requests * problem.queries * problem.heads, kMlaDim);
  result.out.output = Format::bf16;
  result.lse.resize(problem.requests * problem.heads, problem.queries);
  result.lse.output = Format::f32;
  const auto rows = [&](std::int64_t begin, std::int64_t end) {
    GatheredKeys keys;
    MlaAttention attention;
    attention.queries.resize(kMlaDim, problem.heads);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t request = row / problem.queries, query = row % problem.queries;
      gather_row(problem, request, query, keys);
      decode_queries(problem, request, query, attention.queries.data());
      attend(keys, problem.sm_scale, attention);
      store_row(problem, request, query, attention, result);
    }
  };
  parallel_for(problem.requests * problem.queries, 1, rows);
  return result;
}

}  // namespace plumb::reference
