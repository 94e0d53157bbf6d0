// SPDX-License-Identifier: Apache-2.0
//
// How well a hypothesis explains the observed values: the share of the wrong values that it
// predicts, compared with the share that it would predict by chance.
#pragma once

#include <cstdint>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

// When two values count as equal.
enum class Closeness {
  bits,  // equal bits: both values come from the simulator or from one device
  // within 2^-6 (bf16) or 2^-14 (fp32) of the larger value, other types equal: for values of
  // devices that round differently
  ulps
};

// The least score of a named hypothesis, and the difference in score within which two hypotheses
// are equally good.
inline constexpr double kLeastScore = 0.6, kScoreMargin = 0.1;

struct Match {
  std::int64_t wrong = 0;      // observed values that are wrong
  std::int64_t explained = 0;  // of these, equal to the hypothesis
  std::int64_t invented = 0;   // observed values that are right but wrong in the hypothesis
  // Wrong values that equal the hypothesis's value of a neighbouring element, where that is wrong.
  std::int64_t by_chance = 0;

  Match& operator+=(const Match& more);
  // 1: predicts exactly the observed values; 0: no better than chance.
  double score() const;
  bool is_exact() const { return explained == wrong && invented == 0; }
  // True if the values cannot decide: fewer than four are wrong (is_few), or most wrong values
  // equal the hypothesis's value of a neighbouring element too (is_alike).
  bool is_weak() const { return is_few() || is_alike(); }
  bool is_few() const;
  bool is_alike() const;

 private:
  double chance_share() const;
};

// All three tensors must have the same shape and dtype.
Match match(const HostTensor& observed, const HostTensor& right, const HostTensor& hypothesis,
            Closeness closeness);

}  // namespace plumb::cases
