// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/cache/cache_writer.h"

#include <fmt/format.h>

#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"

namespace plumb::cases {

using reference::Bf16Rows;
using reference::CacheEntry;
using reference::Dialect;
using reference::GroupQuant;

CacheWriter::CacheWriter(const Row& row, const device::Properties& platform)
    : pool_{.tokens = row.integer("tokens"),
            .page = row.integer("page"),
            .given_blocks = row.integer("blocks"),
            .holes_percent = row.integer("holes_percent"),
            .whole_blocks = row.word("slots") == "whole_blocks",
            .far = row.integer("far") != 0,
            .dialect = dialect_of(row, "dialect", platform)} {}

Expectation CacheWriter::expect_stored_codes(const CacheContents& contents, const HostTensor& x,
                                             const std::vector<double>& scales,
                                             const GroupQuant& how,
                                             const reference::Numerics& numerics) const {
  const HostTensor codes = contents.stored("cache.codes", Dtype::u8, &CacheEntry::codes);
  return expect_codes(codes, group_codes(tokens_of(x, codes.columns()), scales, how, numerics),
                      contents.judged(x));
}

Expectation CacheWriter::expect_stored_scales(const CacheContents& contents, const HostTensor& x,
                                              const GroupQuant& how, plumb_scale_form form,
                                              const reference::Numerics& numerics) const {
  const HostTensor scales = contents.stored("cache.scales", Dtype::f32, &CacheEntry::scales);
  const Bf16Rows tokens = tokens_of(x, scales.columns() * how.group);
  if (form == PLUMB_SCALE_AS_IT_IS) {
    return expect_fp32_scales(scales, tokens, how, numerics, contents.judged(x));
  }
  return expect_codes(bytes_of_scales("cache.scales", scales.rows(), scales.columns(),
                                      numbers_of(scales), scales.spec().origin),
                      group_scale_bytes(tokens, how, numerics), contents.judged(x));
}

Bf16Rows CacheWriter::tokens_of(const HostTensor& x, std::int64_t columns) const {
  return {x.data<std::uint16_t>(), pool_.tokens, columns, x.spec().strides.front()};
}

double CacheWriter::writer_cost(std::int64_t groups, std::int64_t columns) const {
  return quant_cost(pool_.tokens * groups, pool_.tokens * columns);
}

// Nanoseconds: 60 for each code, and 8 for each byte of the cache, all of which are compared.
double CacheWriter::writer_reference_cost(std::int64_t columns) const {
  return 60.0 * static_cast<double>(pool_.tokens * columns) +
         8.0 * static_cast<double>(pool_.blocks() * pool_.block_bytes);
}

std::vector<Parameter> cache_writer_parameters(std::int64_t default_page) {
  return {{"tokens", 4, 0, 1 << 20, "length of the slot mapping"},
          {"extra_tokens", 0, 0, 1 << 20, "tokens past the slot mapping, which are none"},
          {"page", default_page, 1, 4096, "tokens of a block"},
          {"blocks", 0, 0, 1 << 30, "of the cache; 0: what the tokens need, and two"},
          {"holes_percent", 0, 0, 100, "live tokens without a slot"},
          {"row_gap", 0, 0, 1 << 20, "elements between tokens, guarded"},
          {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"}};
}

}  // namespace plumb::cases
