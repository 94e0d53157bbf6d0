// SPDX-License-Identifier: Apache-2.0
//
// The online form of C128A's compressor (docs/operations/compressor.md, 10.5 and 10.6): states of
// groups of 128 positions, of which only some tokens belong to a step.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

inline constexpr std::int64_t kOnlineGroup = 128;  // positions
inline constexpr std::int64_t kOnlineParts = 3;    // of a state: largest scores, sums, means of kv

struct OnlineTokens {
  const float* kv = nullptr;     // [tokens, head_dim], rows kv_row_stride apart
  const float* score = nullptr;  // [tokens, head_dim]
  const float* ape = nullptr;    // [128, head_dim]
  std::int64_t head_dim = 0, kv_row_stride = 0, score_row_stride = 0;
};

// Consecutive tokens of one group, at least one.
struct OnlineSegment {
  std::int64_t first_token = 0, tokens = 0;
  std::int64_t phase = 0;        // of the first token: its position in the group
  const float* state = nullptr;  // [3 * head_dim] of the positions in front; null: none

  bool closes() const { return phase + tokens == kOnlineGroup; }
};

// Segments of `tokens` tokens from `position` on. `state`: of the first one, unless it begins its
// group.
std::vector<OnlineSegment> online_segments(std::int64_t first_token, std::int64_t tokens,
                                           std::int64_t position, const float* state);

// [states, head_dim] each.
struct OnlineStates {
  std::vector<double> largest;  // exact
  Estimate sum, mean;
};

// Behind which tokens of a segment a state is computed.
enum class StateOf { last_token, every_token };

// States of the segments, one segment after the other. Bounds hold for kernels that take a segment
// token by token, and for kernels that take all tokens of a segment at once and then merge the
// result with the state. The mean of a segment that closes its group is the compressed state. A
// channel whose first score is -inf is unspecified.
OnlineStates online_states(const OnlineTokens& input, const std::vector<OnlineSegment>& segments,
                           StateOf which, const Numerics& numerics);

}  // namespace plumb::reference
