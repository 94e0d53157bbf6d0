// SPDX-License-Identifier: Apache-2.0
//
// q_kv_rms_norm: RMS norms of the rows of two latents, independent of each other (operations spec,
// 7.5).
#pragma once

#include "reference/norm/row_norm.h"

namespace plumb::reference {

struct QKvRmsNormInputs {
  const std::uint16_t* q = nullptr;          // bf16 [tokens, q_hidden]
  const std::uint16_t* kv = nullptr;         // bf16 [tokens, kv_hidden]
  const std::uint16_t* q_weight = nullptr;   // bf16 [q_hidden]
  const std::uint16_t* kv_weight = nullptr;  // bf16 [kv_hidden]
  std::int64_t tokens = 0, q_hidden = 0, kv_hidden = 0;
  std::int64_t q_row_stride = 0, kv_row_stride = 0;  // elements
  double eps = 0;
  NormRounding rounding = NormRounding::once;
};

struct QKvRmsNormOutputs {
  Estimate q;   // bf16 [tokens, q_hidden]
  Estimate kv;  // bf16 [tokens, kv_hidden]
};

QKvRmsNormOutputs q_kv_rms_norm(const QKvRmsNormInputs& inputs, const Numerics& numerics);

}  // namespace plumb::reference
