// SPDX-License-Identifier: Apache-2.0
//
// concat_and_cache_ds_mla: what the V3.2 cache's writer stores for a token (operations spec, 1.1).
#pragma once

#include "reference/cache/cache_entry.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

inline constexpr std::int64_t kDsMlaLatent = 512, kDsMlaRope = 64, kDsMlaGroup = 128;
inline constexpr std::int64_t kDsMlaTokenBytes = 656;

// Of the latent; group_scales or group_scale_bytes, and group_codes give the numbers. The floor is
// that of a scale before it is rounded up to a power of two.
GroupQuant ds_mla_quant(Dialect dialect, double scale_floor);
// 512 codes, the bytes of 4 fp32 scales; copied are 128 bytes of RoPE. Tokens lie one behind the
// other.
CacheEntry ds_mla_entry(std::int64_t offset);

}  // namespace plumb::reference
