// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

namespace {

// Pointer to the first index of a row.
const std::int32_t* first_index(const MlaCandidates& candidates, std::int64_t queries,
                                std::int64_t request, std::int64_t query) {
  if (candidates.indptr != nullptr) {
    return candidates.indices + candidates.indptr[request * queries + query];
  }
  return candidates.indices + request * candidates.request_stride + query * candidates.query_stride;
}

// Appends candidates [begin, end) of a row, clipped to the number of its candidates.
void gather(const KvCache& cache, const MlaCandidates& candidates, std::int64_t queries,
            std::int64_t request, std::int64_t query, std::int64_t begin, std::int64_t end,
            GatheredKeys& keys) {
  const std::int64_t count = candidate_count(candidates, queries, request, query);
  const std::int32_t* indices = first_index(candidates, queries, request, query);
  const auto room = static_cast<std::size_t>((keys.count + count) * keys.dims);
  if (keys.values.size() < room) keys.values.resize(room);
  for (std::int64_t i = std::max<std::int64_t>(begin, 0); i < std::min(end, count); ++i) {
    if (indices[i] < 0 || indices[i] >= cache.slots()) continue;
    decode_token(cache, indices[i], keys.values.data() + keys.count * keys.dims);
    ++keys.count;
  }
}

std::int64_t longest_row(const MlaCandidates& candidates, std::int64_t queries,
                         std::int64_t request) {
  std::int64_t longest = 0;
  for (std::int64_t query = 0; query < queries; ++query) {
    longest = std::max(longest, candidate_count(candidates, queries, request, query));
  }
  return longest;
}

}  // namespace

double share_of_keys(const SparseMlaProblem& problem, std::int64_t head, double lse) {
  if (problem.attn_sink == nullptr) return 1;
  return 1 / (1 + std::exp(problem.attn_sink[head] - lse));
}

std::int64_t candidate_count(const MlaCandidates& candidates, std::int64_t queries,
                             std::int64_t request, std::int64_t query) {
  if (candidates.indptr != nullptr) {
    const std::int32_t* row = candidates.indptr + request * queries + query;
    return row[1] - row[0];
  }
  if (candidates.lengths == nullptr) return candidates.width;
  return std::clamp<std::int64_t>(candidates.lengths[request], 0, candidates.width);
}

std::vector<RequestBlocks> blocks_of_requests(const SparseMlaProblem& problem,
                                              std::int64_t block_n) {
  std::vector<RequestBlocks> blocks;
  for (std::int64_t request = 0; request < problem.requests; ++request) {
    const std::int64_t main = longest_row(problem.main, problem.queries, request);
    const std::int64_t extra =
        problem.has_extra() ? longest_row(problem.extra, problem.queries, request) : 0;
    blocks.push_back(request_blocks(main, problem.has_extra(), extra, block_n));
  }
  return blocks;
}

void gather_row(const SparseMlaProblem& problem, std::int64_t request, std::int64_t query,
                GatheredKeys& keys) {
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  keys.count = 0;
  keys.dims = problem.key_dims();
  gather(problem.main_cache, problem.main, problem.queries, request, query, 0, kAll, keys);
  if (!problem.has_extra()) return;
  gather(problem.extra_cache, problem.extra, problem.queries, request, query, 0, kAll, keys);
}

void gather_blocks(const SparseMlaProblem& problem, std::int64_t request, std::int64_t query,
                   std::int64_t block_n, const RequestBlocks& blocks, std::int64_t begin,
                   std::int64_t end, GatheredKeys& keys) {
  keys.count = 0;
  keys.dims = problem.key_dims();
  const std::int64_t main_end = std::min<std::int64_t>(end, blocks.main);
  gather(problem.main_cache, problem.main, problem.queries, request, query, begin * block_n,
         main_end * block_n, keys);
  if (!problem.has_extra()) return;
  gather(problem.extra_cache, problem.extra, problem.queries, request, query,
         (begin - blocks.main) * block_n, (end - blocks.main) * block_n, keys);
}

void decode_queries(const SparseMlaProblem& problem, std::int64_t request, std::int64_t query,
                    double* values) {
  const std::uint16_t* row =
      problem.q + request * problem.q_request_stride + query * problem.q_query_stride;
  const std::int64_t dims = problem.key_dims();
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    for (std::int64_t i = 0; i < dims; ++i) {
      values[head * dims + i] = decode_bf16(row[head * problem.q_head_stride + i]);
    }
  }
}

}  // namespace plumb::reference
