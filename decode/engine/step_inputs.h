// SPDX-License-Identifier: Apache-2.0
//
// Inputs of a step: planned in host memory, then sent to device buffers whose addresses never
// change, because captured graphs read them   [10.4].
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

// Tokens of the scheduled requests in order: decodes, then prefills, then padding up to the
// captured size. Padding requests have no tokens, no context and slot -1.
struct StepPlan {
  std::int64_t live_tokens = 0, live_requests = 0;
  std::int64_t tokens = 0, requests = 0;  // padding included
  std::int64_t attended = 0;              // tokens that indexer and attention run on
  std::int64_t num_decode_tokens = 0, num_decodes = 0, num_prefills = 0;
  bool uniform = true;                        // result of is_uniform
  std::int64_t next_n = 0;                    // largest number of tokens of a request that decodes
  bool packed = false;                        // decodes have different token counts
  std::vector<std::int64_t> token_keys;       // request and position, for the embedding
  std::vector<std::int64_t> next_token_keys;  // token_keys of each token's successor
  std::vector<std::int64_t> positions;
  // Slots of the tokens. Empty for compressed states: the device computes their slots.
  std::vector<std::int64_t> slot_mapping[kCaches];
  std::vector<std::int32_t> token_to_req;  // row of each token's request; padding: 0
  std::vector<std::int32_t> query_start_loc, seq_lens;
  std::vector<std::int32_t> block_tables[kCaches];  // [requests, blocks of a request]
  std::vector<std::int32_t> state_lens;             // entries that the indexer may score   [4.6]
  std::vector<std::uint8_t> is_padding;
  // For a packed batch: tokens of each request that decodes, and state_lens as [decodes, next_n],
  // with the length of the last token where a request has fewer than next_n tokens.
  std::vector<std::int32_t> decode_lens, packed_state_lens;
  PrefillPlan prefill;

  std::int64_t prefill_tokens() const { return live_tokens - num_decode_tokens; }
  // Rows of decodes among the tokens with metadata, padding requests included.
  std::int64_t decode_rows() const { return attended - prefill_tokens(); }
};

// Whether every request decodes its maximum number of tokens. Only such a batch is captured as a
// FULL graph and padded with requests   [10.1, 10.2].
bool is_uniform(const Geometry& geometry, const std::vector<Query>& queries);

// Values that the contract leaves free: embeddings of padding rows, block tables of padding
// requests. Results of live rows must not depend on them.
struct Padding {
  std::int64_t token_key = 0;
  std::int32_t block = 0;
};

// What is padded. A FULL graph contains the attention of padding requests too, and its batch is
// uniform. With any other graph the attention runs on live requests only   [10.2].
enum class Padded { tokens_and_requests, tokens };

// Plans the next query tokens of the requests, whose blocks are reserved already
// (Requests::reserve). Throws std::invalid_argument for a prefill before a request that decodes,
// for a query without tokens, and for a decode with too many tokens.
StepPlan plan_step(const Geometry& geometry, const std::vector<Query>& queries,
                   std::int64_t padded_tokens, const Padding& padding, const InputsPolicy& policy,
                   Padded padded = Padded::tokens_and_requests);

// Takes the slots of all entries outside of the gaps from a plan, so that its tokens write the
// entries of the gaps only.
void write_only(const WindowGaps& gaps, StepPlan& plan);

// Device arrays for a StepPlan, large enough for max_tokens and max_requests.
struct StepInputs {
  StepInputs(const Geometry& geometry, EngineMemory& memory);

  std::int64_t* token_keys;
  std::int64_t* next_token_keys;
  std::int64_t* positions;
  std::int64_t* draft_positions;             // positions for the drafter; nullptr without one
  std::int64_t* slot_mapping[kCaches] = {};  // none for compressed states
  std::int32_t* token_to_req;
  std::int32_t* query_start_loc;
  std::int32_t* seq_lens;
  std::int32_t* block_tables[kCaches];
  std::int32_t* state_lens;
  std::uint8_t* is_padding;
  std::int32_t *decode_lens, *packed_state_lens;
  PrefillInputs prefill;
};

// One array of a plan and its destination.
struct Transfer {
  std::string_view name;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};
// Transfers of all arrays that are not empty. `sent`: number of steps sent before.
std::vector<Transfer> transfers(const StepPlan& plan, const StepInputs& inputs,
                                const InputsPolicy& policy, std::int64_t sent = 0);

}  // namespace plumb::device::decode
