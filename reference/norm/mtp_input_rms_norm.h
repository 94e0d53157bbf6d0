// SPDX-License-Identifier: Apache-2.0
//
// mtp_input_rms_norm: enorm of the embedding, and hnorm of each hidden slot by itself. The
// embedding at position 0 is replaced by zeros, even if it holds NaN. Hidden slots are never masked
// (operations spec, 7.3).
#pragma once

#include "reference/norm/row_norm.h"

namespace plumb::reference {

struct MtpInputRmsNormInputs {
  const std::uint16_t* embeds = nullptr;           // bf16 [tokens, hidden]
  const std::uint16_t* previous_hidden = nullptr;  // bf16 [tokens, hc_mult, hidden]
  const std::int64_t* positions = nullptr;         // [tokens]
  const std::uint16_t* enorm_weight = nullptr;     // bf16 [hidden]
  const std::uint16_t* hnorm_weight = nullptr;     // bf16 [hidden]
  std::int64_t tokens = 0, hidden = 0, hc_mult = 0;
  double eps = 0;
  NormRounding rounding = NormRounding::once;
};

struct MtpInputRmsNormOutputs {
  Estimate embeds;  // bf16 [tokens, hidden]
  Estimate hidden;  // bf16 [tokens * hc_mult, hidden]
};

MtpInputRmsNormOutputs mtp_input_rms_norm(const MtpInputRmsNormInputs& inputs,
                                          const Numerics& numerics);

}  // namespace plumb::reference
