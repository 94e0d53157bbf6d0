// SPDX-License-Identifier: Apache-2.0
//
// What the host tells the device of the prefill requests of a step, which stand behind those that
// decode.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/engine/requests.h"

namespace plumb::device::decode {

// What a step computes of a request: the next tokens of its sequence. One that decodes takes
// 1 + speculated of them or fewer, a prefill any part of its prompt.
struct Query {
  const Request* request = nullptr;
  std::int64_t tokens = 0;
  bool prefill = false;

  std::int64_t seq_len() const { return request->computed + tokens; }
};

// Requests that share a workspace   [2.8]. They and their tokens are numbered as in the step.
struct PrefillChunk {
  std::int64_t first_request = 0, requests = 0, first_token = 0, tokens = 0;
  std::int64_t keys = 0;  // of the indexer: entries of all of them
};

struct PrefillPlan {
  std::vector<PrefillChunk> chunks;
  std::vector<std::int32_t> state_counts[kCaches];  // [prefills] of a sequence; none of the window
  std::vector<std::int32_t> key_starts;             // [prefills] among the keys of the chunk
  // [prefill tokens] keys that a token may attend: from its request's first on, (pos + 1) // ratio
  // of them   [4.6].
  std::vector<std::int32_t> starts, ends;
};

// Of those of `queries` from `first` on; `first_token` is the number of tokens in front of them,
// `ratio` that of an entry that the indexer scores.
PrefillPlan plan_prefill(const std::vector<Query>& queries, std::int64_t ratio, std::int64_t first,
                         std::int64_t first_token);

// Device addresses of the arrays of a plan, for max_requests and max_tokens.
struct PrefillInputs {
  PrefillInputs(const Geometry& geometry, EngineMemory& memory);

  std::int32_t* state_counts[kCaches];  // none for the window
  std::int32_t* key_starts;
  std::int32_t *starts, *ends;
};

}  // namespace plumb::device::decode
