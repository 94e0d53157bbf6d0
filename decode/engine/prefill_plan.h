// SPDX-License-Identifier: Apache-2.0
//
// Arrays that the host sends to the device for the prefill requests of a step. These stand after
// the requests that decode.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/engine/requests.h"

namespace plumb::device::decode {

// Tokens of one request in a step: the next ones of its sequence. A decode has at most 1 +
// speculated of them, a prefill any part of its prompt.
struct Query {
  const Request* request = nullptr;
  std::int64_t tokens = 0;
  bool prefill = false;

  std::int64_t seq_len() const { return request->computed + tokens; }
};

// Prefill requests that share a workspace   [2.8]. Requests and tokens have their numbers in the
// step.
struct PrefillChunk {
  std::int64_t first_request = 0, requests = 0, first_token = 0, tokens = 0;
  std::int64_t keys = 0;  // entries that the indexer scores, summed over the requests
};

struct PrefillPlan {
  std::vector<PrefillChunk> chunks;
  std::vector<std::int32_t> state_counts[kCaches];  // [prefills] compressed states per request
  // Prefix sums of the keys of a chunk's requests, from 0, for one chunk after the other. Those of
  // chunk i begin at first_key_offset(i).
  std::vector<std::int32_t> key_offsets;
  // [prefill tokens] range of keys that a token may attend: (pos + 1) // ratio keys from the first
  // key of its request on   [4.6].
  std::vector<std::int32_t> starts, ends;

  std::int64_t first_key_offset(std::size_t chunk) const;
};

// Plans queries[first], queries[first + 1], ... `first_token`: number of tokens before them.
// `ratio`: tokens per entry that the indexer scores.
PrefillPlan plan_prefill(const std::vector<Query>& queries, std::int64_t ratio, std::int64_t first,
                         std::int64_t first_token);

// Device arrays for a PrefillPlan, large enough for max_requests and max_tokens.
struct PrefillInputs {
  PrefillInputs(const Geometry& geometry, EngineMemory& memory);

  std::int32_t* state_counts[kCaches] = {};  // of compressed states only
  std::int32_t* key_offsets;                 // for each chunk, one more than it has requests
  std::int32_t *starts, *ends;
};

}  // namespace plumb::device::decode
