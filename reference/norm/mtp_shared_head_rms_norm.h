// SPDX-License-Identifier: Apache-2.0
//
// mtp_shared_head_rms_norm: rms_norm of contiguous rows (operations spec, 7.4).
#pragma once

#include "reference/norm/row_norm.h"

namespace plumb::reference {

// x: bf16 [tokens, hidden]; weight: bf16 [hidden]. Returns bf16 [tokens, hidden].
Estimate mtp_shared_head_rms_norm(const std::uint16_t* x, const std::uint16_t* weight,
                                  std::int64_t tokens, std::int64_t hidden, double eps,
                                  NormRounding rounding, const Numerics& numerics);

}  // namespace plumb::reference
