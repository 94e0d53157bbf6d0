// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/formats/bfloat16.h"
#include "reference/formats/e8m0.h"

namespace plumb::reference {

namespace {

constexpr std::int64_t kGroups = kMlaNope / kMlaScaleGroup;

// Exact ceil(log2(x)) for x > 0.
int ceil_log2(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  return mantissa == 0.5 ? exponent - 1 : exponent;
}

void decode_bf16_values(const std::uint8_t* bytes, std::int64_t count, double* values) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, sizeof bits);
    values[i] = decode_bf16(bits);
  }
}

void encode_bf16_values(const float* values, std::int64_t count, std::uint8_t* bytes) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t bits = encode_bf16(values[i]);
    std::memcpy(bytes + 2 * i, &bits, sizeof bits);
  }
}

void decode_v4(const KvCache& cache, const std::uint8_t* block, std::int64_t offset,
               double* values) {
  const std::uint8_t* codes = block + offset * kMlaTokenBytes;
  const std::uint8_t* scales = block + cache.page * kMlaTokenBytes + offset * kMlaScaleBytes;
  const std::array<double, 256>& table = e4m3_values(cache.dialect);
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const double scale = decode_e8m0(scales[group]);
    for (std::int64_t i = group * kMlaScaleGroup; i < (group + 1) * kMlaScaleGroup; ++i) {
      values[i] = table[codes[i]] * scale;
    }
  }
  decode_bf16_values(codes + kMlaNope, kMlaRope, values + kMlaNope);
}

// The factor by which a V3.2 kernel multiplies a code if it reads the stored fp32 scale as
// `reading` says. Scales are positive.
float read_scale(float stored, ScaleReading reading) {
  if (reading == ScaleReading::fp32 || !std::isfinite(stored)) return stored;
  if (reading == ScaleReading::bf16) return static_cast<float>(decode_bf16(encode_bf16(stored)));
  return std::ldexp(1.0F, std::max(std::ilogb(stored), -127));
}

void decode_v32(const KvCache& cache, const std::uint8_t* token, double* values) {
  const std::array<double, 256>& table = e4m3_values(cache.dialect);
  for (std::int64_t j = 0; j < kV32Scales; ++j) {
    float stored = 0;
    std::memcpy(&stored, token + kMlaDim + j * 4, sizeof stored);
    const float scale = read_scale(stored, cache.scale_reading);
    for (std::int64_t i = j * kV32ScaleGroup; i < (j + 1) * kV32ScaleGroup; ++i) {
      values[i] = decode_bf16(encode_bf16(static_cast<float>(table[token[i]]) * scale));
    }
  }
  decode_bf16_values(token + kMlaDim + kV32Scales * 4, kMlaRope, values + kMlaDim);
}

}  // namespace

std::int64_t KvCache::key_dims() const {
  switch (layout) {
    case KvLayout::v4: return kMlaDim;
    case KvLayout::v32: return kV32Dim;
    case KvLayout::rows: return row_dims;
  }
  return 0;
}

std::int64_t kv_block_bytes(std::int64_t page, KvLayout layout) {
  if (layout == KvLayout::v32) return page * kV32TokenBytes;
  const std::int64_t bytes = page * (kMlaTokenBytes + kMlaScaleBytes);
  return (bytes + kMlaTokenBytes - 1) / kMlaTokenBytes * kMlaTokenBytes;
}

void decode_token(const KvCache& cache, std::int64_t slot, double* values) {
  const std::uint8_t* block = cache.data + slot / cache.page * cache.block_stride_bytes;
  const std::int64_t offset = slot % cache.page;
  switch (cache.layout) {
    case KvLayout::v4: return decode_v4(cache, block, offset, values);
    case KvLayout::v32: return decode_v32(cache, block + offset * kV32TokenBytes, values);
    case KvLayout::rows: return decode_bf16_values(block, cache.row_dims, values);
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
  encode_bf16_values(values.data() + kMlaNope, kMlaRope, codes + kMlaNope);
}

void encode_v32_token(std::uint8_t* token, Dialect dialect, ScaleWriting writing,
                      std::span<const float, kV32Dim> values) {
  const auto largest = static_cast<float>(e4m3_quantisation_max(dialect));
  for (std::int64_t j = 0; j < kV32Scales; ++j) {
    const auto group = values.subspan(j * kV32ScaleGroup, kV32ScaleGroup);
    float amax = 0;
    for (const float value : group) amax = std::max(amax, std::abs(value));
    float scale = std::max(amax / largest, 0x1p-126F);
    if (writing == ScaleWriting::power_of_two) scale = std::ldexp(1.0F, ceil_log2(scale));
    for (std::int64_t i = 0; i < kV32ScaleGroup; ++i) {
      token[j * kV32ScaleGroup + i] = encode_e4m3(group[i] / scale, dialect);
    }
    std::memcpy(token + kMlaDim + j * 4, &scale, sizeof scale);
  }
  encode_bf16_values(values.data() + kMlaDim, kMlaRope, token + kMlaDim + kV32Scales * 4);
}

}  // namespace plumb::reference
