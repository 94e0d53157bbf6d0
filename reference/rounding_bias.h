// SPDX-License-Identifier: Apache-2.0
//
// Roundings in sums of terms with few bits have a mean. The square of an odd number is 1 modulo 8,
// so the remainders of squares of bf16 numbers are not spread evenly over a sum's last place, and
// additions round down more often than up.
#pragma once

#include <cstddef>

namespace plumb::reference {

// Mean error of adding terms one by one.
struct RoundingBias {
  // From the rounding remainder of each term in each binade that the sum passes through, weighted
  // with the share of additions in that binade.
  double of_terms = 0;
  // From partial sums of few terms, which are exact until they enter the last binade. It is less
  // than one rounding per sum, and the random part of the bound covers it.
  double of_sums = 0;
  // From adding the sums of few terms in a tree. What each addition rounds off are the remainders
  // of two sums, whose mean is that of few terms.
  double of_tree = 0;

  double all() const { return of_terms + of_sums + of_tree; }
};

// Bias of `chains` sums of exact non-negative terms, and of the tree that adds these sums. Each sum
// ends at `last`, and additions have the relative error `unit`. Ties are assumed to round in one
// direction: they go to even, and sums of squares stay even for long. Biases of different binades
// are added with their magnitudes.
RoundingBias rounding_bias(const double* terms, std::size_t count, double chains, double last,
                           double unit);

}  // namespace plumb::reference
