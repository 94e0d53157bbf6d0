// SPDX-License-Identifier: Apache-2.0
//
// save_partial_states (docs/operations/compressor.md, 10.3): the values that the state cache stores
// for a position.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/cache/cache_entry.h"
#include "reference/formats/bfloat16.h"

namespace plumb::reference {

struct PartialStates {
  const float* kv = nullptr;     // [tokens, width], rows kv_row_stride apart
  const float* score = nullptr;  // [tokens, width]
  const float* ape = nullptr;    // [ratio, width], added to the scores; null: not added
  const std::int64_t* positions = nullptr;
  std::int64_t width = 0, ratio = 1;
  std::int64_t kv_row_stride = 0, score_row_stride = 0;
};

// Returns [2 * width]: kv, then the scores plus ape. The sum of two fp32 numbers in double, rounded
// to fp32, is equal to the fp32 sum.
inline std::vector<float> partial_state(const PartialStates& input, std::int64_t token) {
  const float* kv = input.kv + token * input.kv_row_stride;
  const float* score = input.score + token * input.score_row_stride;
  std::vector<float> state(kv, kv + input.width);
  const std::int64_t phase = input.positions[token] % input.ratio;
  for (std::int64_t i = 0; i < input.width; ++i) {
    const double bias = input.ape == nullptr ? 0 : input.ape[phase * input.width + i];
    state.push_back(input.ape == nullptr ? score[i] : static_cast<float>(score[i] + bias));
  }
  return state;
}

// Offsets of the bytes of a position that is stored in row `row` of its block.
inline CacheEntry state_entry(std::int64_t row_stride_bytes, std::int64_t row,
                              std::int64_t state_bytes) {
  CacheEntry entry;
  append_range(entry.copied, row * row_stride_bytes, state_bytes);
  return entry;
}

}  // namespace plumb::reference
