// SPDX-License-Identifier: Apache-2.0
//
// How a cache of compressed states stores a state: where its bytes lie, and how its channels are
// quantised.
#pragma once

#include <plumb/ops/compressor.h>

#include <cstdint>

#include "cases/ops/cache/cache_pool.h"
#include "cases/tables/table_part.h"
#include "reference/cache/cache_entry.h"
#include "reference/quantization/group_quant.h"

namespace plumb::cases {

inline const WordParameter kCompressedLayout{
    "layout",
    {"indexer", "main", "rows", "indexer_bytes", "indexer_mxfp4", "rows_fp8"},
    "of the cache: fp8 keys of the indexer, fp8_ds_mla, bf16 rows, fp8 keys whose scale is four "
    "equal bytes, MXFP4 keys, or fp8 rows under one scale"};
WordChoices compressed_layouts();
// Of one page, without the gap between pages.
Formula compressed_page_bytes(const Formula& page, const Formula& head_dim);

struct CompressedLayout {
  explicit CompressedLayout(const plumb_compress_norm_rope_insert_params& p);

  plumb_compressed_layout kind;
  std::int64_t page, head_dim;
  bool pads;            // main: the byte behind the scales is written
  bool floor_of_scale;  // main: the scale has a least value, not the amax
  bool fp32_scales;     // indexer: scales are not rounded to powers of two

  reference::CacheEntry entry(std::int64_t offset) const;
  reference::GroupQuant quant() const;
  bool is_main() const { return kind == PLUMB_COMPRESSED_MAIN; }
  bool is_of_indexer() const;
  std::int64_t alignment() const;          // of the addresses of blocks, in bytes
  bool has_scales() const;                 // per state
  std::int64_t quantised_columns() const;  // the first ones of a state; 0: none

  // Codes of all tokens, one per element.
  HostTensor codes(const CacheContents& contents) const;
  // The scales of all tokens: numbers if `fp32_scales`, else UE8M0 bytes. A scale that is stored as
  // fp32 and is no power of two then becomes 255.
  HostTensor scales(const CacheContents& contents) const;
};

}  // namespace plumb::cases
