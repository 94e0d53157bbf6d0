// SPDX-License-Identifier: Apache-2.0
#include "reference/quantization/per_token_group_quant_fp8.h"

namespace plumb::reference {

GroupQuant per_token_group_quant_fp8(const ActivationQuant& options) {
  GroupQuant how = fp8_quant(options.dialect, options.group);
  how.amax_floor = options.amax_floor;
  how.scale_floor = options.scale_floor;
  how.by_reciprocal = options.by_reciprocal;
  return how;
}

}  // namespace plumb::reference
