/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of paged caches: parameters of their ops. Conventions are those of plumb_ops.h.
 *
 * Token t is written to slot_mapping[t] = block * page + offset. `skip` says which tokens are
 * skipped. The number of tokens is the length of slot_mapping; the tensors of tokens may be
 * longer. No slot occurs twice. Bytes of a cache that belong to no token stay unchanged. */
#ifndef PLUMB_OPS_CACHE_H
#define PLUMB_OPS_CACHE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plumb_paged_cache {
  uint8_t* data;
  int64_t block_stride_bytes;
  int64_t num_blocks;
  int64_t page;         /* tokens per block */
  plumb_format dialect; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ */
} plumb_paged_cache;

/* Slots whose tokens a cache writer skips. A call has no other negative slots. */
typedef enum plumb_skipped_slots {
  PLUMB_SKIP_MINUS_ONE = 0,
  PLUMB_SKIP_NEGATIVE = 1,
  PLUMB_SKIP_NEVER = 2 /* every token has a slot */
} plumb_skipped_slots;

/* Content of the pad byte after the seven scales of a V4 token. */
typedef enum plumb_pad_byte { PLUMB_PAD_ZERO = 0, PLUMB_PAD_UNTOUCHED = 1 } plumb_pad_byte;

/* Form of a scale that a cache stores in fp32. */
typedef enum plumb_scale_form {
  PLUMB_SCALE_AS_IT_IS = 0,
  PLUMB_SCALE_POWER_OF_TWO = 1 /* rounded up to a power of two */
} plumb_scale_form;

/* Writes latent k of V4 in the layout of plumb_mla_cache [2.11, 1.1]: seven groups of 64 columns
 * in fp8 with the scale 2^ceil(log2(max(amax, amax_floor) / largest)), where largest is 448 or
 * 224; the last 64 columns are copied. */
typedef struct plumb_quantize_and_insert_k_cache_params {
  int64_t struct_size; /* of this structure, in bytes */
  const uint16_t* kv;  /* bf16 [>= tokens, 512] */
  const int64_t* slot_mapping;
  plumb_paged_cache cache;
  int64_t tokens, kv_row_stride;
  plumb_stream stream;
  plumb_skipped_slots skip;
  plumb_pad_byte pad;
  float amax_floor; /* > 0 */
} plumb_quantize_and_insert_k_cache_params;

/* Writes latent k of V3.2, 656 bytes per token, one token after the other [1.1 V32]: 512 codes,
 * 4 fp32 scales max(amax / largest, scale_floor) of 128 columns each, 64 copied bf16 values. */
typedef struct plumb_concat_and_cache_ds_mla_params {
  int64_t struct_size;  /* of this structure, in bytes */
  const uint16_t* kv_c; /* bf16 [>= tokens, 512] */
  const uint16_t* k_pe; /* bf16 [>= tokens, 64] */
  const int64_t* slot_mapping;
  plumb_paged_cache cache; /* block_stride_bytes a multiple of 4 */
  int64_t tokens, kv_c_row_stride, k_pe_row_stride;
  plumb_stream stream;
  plumb_skipped_slots skip;
  plumb_scale_form scale_form;
  float scale_floor; /* > 0 */
} plumb_concat_and_cache_ds_mla_params;

/* Writes keys of the lightning indexer [5.4]. A block holds the codes of all its tokens, then
 * their fp32 scales max(amax, amax_floor) / largest, head_dim / quant_block_size per token. */
typedef struct plumb_indexer_k_quant_and_cache_params {
  int64_t struct_size; /* of this structure, in bytes */
  const uint16_t* k;   /* bf16 [>= tokens, head_dim] */
  const int64_t* slot_mapping;
  plumb_paged_cache cache; /* block_stride_bytes and page * head_dim multiples of 4 */
  int64_t tokens, k_row_stride;
  int64_t head_dim, quant_block_size; /* the second divides the first */
  plumb_scale_form scale_form;
  int32_t shuffled; /* 1: codes as [page / 16][head_dim / 16][16 tokens][16 bytes] if page > 1; 16
                       must divide page and head_dim */
  plumb_stream stream;
  plumb_skipped_slots skip;
  float amax_floor; /* > 0 */
} plumb_indexer_k_quant_and_cache_params;

#ifdef __cplusplus
}
#endif

#endif
