// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/prefill_plan.h"

namespace plumb::device::decode {

namespace {

void add_request(const Query& query, std::int64_t ratio, PrefillChunk& chunk, PrefillPlan& plan) {
  const std::int64_t keys = query.seq_len() / ratio;
  plan.state_counts[static_cast<int>(Cache::c4a)].push_back(
      static_cast<std::int32_t>(query.seq_len() / kC4a));
  plan.state_counts[static_cast<int>(Cache::c128a)].push_back(
      static_cast<std::int32_t>(query.seq_len() / kC128a));
  for (std::int64_t i = 0; i < query.tokens; ++i) {
    const std::int64_t attended = (query.request->computed + i + 1) / ratio;
    plan.starts.push_back(static_cast<std::int32_t>(chunk.keys));
    plan.ends.push_back(static_cast<std::int32_t>(chunk.keys + attended));
  }
  ++chunk.requests;
  chunk.tokens += query.tokens;
  chunk.keys += keys;
  plan.key_offsets.push_back(static_cast<std::int32_t>(chunk.keys));
}

}  // namespace

PrefillPlan plan_prefill(const std::vector<Query>& queries, std::int64_t ratio, std::int64_t first,
                         std::int64_t first_token) {
  PrefillPlan plan;
  std::int64_t token = first_token;
  for (std::int64_t i = first; i < std::ssize(queries); ++i) {
    if ((i - first) % kPrefillRequests == 0) {
      plan.chunks.push_back({.first_request = i, .first_token = token});
      plan.key_offsets.push_back(0);
    }
    const Query& query = queries[static_cast<std::size_t>(i)];
    add_request(query, ratio, plan.chunks.back(), plan);
    token += query.tokens;
  }
  return plan;
}

std::int64_t PrefillPlan::first_key_offset(std::size_t chunk) const {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < chunk; ++i) first += chunks[i].requests + 1;
  return first;
}

PrefillInputs::PrefillInputs(const Geometry& geometry, EngineMemory& memory) {
  const std::int64_t tokens = geometry.max_tokens(), requests = geometry.max_requests;
  const auto integers = [&](std::int64_t count, const char* label) {
    return memory.allocate<std::int32_t>(count, label);
  };
  state_counts[static_cast<int>(Cache::c4a)] = integers(requests, "c4a state counts");
  state_counts[static_cast<int>(Cache::c128a)] = integers(requests, "c128a state counts");
  key_offsets = integers(2 * requests, "key offsets");
  starts = integers(tokens, "first keys");
  ends = integers(tokens, "ends of keys");
}

}  // namespace plumb::device::decode
