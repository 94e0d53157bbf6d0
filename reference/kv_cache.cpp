// SPDX-License-Identifier: Apache-2.0
#include "reference/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/formats/bfloat16.h"
#include "reference/formats/e8m0.h"

namespace plumb::reference {

namespace {

constexpr std::int64_t kGroups = kMlaNope / kMlaScaleGroup;

// ceil(log2(x)) of a positive number, exactly.
int ceil_log2(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  return mantissa == 0.5 ? exponent - 1 : exponent;
}

}  // namespace

const std::uint8_t* KvCache::token(std::int64_t slot) const {
  return data + slot / page * block_stride_bytes + slot % page * kMlaTokenBytes;
}

const std::uint8_t* KvCache::scales(std::int64_t slot) const {
  return data + slot / page * block_stride_bytes + page * kMlaTokenBytes +
         slot % page * kMlaScaleBytes;
}

std::int64_t kv_block_bytes(std::int64_t page) {
  const std::int64_t bytes = page * (kMlaTokenBytes + kMlaScaleBytes);
  return (bytes + kMlaTokenBytes - 1) / kMlaTokenBytes * kMlaTokenBytes;
}

void decode_token(const KvCache& cache, std::int64_t slot, double* values) {
  const std::uint8_t* codes = cache.token(slot);
  const std::uint8_t* scales = cache.scales(slot);
  const std::array<double, 256>& table = e4m3_values(cache.dialect);
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const double scale = decode_e8m0(scales[group]);
    for (std::int64_t i = group * kMlaScaleGroup; i < (group + 1) * kMlaScaleGroup; ++i) {
      values[i] = table[codes[i]] * scale;
    }
  }
  for (std::int64_t i = kMlaNope; i < kMlaDim; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, codes + kMlaNope + 2 * (i - kMlaNope), sizeof bits);
    values[i] = decode_bf16(bits);
  }
}

void encode_token(std::uint8_t* block, std::int64_t page, std::int64_t offset, Dialect dialect,
                  std::span<const float, kMlaDim> values) {
  std::uint8_t* codes = block + offset * kMlaTokenBytes;
  std::uint8_t* scales = block + page * kMlaTokenBytes + offset * kMlaScaleBytes;
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const auto tile = values.subspan(group * kMlaScaleGroup, kMlaScaleGroup);
    double amax = 1e-4f;
    for (const float value : tile) amax = std::max(amax, std::abs(double{value}));
    const int exponent = std::clamp(ceil_log2(amax / e4m3_quantisation_max(dialect)), -127, 127);
    scales[group] = static_cast<std::uint8_t>(exponent + 127);
    for (std::int64_t i = 0; i < kMlaScaleGroup; ++i) {
      codes[group * kMlaScaleGroup + i] = encode_e4m3(std::ldexp(tile[i], -exponent), dialect);
    }
  }
  scales[kGroups] = 0;
  for (std::int64_t i = kMlaNope; i < kMlaDim; ++i) {
    const std::uint16_t bits = encode_bf16(values[i]);
    std::memcpy(codes + kMlaNope + 2 * (i - kMlaNope), &bits, sizeof bits);
  }
}

}  // namespace plumb::reference
