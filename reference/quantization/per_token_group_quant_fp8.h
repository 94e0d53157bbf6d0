// SPDX-License-Identifier: Apache-2.0
//
// per_token_group_quant_fp8: how its groups are quantised (operations spec, 9.3). group_scales or
// group_scale_bytes, and group_codes of reference/quantization/group_quant.h give its tensors.
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

// Scale bytes that are packed by four: rows filled up with scales of 1 to whole words.
CodeEstimate fill_up_words(const CodeEstimate& scale_bytes);

}  // namespace plumb::reference
