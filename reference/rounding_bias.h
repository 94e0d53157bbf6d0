// SPDX-License-Identifier: Apache-2.0
//
// Sums of terms of few bits: their roundings have a mean. The square of an odd number is 1 modulo
// 8, so that what squares of bf16 numbers leave of a sum's last place is not spread evenly, and
// additions round down more often than up.
#pragma once

#include <cstddef>

namespace plumb::reference {

// Mean error of adding terms one by one.
struct RoundingBias {
  // What each term leaves of the sum's spacing, in each of the binades that the sum goes through,
  // by the share of additions that fall into it.
  double of_terms = 0;
  // What sums of few terms, exact until then, leave when they enter the last binade. Less than one
  // rounding of each, for which the random part has room.
  double of_sums = 0;
};

// Of `chains` sums of exact terms, none negative, that end at `last` each; additions are of
// relative error `unit`. Ties go to even, and squares leave the sum even for long: all of them may
// go one way. Nor are signs trusted across binades.
RoundingBias rounding_bias(const double* terms, std::size_t count, double chains, double last,
                           double unit);

}  // namespace plumb::reference
