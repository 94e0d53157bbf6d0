// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/compressor/compressed_layout.h"

#include <utility>

#include "cases/ops/quantization/quant_inputs.h"
#include "cases/ops/quantization/stored_codes.h"
#include "reference/cache/indexer_k_quant_and_cache.h"
#include "reference/cache/kv_cache.h"
#include "reference/cache/quantize_and_insert_k_cache.h"
#include "reference/indexer/fp4_paged_mqa_logits.h"
#include "reference/quantization/mxfp4_quant.h"

namespace plumb::cases {

using reference::CacheEntry;
using reference::GroupQuant;

WordChoices compressed_layouts() {
  return {"layout",
          {{"indexer", PLUMB_COMPRESSED_INDEXER},
           {"main", PLUMB_COMPRESSED_MAIN},
           {"rows", PLUMB_COMPRESSED_ROWS},
           {"indexer_bytes", PLUMB_COMPRESSED_INDEXER_BYTES},
           {"indexer_mxfp4", PLUMB_COMPRESSED_INDEXER_MXFP4},
           {"rows_fp8", PLUMB_COMPRESSED_ROWS_FP8}}};
}

Formula compressed_page_bytes(const Formula& page, const Formula& head_dim) {
  const Formula main = word_is("layout", "main"), rows = word_is("layout", "rows");
  const Formula rows_fp8 = word_is("layout", "rows_fp8");
  const Formula mxfp4 = word_is("layout", "indexer_mxfp4");
  const Formula of_main = div_up(page * (reference::kMlaTokenBytes + reference::kMlaScaleBytes),
                                 reference::kMlaTokenBytes) *
                          reference::kMlaTokenBytes;
  const Formula of_mxfp4 = div_up(head_dim, 2) + div_up(head_dim, reference::kMxGroup);
  return main * of_main + page * (rows * head_dim * 2 + rows_fp8 * head_dim + mxfp4 * of_mxfp4 +
                                  !(main + rows + rows_fp8 + mxfp4) * (head_dim + 4));
}

CompressedLayout::CompressedLayout(const plumb_compress_norm_rope_insert_params& p)
    : kind(p.layout),
      page(p.cache.page),
      head_dim(p.head_dim),
      pads(p.pad == PLUMB_PAD_ZERO),
      floor_of_scale(is_main() && p.floor == PLUMB_COMPRESSED_FLOOR_SCALE),
      fp32_scales(kind == PLUMB_COMPRESSED_INDEXER && p.scale_form == PLUMB_SCALE_AS_IT_IS) {}

CacheEntry CompressedLayout::entry(std::int64_t offset) const {
  CacheEntry entry;
  switch (kind) {
    case PLUMB_COMPRESSED_MAIN: return reference::k_cache_entry(page, offset, pads);
    case PLUMB_COMPRESSED_INDEXER:
    case PLUMB_COMPRESSED_INDEXER_BYTES:
      return reference::indexer_k_entry(
          {.page = page, .head_dim = head_dim, .quant_block = head_dim}, offset);
    case PLUMB_COMPRESSED_INDEXER_MXFP4: {
      const reference::Fp4Entry begin = reference::fp4_entry(page, head_dim, offset);
      reference::append_range(entry.codes, begin.codes, head_dim / 2);
      reference::append_range(entry.scales, begin.scales, head_dim / reference::kMxGroup);
      return entry;
    }
    case PLUMB_COMPRESSED_ROWS:
      reference::append_range(entry.copied, offset * head_dim * 2, head_dim * 2);
      return entry;
    case PLUMB_COMPRESSED_ROWS_FP8:
      reference::append_range(entry.codes, offset * head_dim, head_dim);
      return entry;
  }
  return entry;
}

GroupQuant CompressedLayout::quant() const {
  constexpr double kLeastMx = 0x1.8p-124;  // 6 * 2^-126
  if (kind == PLUMB_COMPRESSED_INDEXER_MXFP4) return reference::mxfp4_quant(kLeastMx);
  GroupQuant quant = reference::fp8_quant(reference::Dialect::e4m3fn,
                                          is_main() ? reference::kMlaScaleGroup : head_dim);
  quant.by_reciprocal = kind == PLUMB_COMPRESSED_ROWS_FP8 || fp32_scales;
  if (has_scales()) (floor_of_scale ? quant.scale_floor : quant.amax_floor) = double{1e-4F};
  return quant;
}

bool CompressedLayout::is_of_indexer() const { return has_scales() && !is_main(); }

bool CompressedLayout::has_scales() const {
  return kind != PLUMB_COMPRESSED_ROWS && kind != PLUMB_COMPRESSED_ROWS_FP8;
}

std::int64_t CompressedLayout::alignment() const {
  switch (kind) {
    case PLUMB_COMPRESSED_INDEXER:
    case PLUMB_COMPRESSED_INDEXER_BYTES: return 4;
    case PLUMB_COMPRESSED_MAIN:
    case PLUMB_COMPRESSED_ROWS: return 2;
    case PLUMB_COMPRESSED_INDEXER_MXFP4:
    case PLUMB_COMPRESSED_ROWS_FP8: break;
  }
  return 1;
}

std::int64_t CompressedLayout::quantised_columns() const {
  if (kind == PLUMB_COMPRESSED_ROWS) return 0;
  return is_main() ? reference::kMlaNope : head_dim;
}

HostTensor CompressedLayout::codes(const CacheContents& contents) const {
  HostTensor codes = contents.stored("cache.codes", Dtype::u8, &CacheEntry::codes);
  return kind == PLUMB_COMPRESSED_INDEXER_MXFP4 ? one_code_per_byte(codes) : std::move(codes);
}

HostTensor CompressedLayout::scales(const CacheContents& contents) const {
  const bool in_fp32 = kind == PLUMB_COMPRESSED_INDEXER;
  HostTensor scales =
      contents.stored("cache.scales", in_fp32 ? Dtype::f32 : Dtype::u8, &CacheEntry::scales);
  if (kind == PLUMB_COMPRESSED_INDEXER_BYTES)
    return bytes_as(scales, "cache.scales", Dtype::u8, 0, 1);
  if (!in_fp32 || fp32_scales) return scales;
  return bytes_of_scales("cache.scales", scales.rows(), scales.columns(), numbers_of(scales),
                         scales.spec().origin);
}

}  // namespace plumb::cases
