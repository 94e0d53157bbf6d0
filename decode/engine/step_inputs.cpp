// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/step_inputs.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace plumb::device::decode {

namespace {

void plan_token(const Geometry& geometry, const Request& request, std::int64_t position,
                StepPlan& plan) {
  plan.token_keys.push_back(request.token(position));
  plan.next_token_keys.push_back(request.token(position + 1));
  plan.positions.push_back(position);
  for (const Cache cache : kOfTokens) {
    if (!geometry.has(cache)) continue;
    plan.slot_mapping[static_cast<int>(cache)].push_back(request.slot(cache, position, geometry));
  }
  plan.state_lens.push_back(static_cast<std::int32_t>((position + 1) / geometry.index_ratio));
  plan.is_padding.push_back(0);
}

void plan_request(const Geometry& geometry, const Query& query, StepPlan& plan) {
  const Request& request = *query.request;
  for (std::int64_t i = 0; i < query.tokens; ++i) {
    plan_token(geometry, request, request.computed + i, plan);
  }
  const auto row = static_cast<std::int32_t>(plan.seq_lens.size());
  plan.token_to_req.resize(plan.positions.size(), row);
  plan.query_start_loc.push_back(static_cast<std::int32_t>(plan.positions.size()));
  plan.seq_lens.push_back(static_cast<std::int32_t>(query.seq_len()));
  for (int cache = 0; cache < kCaches; ++cache) {
    auto& table = plan.block_tables[cache];
    const std::size_t end =
        table.size() +
        static_cast<std::size_t>(geometry.blocks_per_request(static_cast<Cache>(cache)));
    table.insert(table.end(), request.blocks[cache].begin(), request.blocks[cache].end());
    table.resize(end, 0);
  }
}

void count_query(const Geometry& geometry, const Query& query, StepPlan& plan) {
  const auto refuse = [&](const char* what) {
    throw std::invalid_argument("request " + std::to_string(query.request->id) + what);
  };
  if (query.tokens < 1) refuse(" is scheduled without a token");
  ++plan.live_requests;
  plan.live_tokens += query.tokens;
  if (query.prefill) {
    ++plan.num_prefills;
    return;
  }
  if (plan.num_prefills > 0) refuse(" decodes behind a prefill");
  if (query.tokens > geometry.query_tokens()) refuse(" decodes more tokens than it may");
  plan.packed = plan.packed || (plan.num_decodes > 0 && query.tokens != plan.next_n);
  plan.next_n = std::max(plan.next_n, query.tokens);
  ++plan.num_decodes;
  plan.num_decode_tokens += query.tokens;
}

void count(const Geometry& geometry, const std::vector<Query>& queries, std::int64_t padded_tokens,
           Padded padded, StepPlan& plan) {
  for (const Query& query : queries) count_query(geometry, query, plan);
  plan.uniform = is_uniform(geometry, queries);
  plan.tokens = padded_tokens;
  const bool whole = plan.uniform && padded == Padded::tokens_and_requests;
  plan.requests = whole ? padded_tokens / geometry.query_tokens() : plan.live_requests;
  plan.attended = whole ? padded_tokens : plan.live_tokens;
  if (plan.uniform) plan.next_n = geometry.query_tokens();
}

// Gives every request that decodes next_n rows, as many as the longest has. A planner takes the
// last length of a request for its longest, so padding rows get the length of the last token.
void pack(const std::vector<Query>& queries, StepPlan& plan) {
  std::size_t token = 0;
  for (const Query& query : queries) {
    if (query.prefill) return;
    plan.decode_lens.push_back(static_cast<std::int32_t>(query.tokens));
    for (std::int64_t i = 0; i < plan.next_n; ++i) {
      token += i < query.tokens ? 1 : 0;
      plan.packed_state_lens.push_back(plan.state_lens[token - 1]);
    }
  }
}

void pad(const Geometry& geometry, const Padding& padding, const InputsPolicy& policy,
         StepPlan& plan) {
  const auto tokens = static_cast<std::size_t>(plan.tokens);
  const auto requests = static_cast<std::size_t>(plan.requests);
  plan.token_keys.resize(tokens, padding.token_key);
  plan.next_token_keys.resize(tokens, padding.token_key);
  plan.positions.resize(tokens, 0);
  plan.token_to_req.resize(tokens, 0);
  for (const Cache cache : kOfTokens) {
    if (!geometry.has(cache)) continue;
    plan.slot_mapping[static_cast<int>(cache)].resize(tokens, policy.padding_slot());
  }
  for (int cache = 0; cache < kCaches; ++cache) {
    plan.block_tables[cache].resize(
        requests * static_cast<std::size_t>(geometry.blocks_per_request(static_cast<Cache>(cache))),
        padding.block);
  }
  plan.query_start_loc.resize(requests + 1, static_cast<std::int32_t>(plan.live_tokens));
  plan.seq_lens.resize(requests, policy.padding_length());
  plan.state_lens.resize(tokens, policy.padding_states());
  plan.is_padding.resize(tokens, 1);
}

template <class T>
Transfer transfer(std::string_view name, T* to, const std::vector<T>& from) {
  return {name, to, from.data(), from.size() * sizeof(T)};
}

}  // namespace

bool is_uniform(const Geometry& geometry, const std::vector<Query>& queries) {
  return std::all_of(queries.begin(), queries.end(), [&](const Query& query) {
    return !query.prefill && query.tokens == geometry.query_tokens();
  });
}

StepPlan plan_step(const Geometry& geometry, const std::vector<Query>& queries,
                   std::int64_t padded_tokens, const Padding& padding, const InputsPolicy& policy,
                   Padded padded) {
  StepPlan plan;
  count(geometry, queries, padded_tokens, padded, plan);
  plan.query_start_loc.push_back(0);
  for (const Query& query : queries) plan_request(geometry, query, plan);
  if (plan.packed) pack(queries, plan);
  plan.prefill =
      plan_prefill(queries, geometry.index_ratio, plan.num_decodes, plan.num_decode_tokens);
  pad(geometry, padding, policy, plan);
  return plan;
}

void write_only(const WindowGaps& gaps, StepPlan& plan) {
  for (const Cache cache : kOfTokens) {
    auto& slots = plan.slot_mapping[static_cast<std::size_t>(cache)];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!gaps[cache].has(plan.positions[i])) slots[i] = -1;
    }
  }
}

StepInputs::StepInputs(const Geometry& geometry, EngineMemory& memory) : prefill(geometry, memory) {
  const std::int64_t tokens = geometry.max_tokens(), requests = geometry.max_requests;
  token_keys = memory.allocate<std::int64_t>(tokens, "token_keys");
  next_token_keys = memory.allocate<std::int64_t>(tokens, "next_token_keys");
  positions = memory.allocate<std::int64_t>(tokens, "positions");
  draft_positions =
      geometry.drafter ? memory.allocate<std::int64_t>(tokens, "draft positions") : nullptr;
  token_to_req = memory.allocate<std::int32_t>(tokens, "token_to_req");
  static constexpr const char* kNames[kCaches] = {"window", "c4a", "c128a", "c4a partial",
                                                  "c128a partial"};
  for (int cache = 0; cache < kCaches; ++cache) {
    block_tables[cache] = memory.allocate<std::int32_t>(
        requests * geometry.blocks_per_request(static_cast<Cache>(cache)),
        std::string(kNames[cache]) + " block_table");
  }
  for (const Cache cache : kOfTokens) {
    const int which = static_cast<int>(cache);
    slot_mapping[which] =
        memory.allocate<std::int64_t>(tokens, std::string(kNames[which]) + " slot_mapping");
  }
  query_start_loc = memory.allocate<std::int32_t>(requests + 1, "query_start_loc");
  seq_lens = memory.allocate<std::int32_t>(requests, "seq_lens");
  state_lens = memory.allocate<std::int32_t>(tokens, "state_lens");
  is_padding = memory.allocate<std::uint8_t>(tokens, "is_padding");
  decode_lens = memory.allocate<std::int32_t>(requests, "decode_lens");
  packed_state_lens = memory.allocate<std::int32_t>(tokens, "packed state_lens");
}

std::vector<Transfer> transfers(const StepPlan& plan, const StepInputs& inputs,
                                const InputsPolicy& policy, std::int64_t sent) {
  std::vector<Transfer> all{
      transfer("token_keys", inputs.token_keys, plan.token_keys),
      transfer("next_token_keys", inputs.next_token_keys, plan.next_token_keys),
      transfer("positions", inputs.positions, plan.positions),
      transfer("query_start_loc", inputs.query_start_loc, plan.query_start_loc),
      transfer("seq_lens", inputs.seq_lens, plan.seq_lens),
      transfer("state_lens", inputs.state_lens, plan.state_lens),
      transfer("is_padding", inputs.is_padding, plan.is_padding),
      transfer("decode_lens", inputs.decode_lens, plan.decode_lens),
      transfer("packed_state_lens", inputs.packed_state_lens, plan.packed_state_lens),
      transfer("first keys", inputs.prefill.starts, plan.prefill.starts),
      transfer("ends of keys", inputs.prefill.ends, plan.prefill.ends)};
  if (policy.sends_token_to_req(sent)) {
    all.push_back(transfer("token_to_req", inputs.token_to_req, plan.token_to_req));
  }
  if (policy.sends_key_offsets(sent)) {
    all.push_back(transfer("key_offsets", inputs.prefill.key_offsets, plan.prefill.key_offsets));
  }
  if (inputs.draft_positions != nullptr && policy.sends_draft_positions(sent)) {
    all.push_back(transfer("draft positions", inputs.draft_positions, plan.positions));
  }
  for (int cache = 0; cache < kCaches; ++cache) {
    all.push_back(transfer("slot_mapping", inputs.slot_mapping[cache], plan.slot_mapping[cache]));
    Transfer table = transfer("block_tables", inputs.block_tables[cache], plan.block_tables[cache]);
    const std::int64_t rows = policy.rows_sent(plan.live_requests, plan.requests);
    table.bytes = table.bytes * static_cast<std::size_t>(rows) /
                  static_cast<std::size_t>(std::max<std::int64_t>(plan.requests, 1));
    all.push_back(table);
  }
  for (const Cache cache : kCompressed) {
    const int which = static_cast<int>(cache);
    all.push_back(transfer("state_counts", inputs.prefill.state_counts[which],
                           plan.prefill.state_counts[which]));
  }
  std::erase_if(all, [](const Transfer& one) { return one.bytes == 0; });
  return all;
}

}  // namespace plumb::device::decode
