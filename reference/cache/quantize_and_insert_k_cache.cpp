// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/quantize_and_insert_k_cache.h"

#include <cstring>

#include "reference/cache/kv_cache.h"

namespace plumb::reference {

namespace {

constexpr std::int64_t kRopeBytes = kMlaTokenBytes - kMlaNope;

}  // namespace

GroupQuant k_cache_quant(Dialect dialect, double amax_floor) {
  GroupQuant how = fp8_quant(dialect, kMlaScaleGroup);
  how.amax_floor = amax_floor;
  return how;
}

CacheEntry k_cache_entry(std::int64_t page, std::int64_t offset, bool pad_is_written) {
  const std::int64_t scales = page * kMlaTokenBytes + offset * kMlaScaleBytes;
  CacheEntry entry;
  append_range(entry.codes, offset * kMlaTokenBytes, kMlaNope);
  append_range(entry.scales, scales, kMlaNope / kMlaScaleGroup);
  append_range(entry.copied, offset * kMlaTokenBytes + kMlaNope, kRopeBytes);
  if (pad_is_written) append_range(entry.copied, scales + kMlaScaleBytes - 1, 1);
  return entry;
}

std::vector<std::uint8_t> k_cache_copied(const std::uint16_t* kv, bool pad_is_written) {
  std::vector<std::uint8_t> bytes(kRopeBytes + (pad_is_written ? 1 : 0), 0);
  std::memcpy(bytes.data(), kv + kMlaNope, kRopeBytes);
  return bytes;
}

}  // namespace plumb::reference
