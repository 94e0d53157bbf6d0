// SPDX-License-Identifier: Apache-2.0
//
// The Sinkhorn iteration that makes a 4 x 4 matrix of mixing logits nearly doubly stochastic, with
// its error to first order. Errors live in the logarithm of the entries: there a normalisation
// subtracts from each entry a weighted mean of its row or column, so that the covariance of all 16
// entries goes through the iteration exactly (to first order), roundings of each step added on the
// way.
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
  // Largest error of log(value), over all entries. Write the iterate as diag(a) K diag(b). A new a
  // is the reciprocal of a mean of K b (and of eps / a), so its logarithm is off by no more than
  // those of K and b together: the error grows linearly with the steps, although the naive interval
  // product doubles with each (the iteration does not expand Hilbert's projective metric).
  double worst = 0;
};

// softmax over each row, + eps; columns; then rows and columns `iterations` - 1 times. A
// normalisation divides by (sum + eps). `log_covariance` is that of the logits, `worst` their
// largest error.
SinkhornResult sinkhorn(const Matrix4& logits, const Covariance16& log_covariance, double worst,
                        int iterations, double eps, const Numerics& numerics);

}  // namespace plumb::reference
