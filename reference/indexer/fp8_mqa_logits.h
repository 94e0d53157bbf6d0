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
  std::int64_t columns = 0;  // of the stored rows, padding included
  bool row_local = false;    // column c is key start + c
  bool clean = false;        // columns without a key of the row, up to `keys`, are -inf
  bool scaled_keys = false;  // k_scale multiplies k in front of the product
  Dialect q_dialect = Dialect::e4m3fn, k_dialect = Dialect::e4m3fn;
};

// Keys of a row: its window, clamped.
KeyRange key_range(const Fp8MqaLogits& inputs, std::int64_t row);
// fp32 [rows, columns]; zero where nothing is specified.
Estimate fp8_mqa_logits(const Fp8MqaLogits& inputs, const Numerics& numerics);

}  // namespace plumb::reference
