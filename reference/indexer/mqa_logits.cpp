// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/mqa_logits.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumb::reference {

namespace {

Numerics of_sums_over_heads(Numerics numerics) {
  numerics.accumulator = Format::f32;
  return numerics;
}

Numerics of_dot_products(Numerics numerics) {
  numerics.chains = 1;  // one chain: the order of a sum with the largest error
  return numerics;
}

// Copies scores to their row of the estimate.
void place_scores(const Estimate& scores, std::int64_t begin, Estimate& estimate) {
  std::ranges::copy(scores.value, estimate.value.begin() + begin);
  std::ranges::copy(scores.sigma, estimate.sigma.begin() + begin);
  std::ranges::copy(scores.worst, estimate.worst.begin() + begin);
  std::ranges::copy(scores.shift, estimate.shift.begin() + begin);
}

}  // namespace

void append_fp8(const std::uint8_t* codes, std::int64_t count, Dialect dialect,
                std::vector<double>& numbers) {
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(decode_e4m3(codes[i], dialect));
}

IndexerKeys indexer_keys(std::vector<double> numbers, std::vector<double> scales, bool scaled,
                         const Numerics& numerics) {
  const Numerics sums = of_sums_over_heads(numerics);
  const auto keys = static_cast<std::int64_t>(scales.size());
  const std::size_t dim = numbers.size() / std::max<std::size_t>(scales.size(), 1);
  if (scaled) {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= scales[i / dim];
    std::ranges::fill(scales, 1);
  }
  Tracked vectors(std::move(numbers), {keys, static_cast<std::int64_t>(dim)}, sums);
  if (scaled) vectors = rounded(std::move(vectors), Format::f32);
  return {std::move(vectors), {std::move(scales), {keys, 1}, sums}};
}

void score_keys(std::vector<double> queries, const float* weights, std::int64_t heads,
                const IndexerKeys& keys, const KeyRange& range, const Numerics& numerics,
                std::int64_t row, std::int64_t column, Estimate& estimate) {
  if (range.count <= 0) return;
  constexpr std::int64_t kBlock = 128;  // scores of 64 heads fit into a core's cache
  const Numerics sums = of_sums_over_heads(numerics), dots = of_dot_products(numerics);
  const Tracked weight({weights, weights + heads}, {1, heads}, sums);
  const Tracked query =
      transposed({std::move(queries), {heads, keys.vectors.sizes().back()}, sums});
  double variance = 0, systematic = 0;
  for (std::int64_t i = 0; i < range.count; i += kBlock) {
    const std::int64_t first = range.first + i, count = std::min(kBlock, range.count - i);
    Tracked open = clamp(matmul(sliced(keys.vectors, 0, first, count), query, dots), 0, kInfinity);
    Tracked scores = sum(std::move(open) * (sliced(keys.scales, 0, first, count) * weight), 1);
    const Estimate block = estimate_of(reshaped(std::move(scores), {1, count}), Format::f32);
    place_scores(block, row * estimate.columns + column + i, estimate);
    variance += square(static_cast<double>(count) * block.row_mean_sigma.front());
    systematic += static_cast<double>(count) * block.row_systematic.front();
  }
  // Errors of different keys are independent.
  const auto at = static_cast<std::size_t>(row);
  estimate.row_mean_sigma[at] = std::sqrt(variance) / static_cast<double>(estimate.columns);
  estimate.row_systematic[at] = systematic / static_cast<double>(estimate.columns);
}

Estimate empty_logits(std::int64_t rows, std::int64_t columns) {
  Estimate estimate;
  estimate.output = Format::f32;
  estimate.resize(rows, columns);
  estimate.shift.resize(estimate.value.size());
  return estimate;
}

}  // namespace plumb::reference
