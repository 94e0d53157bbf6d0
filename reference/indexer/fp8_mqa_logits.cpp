// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/fp8_mqa_logits.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace plumb::reference {

namespace {

IndexerKeys decode_keys(const Fp8MqaLogits& inputs, const Numerics& numerics) {
  std::vector<double> numbers;
  append_fp8(inputs.k, inputs.keys * inputs.dim, inputs.k_dialect, numbers);
  return indexer_keys(std::move(numbers), {inputs.k_scale, inputs.k_scale + inputs.keys},
                      inputs.scaled_keys, numerics);
}

void score_row(const Fp8MqaLogits& inputs, const IndexerKeys& keys, const Numerics& numerics,
               std::int64_t row, Estimate& estimate) {
  if (inputs.clean) {
    const auto begin = estimate.value.begin() + row * inputs.columns;
    std::fill(begin, begin + inputs.keys, -std::numeric_limits<double>::infinity());
  }
  const KeyRange range = key_range(inputs, row);
  const std::int64_t numbers = inputs.heads * inputs.dim;
  std::vector<double> queries;
  append_fp8(inputs.q + row * numbers, numbers, inputs.q_dialect, queries);
  score_keys(std::move(queries), inputs.weights + row * inputs.heads, inputs.heads, keys, range,
             numerics, row, inputs.row_local ? 0 : range.first, estimate);
}

}  // namespace

KeyRange key_range(const Fp8MqaLogits& inputs, std::int64_t row) {
  const std::int64_t first = std::clamp<std::int64_t>(inputs.starts[row], 0, inputs.keys);
  const std::int64_t behind = std::clamp<std::int64_t>(inputs.ends[row], 0, inputs.keys);
  return {first, std::max<std::int64_t>(0, behind - first)};
}

Estimate fp8_mqa_logits(const Fp8MqaLogits& inputs, const Numerics& numerics) {
  Estimate estimate = empty_logits(inputs.rows, inputs.columns);
  const IndexerKeys keys = decode_keys(inputs, numerics);
  parallel_for(inputs.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      score_row(inputs, keys, numerics, row, estimate);
    }
  });
  return estimate;
}

}  // namespace plumb::reference
