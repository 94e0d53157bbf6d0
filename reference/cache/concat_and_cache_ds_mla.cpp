// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/concat_and_cache_ds_mla.h"

namespace plumb::reference {

GroupQuant ds_mla_quant(Dialect dialect, double scale_floor) {
  GroupQuant how = fp8_quant(dialect, kDsMlaGroup);
  how.scale_floor = scale_floor;
  return how;
}

CacheEntry ds_mla_entry(std::int64_t offset) {
  constexpr std::int64_t kScaleBytes = 4 * (kDsMlaLatent / kDsMlaGroup);
  const std::int64_t token = offset * kDsMlaTokenBytes;
  CacheEntry entry;
  append_range(entry.codes, token, kDsMlaLatent);
  append_range(entry.scales, token + kDsMlaLatent, kScaleBytes);
  append_range(entry.copied, token + kDsMlaLatent + kScaleBytes, 2 * kDsMlaRope);
  return entry;
}

}  // namespace plumb::reference
