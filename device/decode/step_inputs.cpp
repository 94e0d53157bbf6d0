// SPDX-License-Identifier: Apache-2.0
#include "device/decode/step_inputs.h"

#include <algorithm>
#include <string>

namespace plumb::device::decode {

namespace {

constexpr std::int64_t kKeysPerRequest = std::int64_t{1} << 32;
constexpr Cache kCompressed[] = {Cache::c4a, Cache::c128a};

std::int64_t ratio_of(Cache cache) { return cache == Cache::c4a ? kC4a : kC128a; }

std::int64_t key_of(const Request& request, std::int64_t i) {
  return static_cast<std::int64_t>(request.id) * kKeysPerRequest + i;
}

// The state that a token completes, if it is the last of its group.
void plan_states(const Geometry& geometry, const Request& request, std::int64_t position,
                 StepPlan& plan) {
  for (const Cache cache : kCompressed) {
    const auto which = static_cast<std::size_t>(cache);
    const std::int64_t ratio = ratio_of(cache);
    const bool completes = geometry.has(cache) && (position + 1) % ratio == 0;
    const std::int64_t state = position / ratio;
    plan.slot_mapping[which].push_back(completes ? request.slot(cache, state, geometry) : -1);
    plan.state_keys[which].push_back(key_of(request, state));
  }
}

void plan_token(const Geometry& geometry, const Request& request, std::int64_t position,
                StepPlan& plan) {
  plan.token_keys.push_back(key_of(request, position));
  plan.next_token_keys.push_back(key_of(request, position + 1));
  plan.positions.push_back(position);
  plan.slot_mapping[0].push_back(request.slot(Cache::window, position, geometry));
  plan_states(geometry, request, position, plan);
  plan.state_lens.push_back(static_cast<std::int32_t>((position + 1) / geometry.index_ratio));
  plan.is_padding.push_back(0);
}

void plan_request(const Geometry& geometry, const Request& request, StepPlan& plan) {
  for (std::int64_t i = 0; i < geometry.query_tokens(); ++i) {
    plan_token(geometry, request, request.computed + i, plan);
  }
  plan.query_start_loc.push_back(static_cast<std::int32_t>(plan.positions.size()));
  plan.seq_lens.push_back(static_cast<std::int32_t>(request.computed + geometry.query_tokens()));
  for (int cache = 0; cache < kCaches; ++cache) {
    auto& table = plan.block_tables[cache];
    const std::size_t end =
        table.size() +
        static_cast<std::size_t>(geometry.blocks_per_request(static_cast<Cache>(cache)));
    table.insert(table.end(), request.blocks[cache].begin(), request.blocks[cache].end());
    table.resize(end, 0);
  }
}

void pad(const Geometry& geometry, const Padding& padding, const InputsPolicy& policy,
         StepPlan& plan) {
  const auto tokens = static_cast<std::size_t>(plan.tokens);
  const auto requests = static_cast<std::size_t>(plan.requests);
  plan.token_keys.resize(tokens, padding.token_key);
  plan.next_token_keys.resize(tokens, padding.token_key);
  plan.positions.resize(tokens, 0);
  for (int cache = 0; cache < kCaches; ++cache) {
    plan.slot_mapping[cache].resize(tokens, policy.padding_slot());
    if (cache > 0) plan.state_keys[cache].resize(tokens, padding.token_key);
    plan.block_tables[cache].resize(
        requests * static_cast<std::size_t>(geometry.blocks_per_request(static_cast<Cache>(cache))),
        padding.block);
  }
  plan.query_start_loc.resize(requests + 1, static_cast<std::int32_t>(plan.live_tokens));
  plan.seq_lens.resize(requests, policy.padding_length());
  plan.state_lens.resize(tokens, policy.padding_length());
  plan.is_padding.resize(tokens, 1);
}

template <class T>
Transfer transfer(std::string_view name, T* to, const std::vector<T>& from) {
  return {name, to, from.data(), from.size() * sizeof(T)};
}

}  // namespace

StepPlan plan_step(const Geometry& geometry, const std::vector<const Request*>& scheduled,
                   std::int64_t padded_tokens, const Padding& padding, const InputsPolicy& policy,
                   Padded padded) {
  StepPlan plan;
  plan.live_requests = static_cast<std::int64_t>(scheduled.size());
  plan.live_tokens = plan.live_requests * geometry.query_tokens();
  plan.tokens = padded_tokens;
  const bool all = padded == Padded::tokens_and_requests;
  plan.requests = all ? padded_tokens / geometry.query_tokens() : plan.live_requests;
  plan.attended = all ? padded_tokens : plan.live_tokens;
  plan.query_start_loc.push_back(0);
  for (const Request* request : scheduled) plan_request(geometry, *request, plan);
  pad(geometry, padding, policy, plan);
  return plan;
}

StepInputs::StepInputs(const Geometry& geometry, Memory& memory) {
  const std::int64_t tokens = geometry.max_tokens(), requests = geometry.max_requests;
  token_keys = memory.allocate<std::int64_t>(tokens, "token_keys");
  next_token_keys = memory.allocate<std::int64_t>(tokens, "next_token_keys");
  positions = memory.allocate<std::int64_t>(tokens, "positions");
  static constexpr const char* kNames[kCaches] = {"window", "c4a", "c128a"};
  for (int cache = 0; cache < kCaches; ++cache) {
    const std::string name = kNames[cache];
    slot_mapping[cache] = memory.allocate<std::int64_t>(tokens, name + " slot_mapping");
    state_keys[cache] =
        cache > 0 ? memory.allocate<std::int64_t>(tokens, name + " state_keys") : nullptr;
    block_tables[cache] = memory.allocate<std::int32_t>(
        requests * geometry.blocks_per_request(static_cast<Cache>(cache)), name + " block_table");
  }
  query_start_loc = memory.allocate<std::int32_t>(requests + 1, "query_start_loc");
  seq_lens = memory.allocate<std::int32_t>(requests, "seq_lens");
  state_lens = memory.allocate<std::int32_t>(tokens, "state_lens");
  is_padding = memory.allocate<std::uint8_t>(tokens, "is_padding");
}

std::vector<Transfer> transfers(const StepPlan& plan, const StepInputs& inputs,
                                const InputsPolicy& policy) {
  std::vector<Transfer> all{
      transfer("token_keys", inputs.token_keys, plan.token_keys),
      transfer("next_token_keys", inputs.next_token_keys, plan.next_token_keys),
      transfer("positions", inputs.positions, plan.positions),
      transfer("query_start_loc", inputs.query_start_loc, plan.query_start_loc),
      transfer("seq_lens", inputs.seq_lens, plan.seq_lens),
      transfer("state_lens", inputs.state_lens, plan.state_lens),
      transfer("is_padding", inputs.is_padding, plan.is_padding)};
  for (int cache = 0; cache < kCaches; ++cache) {
    all.push_back(transfer("slot_mapping", inputs.slot_mapping[cache], plan.slot_mapping[cache]));
    Transfer table = transfer("block_tables", inputs.block_tables[cache], plan.block_tables[cache]);
    const std::int64_t rows = policy.rows_sent(plan.live_requests, plan.requests);
    table.bytes = table.bytes * static_cast<std::size_t>(rows) /
                  static_cast<std::size_t>(std::max<std::int64_t>(plan.requests, 1));
    all.push_back(table);
    if (cache > 0)
      all.push_back(transfer("state_keys", inputs.state_keys[cache], plan.state_keys[cache]));
  }
  return all;
}

}  // namespace plumb::device::decode
