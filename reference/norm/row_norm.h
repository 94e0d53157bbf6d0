// SPDX-License-Identifier: Apache-2.0
//
// One row of the RMSNorm family and how far honest fp32 arithmetic may be from it.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

enum class NormRounding {
  once,   // fp32 throughout, rounded at the store
  twice,  // x * r is rounded to bf16 before the product with the weight
  factor  // r is rounded to bf16, then as twice
};

struct RelativeError {
  double sigma = 0, worst = 0;
};
// r = 1 / sqrt(mean(x^2) + eps), and its error, which the whole row shares.
struct RowScale {
  double value = 0;
  RelativeError error;
  double magnitudes = 0;  // sum of the |value[i]| of the row
};

// Writes row `row` of `estimate` (already sized):
//   value[i] = x[i] * r * weight[i],  r = 1 / sqrt(mean(x^2) + eps)
// x: [columns]; weight: [columns], empty = 1. Non-finite x propagate as IEEE arithmetic has it.
// Returns r. x_error: largest relative error of each x by itself, where the device has them only
// rounded.
RowScale estimate_row_norm(const std::vector<double>& x, const std::vector<double>& weight,
                           double eps, NormRounding rounding, const Numerics& numerics,
                           std::int64_t row, Estimate& estimate, double x_error = 0);

// What rounding a product to bf16 does to it: the predictable part, and how much more the rounding
// may move where a relative error of the product can push it over a tie.
struct InnerRounding {
  double shift = 0, flip = 0;
};
InnerRounding round_in_between(double product, double relative);

double sum_of_magnitudes(const double* values, std::int64_t count);

// bf16 bits as doubles.
std::vector<double> decode_row(const std::uint16_t* bits, std::int64_t count);
void decode_row(const std::uint16_t* bits, std::vector<double>& values);

}  // namespace plumb::reference
