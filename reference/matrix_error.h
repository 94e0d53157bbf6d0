// SPDX-License-Identifier: Apache-2.0
//
// Error of a sum of matrix instructions (matrix_unit.h). Instructions truncate, so the error has a
// mean. An instruction moves its sum towards zero by half a last place on average, and a product
// that loses bits moves the sum against the sign of the product. A kernel that declares the unit
// also declares this mean, and the check for bias allows it.
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/bound.h"
#include "reference/matrix_unit.h"

namespace plumb::reference {

// The matrix instructions that `numerics` declares. numerics.unit must not be fp32.
MatrixUnit matrix_unit(const Numerics& numerics);

// Sums over terms t of t, of |t| and of t^2, and the sum of the squared partial sums in the usual
// order of addition for which it is largest (0: unknown).
struct TermSums {
  double sum = 0, magnitudes = 0, squares = 0, squared_partial_sums = 0;

  void add(double term) {
    sum += term;
    magnitudes += std::abs(term);
    squares += term * term;
  }
};

// Shares of the instructions and products of a sum that lose bits. All 1: nothing is known.
struct MatrixTerms {
  double rounding = 1;  // share of the instructions whose sum loses bits
  double cut = 1;       // share of the products that lose bits
  double net = 1;       // |share of those that are positive - share of those that are negative|
};
// Estimates the shares. `product_bits`: length of the products' significands.
MatrixTerms matrix_terms(std::int64_t terms, const TermSums& sums, int product_bits,
                         const Numerics& numerics);

SumErrorFactors matrix_error_factors(std::int64_t terms, const MatrixTerms& known,
                                     const Numerics& numerics);

// Error of one sum. sigma is the standard deviation around the mean and does not include the bias.
struct MatrixError {
  double sigma = 0, bias = 0, worst = 0;
};

}  // namespace plumb::reference
