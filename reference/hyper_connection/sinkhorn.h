// SPDX-License-Identifier: Apache-2.0
//
// The Sinkhorn iteration that makes a 4 x 4 matrix of mixing logits nearly doubly stochastic, with
// its error to first order. Errors are tracked in the logarithms of the entries. There a
// normalisation subtracts from each entry a weighted mean of its row or column, so the covariance
// of all 16 entries is propagated exactly (to first order), and each step adds its roundings.
#pragma once

#include <array>

#include "reference/bound.h"

namespace plumb::reference {

inline constexpr int kCombEntries = 16;  // [row, column], row-major
using Matrix4 = std::array<double, kCombEntries>;
using Covariance16 = std::array<std::array<double, kCombEntries>, kCombEntries>;

struct SinkhornResult {
  Matrix4 value{};
  Covariance16 covariance{};  // of log(value)
  // Largest error of log(value) over all entries. Write the iterate as diag(a) K diag(b). A new a
  // is the reciprocal of a mean of K b (and of eps / a), so the error of its logarithm is at most
  // the sum of those of K and b. The error therefore grows linearly with the steps (the iteration
  // does not expand Hilbert's projective metric). A naive interval product would double it with
  // each step.
  double worst = 0;
};

// Softmax over each row, plus eps; then normalises columns; then rows and columns `iterations` - 1
// times. A normalisation divides by (sum + eps). `log_covariance` is the covariance of the logits,
// and `worst` their largest error.
SinkhornResult sinkhorn(const Matrix4& logits, const Covariance16& log_covariance, double worst,
                        int iterations, double eps, const Numerics& numerics);

}  // namespace plumb::reference
