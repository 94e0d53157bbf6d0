// SPDX-License-Identifier: Apache-2.0
//
// commit_online_states (docs/operations/compressor.md, 10.7): which bank holds the state of the
// accepted tokens of a verification step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/compressor/online_states.h"

namespace plumb::reference {

// Returns the number of a bank; 0: the committed state stays. `pending`: tokens of the sequence in
// front of the verification; < 0: none took place. `length`: tokens now; < 0: unknown.
inline std::int64_t committed_bank(std::int64_t pending, std::int64_t length,
                                   std::int64_t verify_tokens) {
  if (pending < 0) return 0;
  const std::int64_t accepted = std::clamp<std::int64_t>(length - pending, 0, verify_tokens);
  return (pending + accepted) % kOnlineGroup == 0 ? 0 : accepted;
}

}  // namespace plumb::reference
