// SPDX-License-Identifier: Apache-2.0
//
// How well a hypothesis explains what was observed: of the values that are wrong, how many are what
// they would be if it were true, set against what it would explain by chance.
#pragma once

#include <cstdint>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

// Are two values of a type the same?
enum class Closeness {
  bits,  // both from the simulator, or both from one device
  ulps  // from devices that round elsewhere: a few units in the last place of a floating-point type
};

// The score that a hypothesis needs, and how close to the best one another is as good.
inline constexpr double kLeastScore = 0.6, kScoreMargin = 0.1;

struct Match {
  std::int64_t wrong = 0;      // observed is not right
  std::int64_t explained = 0;  // of these, observed is what the hypothesis says
  std::int64_t invented = 0;   // observed is right, and the hypothesis says that it is not
  // Of the wrong: those that it would explain if it went wrong in the places beside.
  std::int64_t by_chance = 0;

  Match& operator+=(const Match& more);
  // 1: it says what was observed, and nothing else; 0: no more than chance.
  double score() const;
  bool is_exact() const { return explained == wrong && invented == 0; }
  // Too few values, or too much alike, to tell anything.
  bool is_weak() const { return is_few() || is_alike(); }
  bool is_few() const;
  bool is_alike() const;

 private:
  double chance_share() const;
};

// All three of one shape and type.
Match match(const HostTensor& observed, const HostTensor& right, const HostTensor& hypothesis,
            Closeness closeness);

}  // namespace plumb::cases
