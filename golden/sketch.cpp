// SPDX-License-Identifier: Apache-2.0
#include "golden/sketch.h"

#include <cmath>

#include "cases/tensors/fill.h"

namespace plumb::golden {

namespace {

constexpr std::size_t kParts = TensorSketch::kParts, kSigns = TensorSketch::kSigns;
// Part of the file format, because other signs give other projections.
constexpr std::uint64_t kSignSeed = 1;

void add_extremes(double value, std::int64_t at, TensorStatistics& statistics) {
  if (statistics.least_at < 0 || value < statistics.least) {
    statistics.least = value;
    statistics.least_at = at;
  }
  if (statistics.greatest_at < 0 || value > statistics.greatest) {
    statistics.greatest = value;
    statistics.greatest_at = at;
  }
}

// Bit s of the element's random number is its sign in sum s (1: plus).
void add_signed(double value, std::int64_t at, double* sums) {
  const std::uint64_t signs = cases::random_bits(kSignSeed, static_cast<std::uint64_t>(at));
  for (std::size_t s = 0; s < kSigns; ++s) sums[s] += (signs >> s & 1) != 0 ? value : -value;
}

bool is_place(double value) {
  constexpr double kMost = 1LL << 53;
  return value >= -1 && value <= kMost && value == std::floor(value);
}

}  // namespace

StatisticNumbers numbers_of(const TensorStatistics& statistics) {
  return {static_cast<double>(statistics.non_finite),
          statistics.mean,
          statistics.norm,
          statistics.least,
          static_cast<double>(statistics.least_at),
          statistics.greatest,
          static_cast<double>(statistics.greatest_at)};
}

std::optional<TensorStatistics> statistics_of(const StatisticNumbers& numbers) {
  const auto& [non_finite, mean, norm, least, least_at, greatest, greatest_at] = numbers;
  if (!is_place(non_finite) || !is_place(least_at) || !is_place(greatest_at)) return std::nullopt;
  return TensorStatistics{.non_finite = static_cast<std::int64_t>(non_finite),
                          .mean = mean,
                          .norm = norm,
                          .least = least,
                          .greatest = greatest,
                          .least_at = static_cast<std::int64_t>(least_at),
                          .greatest_at = static_cast<std::int64_t>(greatest_at)};
}

TensorSketch sketch_of(const cases::HostTensor& tensor) {
  TensorSketch sketch;
  TensorStatistics& statistics = sketch.statistics;
  const std::int64_t columns = tensor.columns();
  double sum = 0, squares = 0;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const double value = tensor.value(row, column);
      if (!std::isfinite(value)) {
        ++statistics.non_finite;
        continue;
      }
      const std::int64_t at = row * columns + column;
      sum += value;
      squares += value * value;
      add_extremes(value, at, statistics);
      const auto part =
          static_cast<std::size_t>(column) * kParts / static_cast<std::size_t>(columns);
      add_signed(value, at, sketch.projections.data() + part * kSigns);
    }
  }
  const std::int64_t finite = tensor.elements() - statistics.non_finite;
  if (finite > 0) statistics.mean = sum / static_cast<double>(finite);
  statistics.norm = std::sqrt(squares);
  return sketch;
}

SketchDifference difference_of(const TensorSketch& a, const TensorSketch& b) {
  SketchDifference difference;
  double squares = 0;
  bool found = false;
  for (std::size_t part = 0; part < kParts; ++part) {
    double here = 0;
    for (std::size_t i = part * kSigns; i < (part + 1) * kSigns; ++i) {
      const double apart = a.projections[i] - b.projections[i];
      here += apart * apart / kSigns;
    }
    if (!(here > 0)) continue;
    if (!found) difference.first_part = part;
    difference.last_part = part;
    found = true;
    squares += here;
  }
  difference.norm = std::sqrt(squares);
  return difference;
}

}  // namespace plumb::golden
