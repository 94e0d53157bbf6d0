// SPDX-License-Identifier: Apache-2.0
//
// per_token_group_quant_fp8: how its groups are quantised (operations spec, 9.3). group_scales or
// group_scale_bytes computes its scales, group_codes of reference/quantization/group_quant.h its
// codes.
#pragma once

#include "reference/quantization/group_quant.h"

namespace plumb::reference {

struct ActivationQuant {
  Dialect dialect = Dialect::e4m3fn;
  std::int64_t group = 128;
  double amax_floor = 0, scale_floor = 0;
  bool by_reciprocal = false;
};
GroupQuant per_token_group_quant_fp8(const ActivationQuant& options);

}  // namespace plumb::reference
