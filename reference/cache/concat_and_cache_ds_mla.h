// SPDX-License-Identifier: Apache-2.0
//
// concat_and_cache_ds_mla: the bytes that the V3.2 cache's writer stores for a token (operations
// spec, 1.1).
#pragma once

#include "reference/cache/cache_entry.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

inline constexpr std::int64_t kDsMlaLatent = 512, kDsMlaRope = 64, kDsMlaGroup = 128;
inline constexpr std::int64_t kDsMlaTokenBytes = 656;

// How the 512 columns of the latent are quantised. group_scales or group_scale_bytes computes its
// scales, group_codes its codes. `scale_floor` is the least scale before it is rounded up to a
// power of two.
GroupQuant ds_mla_quant(Dialect dialect, double scale_floor);
// Offsets of 512 codes, of the bytes of 4 fp32 scales, and of 128 copied bytes of RoPE. Tokens are
// stored one after the other.
CacheEntry ds_mla_entry(std::int64_t offset);

}  // namespace plumb::reference
