// SPDX-License-Identifier: Apache-2.0
//
// Errors in keeping the top-k buffer. Each is a policy in place of the right one.
#pragma once

#include <cstdint>
#include <optional>

#include "decode/policies/top_k_policy.h"

namespace plumb::cases {

struct TopKKept final : device::decode::TopKPolicy {
  std::optional<std::uint8_t> reset() const override { return std::nullopt; }
};
struct TopKZeroed final : device::decode::TopKPolicy {
  std::optional<std::uint8_t> reset() const override { return 0; }
};
// vLLM #42810: the decode kernel writes rows for num_decode_tokens / next_n requests only. Requests
// that are packed or padded to one length have more rows, and the last rows keep old values.
struct TopKCutAtDecodeTokens final : device::decode::TopKPolicy {
  std::int64_t ranked(std::int64_t, std::int64_t next_n,
                      std::int64_t num_decode_tokens) const override {
    return num_decode_tokens / next_n;
  }
};

}  // namespace plumb::cases
