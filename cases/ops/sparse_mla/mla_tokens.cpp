// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/sparse_mla/mla_tokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "cases/ops/cache/block_numbering.h"
#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

using reference::Dialect;
using reference::kMlaDim;
using reference::kMlaNope;
using reference::kMlaRope;
using reference::kMlaScaleBytes;
using reference::kMlaScaleGroup;
using reference::kMlaTokenBytes;
using reference::kV32Dim;
using reference::kV32ScaleGroup;
using reference::kV32Scales;
using reference::kV32TokenBytes;
using reference::KvLayout;

constexpr std::int64_t kScalesOfToken = kMlaNope / kMlaScaleGroup;
// Bytes that are NaN as a UE8M0 scale, as bf16 and as fp32.
constexpr std::uint8_t kNanByte = 0xff;
constexpr std::int64_t kRowsBehind = 2;

// How tokens of a sequence look in adversarial fills.
enum class TokenStyle { real, codes, binades };
TokenStyle style_of(const Step& step, std::int64_t sequence) {
  if (step.fill != Fill::adversarial) return TokenStyle::real;
  constexpr std::array kStyles = {TokenStyle::codes, TokenStyle::binades, TokenStyle::real};
  return kStyles[(step.seed + static_cast<std::uint64_t>(sequence)) % kStyles.size()];
}
// Scale exponents of the styles codes and binades: codes reach 448, so that a scale of 2^-7 makes
// values of about 1.
constexpr int kCodeExponent = -7, kMostBinades = 12;

void write_nan_codes(std::uint8_t* block, const MlaCacheShape& shape) {
  if (shape.layout == KvLayout::rows) return;
  const bool v32 = shape.layout == KvLayout::v32;
  for (std::int64_t offset = 0; offset < shape.page; ++offset) {
    std::memset(block + offset * (v32 ? kV32TokenBytes : kMlaTokenBytes),
                reference::e4m3_nan_code(shape.dialect), v32 ? kMlaDim : kMlaNope);
  }
}

// A random code that is a number. Half of the codes are special: zeros, subnormals, the largest.
std::uint8_t token_code(Dialect dialect, std::uint64_t bits) {
  constexpr std::array<std::uint8_t, 8> kSpecial = {0x00, 0x01, 0x07, 0x08, 0x7e, 0x81, 0x87, 0xfe};
  const auto code = static_cast<std::uint8_t>(bits & 0x100 ? kSpecial[bits & 7] : bits & 0xff);
  const bool number = !std::isnan(reference::e4m3_values(dialect)[code]);
  return number ? code : static_cast<std::uint8_t>(0);
}

// Writes RoPE dimensions: normal numbers, and every 16th is 2^-130.
void write_rope(std::uint8_t* to, std::int64_t first, std::int64_t count, std::uint64_t seed) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = i % 16 == 0 ? 0x1p-130 : normal(seed, first + i);
    const std::uint16_t bits = reference::encode_bf16(value);
    std::memcpy(to + 2 * i, &bits, sizeof bits);
  }
}

// Writes tokens with codes and scales that no quantiser would choose.
class CodeWriter {
 public:
  CodeWriter(const MlaCacheShape& shape, TokenStyle style, std::uint64_t seed)
      : shape_(shape), most_(style == TokenStyle::binades ? kMostBinades : 1), seed_(seed) {}

  void write_v4(std::uint8_t* data, std::uint8_t* scales) const {
    write_codes(data, kMlaNope);
    for (std::int64_t j = 0; j < kScalesOfToken; ++j) {
      scales[j] = static_cast<std::uint8_t>(shape_.every_code ? integer(seed_, kV32Dim + j, 1, 254)
                                                              : 127 + exponent(j));
    }
    write_rope(data + kMlaNope, kMlaNope, kMlaRope, seed_);
  }
  void write_v32(std::uint8_t* token) const {
    const bool whole = shape_.scale_writing == reference::ScaleWriting::power_of_two;
    write_codes(token, kMlaDim);
    for (std::int64_t j = 0; j < kV32Scales; ++j) {
      const double mantissa = whole ? 1 : 1 + uniform(seed_, kV32Dim + kV32Scales + j);
      const auto scale = static_cast<float>(std::ldexp(mantissa, exponent(j)));
      std::memcpy(token + kMlaDim + 4 * j, &scale, sizeof scale);
    }
    write_rope(token + kMlaDim + 4 * kV32Scales, kMlaDim, kMlaRope, seed_);
  }
  // Writes a bf16 row with the same range of magnitudes, group by group.
  void write_row(std::uint8_t* row) const {
    for (std::int64_t i = 0; i < shape_.row_dims; ++i) {
      const int binade = exponent(i / kMlaScaleGroup) - kCodeExponent;
      const double value = i % 16 == 0 ? 0x1p-130 : std::ldexp(normal(seed_, i), binade);
      const std::uint16_t bits = reference::encode_bf16(value);
      std::memcpy(row + 2 * i, &bits, sizeof bits);
    }
  }

 private:
  void write_codes(std::uint8_t* to, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = random_bits(seed_, i);
      to[i] =
          shape_.every_code ? static_cast<std::uint8_t>(bits) : token_code(shape_.dialect, bits);
    }
  }
  int exponent(std::int64_t group) const {
    return kCodeExponent + static_cast<int>(integer(seed_, kV32Dim + group, -most_, most_));
  }

  const MlaCacheShape& shape_;
  int most_;
  std::uint64_t seed_;
};

// Values of a token. Exact fill: small integers, which scales that are powers of two keep. Other
// fills: normal numbers with a norm per token; one dimension in 64 is an outlier.
using TokenValues = std::array<float, kV32Dim>;  // as long as the longest key (V3.2)
TokenValues token_values(Fill fill, std::uint64_t seed) {
  TokenValues values;
  const double scale = std::ldexp(1.0, static_cast<int>(integer(seed, kV32Dim, -2, 1)));
  for (std::int64_t i = 0; i < kV32Dim; ++i) {
    const double value = fill == Fill::exact ? static_cast<double>(integer(seed, i, -8, 8))
                                             : scale * normal(seed, i) * (i % 64 == 5 ? 8 : 1);
    values[static_cast<std::size_t>(i)] = static_cast<float>(value);
  }
  return values;
}

}  // namespace

std::int64_t MlaCacheShape::blocks_that_exist() const {
  return blocks() + (layout == KvLayout::rows ? kRowsBehind : 0);
}

std::int64_t MlaCacheShape::block_bytes() const {
  if (layout == KvLayout::rows) return 2 * (row_dims + gap);
  return reference::kv_block_bytes(page, layout) + gap * kV32TokenBytes;
}

std::int64_t MlaCacheShape::key_dims() const {
  return reference::KvCache{.layout = layout, .row_dims = row_dims}.key_dims();
}

double typical_value(const Step& step, std::int64_t sequence) {
  return style_of(step, sequence) == TokenStyle::binades ? std::ldexp(1.0, kMostBinades - 2) : 1.5;
}

std::int64_t MlaCacheShape::address(std::int64_t block) const {
  if (!far || block == 0) return block;
  const std::int64_t near = blocks() / 2;
  const std::int64_t past = block < near ? std::int64_t{1} << 31 : std::int64_t{1} << 32;
  return past / block_bytes() - 1 + (block < near ? block - 1 : block - near);
}

std::int64_t MlaCacheShape::num_blocks() const { return address(blocks() - 1) + 1; }

std::int64_t MlaCacheShape::pool_slot(std::int64_t slot) const {
  if (!far || slot < 0) return slot;
  const std::int64_t number = slot / page;
  for (std::int64_t block = 0; block < blocks(); ++block) {
    if (address(block) == number) return block * page + slot % page;
  }
  return -1;
}

MlaCache::MlaCache(const MlaCacheShape& shape, const Step& step, std::uint64_t seed,
                   HostTensor& bytes)
    : shape_(shape), step_(step), seed_(seed), bytes_(bytes) {
  check_blocks(shape.blocks(), shape.needed_blocks());
  std::fill(bytes_.bytes().begin(), bytes_.bytes().end(), std::byte{kNanByte});
  for (std::int64_t block = 0; block < shape_.blocks(); ++block) {
    write_nan_codes(block_start(block), shape_);
  }
  block_table_.resize(static_cast<std::size_t>(shape_.blocks() - 1));
  std::iota(block_table_.begin(), block_table_.end(), 1);
  for (std::size_t i = block_table_.size(); i > 1; --i) {
    const std::int64_t other = integer(seed_, i, 0, static_cast<std::int64_t>(i) - 1);
    std::swap(block_table_[i - 1], block_table_[static_cast<std::size_t>(other)]);
  }
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

std::uint8_t* MlaCache::block_start(std::int64_t block) {
  return bytes_.data<std::uint8_t>() + block * shape_.block_bytes();
}

void MlaCache::write(std::int64_t pool_slot, std::int64_t sequence) {
  if (written_[static_cast<std::size_t>(pool_slot)]) return;
  written_[static_cast<std::size_t>(pool_slot)] = true;
  const std::uint64_t seed = mix(seed_, static_cast<std::uint64_t>(pool_slot) + 1);
  std::uint8_t* block = block_start(pool_slot / shape_.page);
  const std::int64_t offset = pool_slot % shape_.page;
  const TokenStyle style = style_of(step_, sequence);
  if (style == TokenStyle::real) {
    write_values(block, offset, token_values(step_.fill, seed));
    return;
  }
  const CodeWriter writer(shape_, style, seed);
  switch (shape_.layout) {
    case KvLayout::v4:
      return writer.write_v4(block + offset * kMlaTokenBytes, v4_scales(block, offset));
    case KvLayout::v32: return writer.write_v32(block + offset * kV32TokenBytes);
    case KvLayout::rows: return writer.write_row(block);
  }
}

void MlaCache::write_values(std::uint8_t* block, std::int64_t offset,
                            std::span<const float, kV32Dim> values) {
  // Exact fills need scales that are powers of two: any other scale makes small integers inexact.
  const auto writing =
      step_.fill == Fill::exact ? reference::ScaleWriting::power_of_two : shape_.scale_writing;
  switch (shape_.layout) {
    case KvLayout::v4:
      reference::encode_token(block, shape_.page, offset, shape_.dialect, values.first<kMlaDim>());
      v4_scales(block, offset)[kScalesOfToken] = kNanByte;
      break;
    case KvLayout::v32:
      reference::encode_v32_token(block + offset * kV32TokenBytes, shape_.dialect, writing, values);
      break;
    case KvLayout::rows:
      for (std::int64_t i = 0; i < shape_.row_dims; ++i) {
        const std::uint16_t bits = reference::encode_bf16(values[static_cast<std::size_t>(i)]);
        std::memcpy(block + 2 * i, &bits, sizeof bits);
      }
  }
}

std::uint8_t* MlaCache::v4_scales(std::uint8_t* block, std::int64_t offset) const {
  return block + shape_.page * kMlaTokenBytes + offset * kMlaScaleBytes;
}

}  // namespace plumb::cases
