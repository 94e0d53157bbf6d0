// SPDX-License-Identifier: Apache-2.0
//
// Statistics and projections of a tensor, for goldens that do not store all values. A projection is
// a sum of elements with random signs. The signs are the same for every tensor, so the projections
// of a difference are the differences of the projections. Their mean square estimates the square of
// the L2 norm of the difference, without the values of either tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cases/tensors/tensor.h"

namespace plumb::golden {

// Statistics of the finite elements. A code counts as the number of its byte.
struct TensorStatistics {
  std::int64_t non_finite = 0;  // number of elements left out of the other members
  double mean = 0, norm = 0;    // norm: L2
  double least = 0, greatest = 0;
  std::int64_t least_at = -1, greatest_at = -1;  // index in row-major order; -1: none
};

// The numbers of a file: non_finite, mean, norm, least, least_at, greatest, greatest_at.
using StatisticNumbers = std::array<double, 7>;
StatisticNumbers numbers_of(const TensorStatistics& statistics);
// nullopt if a count or an index is not a whole number.
std::optional<TensorStatistics> statistics_of(const StatisticNumbers& numbers);

struct TensorSketch {
  // The columns are divided into kParts parts of equal width, with kSigns sums each.
  static constexpr std::size_t kParts = 4, kSigns = 8;
  TensorStatistics statistics;
  std::array<double, kParts * kSigns> projections{};
};

TensorSketch sketch_of(const cases::HostTensor& tensor);

// The difference of two tensors of the same shape, from their sketches. The norm is exact if one
// element per part differs; otherwise its standard deviation is at most 25 %.
struct SketchDifference {
  double norm = 0;
  std::size_t first_part = 0, last_part = 0;  // first and last part with a difference
};
SketchDifference difference_of(const TensorSketch& a, const TensorSketch& b);

}  // namespace plumb::golden
