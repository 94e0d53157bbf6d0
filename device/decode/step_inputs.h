// SPDX-License-Identifier: Apache-2.0
//
// What the host tells the device before a step: planned in ordinary memory, sent to buffers whose
// addresses never change, because a captured graph reads them   [10.4].
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "device/decode/geometry.h"
#include "device/decode/inputs_policy.h"
#include "device/decode/memory.h"
#include "device/decode/requests.h"

namespace plumb::device::decode {

// Tokens of all scheduled requests, in their order, and padding behind them up to the captured
// size. Rows of padding requests: no tokens, no context, slot -1.
struct StepPlan {
  std::int64_t live_tokens = 0, live_requests = 0;
  std::int64_t tokens = 0, requests = 0;  // with padding
  std::int64_t attended = 0;              // tokens with metadata: what indexer and attention run on
  std::vector<std::int64_t> token_keys;   // of the embedding: request and position
  std::vector<std::int64_t> next_token_keys;  // of the token behind each
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> slot_mapping[kCaches];  // of the token; of the state that it completes
  std::vector<std::int64_t> state_keys[kCaches];    // what that state is made of
  std::vector<std::int32_t> query_start_loc, seq_lens;
  std::vector<std::int32_t> block_tables[kCaches];  // [requests, blocks of a request]
  std::vector<std::int32_t> state_lens;             // entries that the indexer may score   [4.6]
  std::vector<std::uint8_t> is_padding;
};

// What stands where the contract leaves it open: embeddings of padding rows, block tables of
// padding requests. Results of live rows must not depend on it.
struct Padding {
  std::int64_t token_key = 0;
  std::int32_t block = 0;
};

// What is padded: a FULL graph holds the attention of padding requests too, around any other the
// attention has the live ones   [10.2].
enum class Padded { tokens_and_requests, tokens };

// The requests' next query tokens; their blocks are there (Requests::reserve).
StepPlan plan_step(const Geometry& geometry, const std::vector<const Request*>& scheduled,
                   std::int64_t padded_tokens, const Padding& padding, const InputsPolicy& policy,
                   Padded padded = Padded::tokens_and_requests);

// Device addresses, for max_tokens and max_requests.
struct StepInputs {
  StepInputs(const Geometry& geometry, Memory& memory);

  std::int64_t* token_keys;
  std::int64_t* next_token_keys;
  std::int64_t* positions;
  std::int64_t* slot_mapping[kCaches];
  std::int64_t* state_keys[kCaches];  // none for the window
  std::int32_t* query_start_loc;
  std::int32_t* seq_lens;
  std::int32_t* block_tables[kCaches];
  std::int32_t* state_lens;
  std::uint8_t* is_padding;
};

// One array of a plan and where it goes.
struct Transfer {
  std::string_view name;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};
std::vector<Transfer> transfers(const StepPlan& plan, const StepInputs& inputs,
                                const InputsPolicy& policy);

}  // namespace plumb::device::decode
