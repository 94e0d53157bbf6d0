// SPDX-License-Identifier: Apache-2.0
//
// What the host tells the device before a step: planned in ordinary memory, sent to buffers whose
// addresses never change, because a captured graph reads them   [10.4].
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/engine/prefill_plan.h"
#include "decode/engine/requests.h"
#include "decode/policies/inputs_policy.h"

namespace plumb::device::decode {

// Tokens of all scheduled requests, in their order, those that decode first, and padding behind
// them up to the captured size. Rows of padding requests: no tokens, no context, slot -1.
struct StepPlan {
  std::int64_t live_tokens = 0, live_requests = 0;
  std::int64_t tokens = 0, requests = 0;  // with padding
  std::int64_t attended = 0;              // tokens with metadata: what indexer and attention run on
  std::int64_t num_decode_tokens = 0, num_decodes = 0, num_prefills = 0;
  bool uniform = true;                        // as is_uniform says
  std::int64_t next_n = 0;                    // most tokens of a request that decodes
  bool packed = false;                        // not all of these have as many
  std::vector<std::int64_t> token_keys;       // of the embedding: request and position
  std::vector<std::int64_t> next_token_keys;  // of the token behind each
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> slot_mapping[kCaches];  // of the token; of the state that it completes
  std::vector<std::int64_t> state_keys[kCaches];    // what that state is made of
  std::vector<std::int32_t> query_start_loc, seq_lens;
  std::vector<std::int32_t> block_tables[kCaches];  // [requests, blocks of a request]
  std::vector<std::int32_t> state_lens;             // entries that the indexer may score   [4.6]
  std::vector<std::uint8_t> is_padding;
  // Of a packed batch: tokens of each request that decodes, and state_lens as [decodes, next_n], 0
  // where a request has no such token.
  std::vector<std::int32_t> decode_lens, packed_state_lens;
  PrefillPlan prefill;

  std::int64_t prefill_tokens() const { return live_tokens - num_decode_tokens; }
  // Of those with metadata, padding requests included.
  std::int64_t decode_rows() const { return attended - prefill_tokens(); }
};

// Does every request decode as many tokens as it may? Only such a batch is captured whole, and
// padded with requests   [10.1, 10.2].
bool is_uniform(const Geometry& geometry, const std::vector<Query>& queries);

// What stands where the contract leaves it open: embeddings of padding rows, block tables of
// padding requests. Results of live rows must not depend on it.
struct Padding {
  std::int64_t token_key = 0;
  std::int32_t block = 0;
};

// What is padded: a FULL graph holds the attention of padding requests too, and its batch is
// uniform; around any other graph the attention has the live ones   [10.2].
enum class Padded { tokens_and_requests, tokens };

// The requests' next query tokens; their blocks are there (Requests::reserve). Throws
// std::invalid_argument for a prefill in front of a request that decodes, for a query without
// tokens and for one with more than may be decoded.
StepPlan plan_step(const Geometry& geometry, const std::vector<Query>& queries,
                   std::int64_t padded_tokens, const Padding& padding, const InputsPolicy& policy,
                   Padded padded = Padded::tokens_and_requests);

// Device addresses, for max_tokens and max_requests.
struct StepInputs {
  StepInputs(const Geometry& geometry, EngineMemory& memory);

  std::int64_t* token_keys;
  std::int64_t* next_token_keys;
  std::int64_t* positions;
  std::int64_t* draft_positions;  // of the drafter; none without one
  std::int64_t* slot_mapping[kCaches];
  std::int64_t* state_keys[kCaches];  // none for the window
  std::int32_t* query_start_loc;
  std::int32_t* seq_lens;
  std::int32_t* block_tables[kCaches];
  std::int32_t* state_lens;
  std::uint8_t* is_padding;
  std::int32_t *decode_lens, *packed_state_lens;
  PrefillInputs prefill;
};

// One array of a plan and where it goes.
struct Transfer {
  std::string_view name;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};
// Those that are not empty. `sent`: how many steps' were before.
std::vector<Transfer> transfers(const StepPlan& plan, const StepInputs& inputs,
                                const InputsPolicy& policy, std::int64_t sent = 0);

}  // namespace plumb::device::decode
