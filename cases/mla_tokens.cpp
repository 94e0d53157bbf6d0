// SPDX-License-Identifier: Apache-2.0
#include "cases/mla_tokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "cases/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

using reference::Dialect;
using reference::kMlaDim;
using reference::kMlaNope;
using reference::kMlaScaleBytes;
using reference::kMlaScaleGroup;
using reference::kMlaTokenBytes;

constexpr std::int64_t kScales = kMlaNope / kMlaScaleGroup;
constexpr std::uint8_t kNanScale = 0xff, kNanByteOfBf16 = 0xff;

// How the tokens of a sequence look under adversarial fills.
enum class TokenStyle { real, codes, binades };
TokenStyle style_of(const Step& step, std::int64_t sequence) {
  if (step.fill != Fill::adversarial) return TokenStyle::real;
  constexpr std::array kStyles = {TokenStyle::codes, TokenStyle::binades, TokenStyle::real};
  return kStyles[(step.seed + static_cast<std::uint64_t>(sequence)) % kStyles.size()];
}
// Scale exponents of the styles that choose their own: codes reach 448, so 2^-7 makes them about 1.
constexpr int kCodeExponent = -7, kMostBinades = 12;

std::uint8_t nan_code(Dialect dialect) { return dialect == Dialect::e4m3fn ? 0x7f : 0x80; }

void poison_block(std::uint8_t* block, const MlaCacheShape& shape) {
  std::memset(block, kNanScale, static_cast<std::size_t>(shape.block_bytes()));
  for (std::int64_t offset = 0; offset < shape.page; ++offset) {
    std::uint8_t* token = block + offset * kMlaTokenBytes;
    std::memset(token, nan_code(shape.dialect), kMlaNope);
    std::memset(token + kMlaNope, kNanByteOfBf16, kMlaTokenBytes - kMlaNope);
  }
}

// Any code that is a number, the special ones (zeros, subnormals, the largest) as often as not.
std::uint8_t number_code(Dialect dialect, std::uint64_t bits) {
  constexpr std::array<std::uint8_t, 8> kSpecial = {0x00, 0x01, 0x07, 0x08, 0x7e, 0x81, 0x87, 0xfe};
  const auto code = static_cast<std::uint8_t>(bits & 0x100 ? kSpecial[bits & 7] : bits & 0xff);
  const bool number = !std::isnan(reference::e4m3_values(dialect)[code]);
  return number ? code : static_cast<std::uint8_t>(0);
}

void write_codes(std::uint8_t* data, std::uint8_t* scales, const MlaCacheShape& shape,
                 TokenStyle style, std::uint64_t seed) {
  for (std::int64_t i = 0; i < kMlaNope; ++i) {
    data[i] = number_code(shape.dialect, random_bits(seed, i));
  }
  const int most = style == TokenStyle::binades ? kMostBinades : 1;
  for (std::int64_t j = 0; j < kScales; ++j) {
    const std::int64_t exponent = kCodeExponent + integer(seed, kMlaDim + j, -most, most);
    scales[j] = static_cast<std::uint8_t>(127 + exponent);
  }
  for (std::int64_t i = kMlaNope; i < kMlaDim; ++i) {
    const float value = i % 16 == 0 ? 0x1p-130F : static_cast<float>(normal(seed, i));
    const std::uint16_t bits = reference::encode_bf16(value);
    std::memcpy(data + kMlaNope + 2 * (i - kMlaNope), &bits, sizeof bits);
  }
}

// Small integers, which every scale keeps; or values of a norm of the token's own, one dimension in
// 64 an outlier.
std::array<float, kMlaDim> token_values(Fill fill, std::uint64_t seed) {
  std::array<float, kMlaDim> values;
  const double scale = std::ldexp(1.0, static_cast<int>(integer(seed, kMlaDim, -2, 1)));
  for (std::int64_t i = 0; i < kMlaDim; ++i) {
    const double value = fill == Fill::exact ? static_cast<double>(integer(seed, i, -8, 8))
                                             : scale * normal(seed, i) * (i % 64 == 5 ? 8 : 1);
    values[static_cast<std::size_t>(i)] = static_cast<float>(value);
  }
  return values;
}

}  // namespace

double typical_value(const Step& step, std::int64_t sequence) {
  return style_of(step, sequence) == TokenStyle::binades ? std::ldexp(1.0, kMostBinades - 2) : 1.5;
}

std::int64_t MlaCacheShape::pool_slot(std::int64_t slot) const {
  if (!far || slot < 0) return slot;
  const std::int64_t block = pool().block_at(slot / page);
  return block < 0 ? -1 : block * page + slot % page;
}

MlaCache::MlaCache(const MlaCacheShape& shape, const Step& step, std::uint64_t seed,
                   HostTensor& bytes)
    : shape_(shape), step_(step), seed_(seed), bytes_(bytes) {
  for (std::int64_t block = 0; block < shape_.blocks(); ++block) {
    poison_block(bytes_.row<std::uint8_t>(block), shape_);
  }
  block_table_ = permuted_blocks(shape_.blocks(), seed_);
  written_.assign(static_cast<std::size_t>(shape_.blocks() * shape_.page), false);
}

std::int32_t MlaCache::use(std::int64_t sequence, std::int64_t position) {
  const std::int64_t entry = sequence * shape_.blocks_per_sequence() + position / shape_.page;
  const std::int64_t block = block_table_[static_cast<std::size_t>(entry)];
  const std::int64_t offset = position % shape_.page;
  write(block * shape_.page + offset, sequence);
  return static_cast<std::int32_t>(shape_.address(block) * shape_.page + offset);
}

std::int32_t MlaCache::unused(std::uint64_t salt) const {
  return static_cast<std::int32_t>(salt % static_cast<std::uint64_t>(shape_.page));
}

void MlaCache::write(std::int64_t pool_slot, std::int64_t sequence) {
  if (written_[static_cast<std::size_t>(pool_slot)]) return;
  written_[static_cast<std::size_t>(pool_slot)] = true;
  const std::uint64_t seed = mix(seed_, static_cast<std::uint64_t>(pool_slot) + 1);
  auto* block = bytes_.row<std::uint8_t>(pool_slot / shape_.page);
  const std::int64_t offset = pool_slot % shape_.page;
  std::uint8_t* scales = block + shape_.page * kMlaTokenBytes + offset * kMlaScaleBytes;
  const TokenStyle style = style_of(step_, sequence);
  if (style == TokenStyle::real) {
    const std::array<float, kMlaDim> values = token_values(step_.fill, seed);
    reference::encode_token(block, shape_.page, offset, shape_.dialect, values);
    scales[kScales] = kNanScale;
  } else {
    write_codes(block + offset * kMlaTokenBytes, scales, shape_, style, seed);
  }
}

}  // namespace plumb::cases
