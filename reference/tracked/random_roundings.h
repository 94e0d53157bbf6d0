// SPDX-License-Identifier: Apache-2.0
//
// Errors of iterations, whose steps have correlations that a tracked array loses. The function f is
// evaluated several times with random roundings up or down. The spread and the correlations of the
// results are their errors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

class RoundingDice;

// An array of one evaluation, with the functions of tracked.h that iterations use.
class SampledArray {
 public:
  SampledArray(std::vector<double> numbers, TrackedSizes of, std::shared_ptr<RoundingDice> dice)
      : values(std::move(numbers)), sizes(std::move(of)), rounding(std::move(dice)) {}

  std::vector<double> values;
  TrackedSizes sizes;
  std::shared_ptr<RoundingDice> rounding;
};

SampledArray operator+(const SampledArray& a, const SampledArray& b);
SampledArray operator-(const SampledArray& a, const SampledArray& b);
SampledArray operator*(const SampledArray& a, const SampledArray& b);
SampledArray operator/(const SampledArray& a, const SampledArray& b);
SampledArray operator+(const SampledArray& a, double b);
SampledArray operator*(const SampledArray& a, double b);
SampledArray operator/(const SampledArray& a, double b);
SampledArray exp(const SampledArray& a);
SampledArray log(const SampledArray& a);
SampledArray sqrt(const SampledArray& a);
SampledArray rsqrt(const SampledArray& a);
SampledArray sigmoid(const SampledArray& a);
SampledArray max(const SampledArray& a, const SampledArray& b);
SampledArray sum(const SampledArray& a, std::size_t dimension);  // in random order
SampledArray mean(const SampledArray& a, std::size_t dimension);
SampledArray max(const SampledArray& a, std::size_t dimension);
SampledArray reshaped(SampledArray a, TrackedSizes sizes);

// Evaluates f on the inputs, which must have the same numerics. Errors of the inputs are drawn at
// random as well. The result has the covariance of `seeds` evaluations (at least 8) and loses the
// correlation with the inputs' sources. An error that occurs less often than once in `seeds`
// evaluations is not seen, so f should not round to a coarse format. Throws std::invalid_argument
// without inputs, for fewer than 8 seeds and for different numerics.
Tracked by_random_roundings(const std::function<SampledArray(const std::vector<SampledArray>&)>& f,
                            const std::vector<Tracked>& inputs, int seeds);

}  // namespace plumb::reference
