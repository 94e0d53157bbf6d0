// SPDX-License-Identifier: Apache-2.0
//
// mxfp4_quant: groups of 32 in E2M1 under a UE8M0 scale (operations spec, 9.4). group_scale_bytes
// and group_codes of reference/quantization/group_quant.h compute its tensors.
#pragma once

#include <span>

#include "reference/formats/e2m1.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

inline constexpr std::int64_t kMxGroup = 32;
GroupQuant mxfp4_quant(double amax_floor, E2m1Policy policy = {},
                       ScaleRule scale_rule = ScaleRule::rceil);

// Unpacks bytes of two codes each to one code per element. The low nibble is the element with the
// even index.
std::vector<std::uint8_t> unpack_codes(std::span<const std::uint8_t> bytes);

}  // namespace plumb::reference
