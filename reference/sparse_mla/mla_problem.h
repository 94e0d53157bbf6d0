// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a sparse MLA decode or prefill, and the cached tokens that a query row attends to.
// In a prefill every query row counts as one request, and the cache is a workspace of bf16 rows.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/cache/kv_cache.h"
#include "reference/sparse_mla/tile_plan.h"

namespace plumb::reference {

// Candidates of every query row in one cache. Row r = request * queries + query.
//  dense:  indices [requests, queries, width] with strides, of which the first lengths[request]
//          count (clamped to [0, width]; no lengths = all)
//  ragged: row r owns indices[indptr[r] .. indptr[r + 1])
// An index is a slot of the cache. Indices outside [0, slots) are skipped. The decode op promises
// this for -1 only, the prefill op for all of them.
struct MlaCandidates {
  const std::int32_t* indices = nullptr;
  const std::int32_t* lengths = nullptr;  // [requests]
  const std::int32_t* indptr = nullptr;   // [requests * queries + 1]; not null = ragged
  std::int64_t request_stride = 0, query_stride = 0;
  std::int64_t width = 0;
};

struct SparseMlaProblem {
  const std::uint16_t* q = nullptr;  // bf16 [requests, queries, heads, key_dims()]
  std::int64_t requests = 0, queries = 1, heads = 1;
  std::int64_t q_request_stride = 0, q_query_stride = 0, q_head_stride = 0;
  KvCache main_cache, extra_cache;  // of the same layout; extra.data == nullptr: no extra cache
  MlaCandidates main, extra;
  const float* attn_sink = nullptr;  // [heads], optional
  float sm_scale = 1;

  bool has_extra() const { return extra_cache.data != nullptr && extra.indices != nullptr; }
  std::int64_t key_dims() const { return main_cache.key_dims(); }
};

// Share of the keys in a softmax that includes the head's sink: 1 / (1 + exp(sink - lse)).
double share_of_keys(const SparseMlaProblem& problem, std::int64_t head, double lse);

// Number of candidates of one row, including holes (indices that are skipped).
std::int64_t candidate_count(const MlaCandidates& candidates, std::int64_t queries,
                             std::int64_t request, std::int64_t query);

// Number of blocks of every request, for the planner. Ragged rows of one request may differ in
// length: the longest row decides, and shorter rows end in holes.
std::vector<RequestBlocks> blocks_of_requests(const SparseMlaProblem& problem,
                                              std::int64_t block_n);

// Keys of one row, [count, dims]: main keys, then extra keys, without holes. Values are the first
// 512 elements of a key.
struct GatheredKeys {
  std::int64_t count = 0, dims = kMlaDim;
  std::vector<double> values;
};
void gather_row(const SparseMlaProblem& problem, std::int64_t request, std::int64_t query,
                GatheredKeys& keys);
// Gathers only the candidates of blocks [begin, end) of the request.
void gather_blocks(const SparseMlaProblem& problem, std::int64_t request, std::int64_t query,
                   std::int64_t block_n, const RequestBlocks& blocks, std::int64_t begin,
                   std::int64_t end, GatheredKeys& keys);
// The query vectors of one row, [heads, key_dims()].
void decode_queries(const SparseMlaProblem& problem, std::int64_t request, std::int64_t query,
                    double* values);

}  // namespace plumb::reference
