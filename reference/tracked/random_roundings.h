// SPDX-License-Identifier: Apache-2.0
//
// Errors of iterations, whose steps share what a tracked array forgets: f is evaluated several
// times, and every operation rounds up or down by chance. The results say by how much they vary,
// and together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

class RoundingDice;

// One evaluation. It has the functions of tracked.h that iterations use.
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
SampledArray sum(const SampledArray& a, std::size_t dimension);  // in an order by chance
SampledArray mean(const SampledArray& a, std::size_t dimension);
SampledArray max(const SampledArray& a, std::size_t dimension);
SampledArray reshaped(SampledArray a, TrackedSizes sizes);

// f of the inputs, which are of the same numerics; their errors are drawn as well. The result has
// the covariance of `seeds` evaluations (at least 8), and has forgotten the sources of the inputs.
// An error that comes up less often than once in `seeds` evaluations is not seen: f should not
// store in a coarse format. Throws std::invalid_argument for no inputs and for other numerics.
Tracked by_random_roundings(const std::function<SampledArray(const std::vector<SampledArray>&)>& f,
                            const std::vector<Tracked>& inputs, int seeds);

}  // namespace plumb::reference
