// SPDX-License-Identifier: Apache-2.0
//
// fp8_mqa_logits (operations' specification, 5.1 and 5.2): each query row scores its own window of
// the keys of a prefill.
#pragma once

#include "reference/indexer/mqa_logits.h"

namespace plumb::reference {

struct Fp8MqaLogits {
  const std::uint8_t* q = nullptr;       // fp8 [rows, heads, dim]
  const std::uint8_t* k = nullptr;       // fp8 [keys, dim]
  const float* k_scale = nullptr;        // [keys]
  const float* weights = nullptr;        // [rows, heads]
  const std::int32_t* starts = nullptr;  // [rows]
  const std::int32_t* ends = nullptr;    // [rows]
  std::int64_t rows = 0, keys = 0, heads = 0, dim = 0;
  std::int64_t columns = 0;  // of the stored rows, including padding
  bool row_local = false;    // column c is key start + c
  bool clean = false;        // columns up to `keys` without a key of the row are -inf
  bool scaled_keys = false;  // k is multiplied by k_scale before the dot product
  Dialect q_dialect = Dialect::e4m3fn, k_dialect = Dialect::e4m3fn;
};

// Keys of a row: its window [starts, ends) clamped to the existing keys.
KeyRange key_range(const Fp8MqaLogits& inputs, std::int64_t row);
// Returns fp32 [rows, columns]; elements that the op does not specify are 0.
Estimate fp8_mqa_logits(const Fp8MqaLogits& inputs, const Numerics& numerics);

}  // namespace plumb::reference
