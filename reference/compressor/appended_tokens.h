// SPDX-License-Identifier: Apache-2.0
//
// States of the online compressor to which tokens are appended one after the other, and the errors
// of a kernel that does so in fp32:
//
//   M' = max(M, z),  a = s exp(M - M'),  b = exp(z - M'),  s' = a + b,  m' = (m a + k b) / s'
//
// Each rounding stays in the sum s and acts on the mean m at all later tokens. Tracked arrays would
// keep a source for each of them. Here the exponentials are tracked arrays, and the effects of all
// errors on a result are computed backwards, from the last token to the first. Products of two
// errors are left out: they are less than 2^-14 of the errors.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

// Exact numbers of a segment, without infinities. State in front: [channels] each, or empty.
// Tokens: [tokens, channels]; scores with ape.
struct SegmentNumbers {
  std::vector<double> largest, sum, mean;
  std::vector<double> score, kv;
};

// One state, [1, channels].
struct OnlineStateRow {
  std::vector<double> largest;
  Estimate sum, mean;
};

class AppendedTokens {
 public:
  AppendedTokens(const SegmentNumbers& numbers, std::int64_t channels, const Numerics& numerics);

  // The state behind the first `count` tokens, at least one.
  OnlineStateRow state(std::int64_t count) const;

 private:
  // One channel of a state, and of what a token does to it.
  struct ChannelState {
    double largest = 0, sum = 0, mean = 0;
  };
  // A relative error: its standard deviation, its largest size, and the size of its mean.
  struct RelativeError {
    double sigma = 0, worst = 0, bias = 0;
  };
  struct AppendedToken {
    ChannelState before, after;
    double kv = 0, share = 0;          // share: of the token's weight in the sum
    RelativeError of_state, of_token;  // of both exponentials
  };
  // Change of a result by an error of the state's mean, and by a relative error of its sum.
  struct Effect {
    double of_mean = 0, of_sum = 0;
  };
  struct Total {
    double variance = 0, worst = 0, bias = 0;
  };

  const AppendedToken& step(std::int64_t token, std::int64_t channel) const {
    return steps_[token * channels_ + channel];
  }
  Effect add(const AppendedToken& step, const Effect& behind, Total& total) const;
  void put(std::int64_t count, std::int64_t channel, Effect effect, Estimate& estimate) const;

  std::int64_t channels_, first_;     // first_: 1 if the first token is the state
  double quotient_;                   // relative error of a division
  std::vector<AppendedToken> steps_;  // [tokens, channels]
};

}  // namespace plumb::reference
