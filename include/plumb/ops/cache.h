/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers of paged caches: parameters of their ops. Conventions are those of plumb_ops.h.
 *
 * Token t goes to slot_mapping[t] = block * page + offset. `skip` says which tokens are skipped.
 * There are as many tokens as the slot mapping has: the tensors of tokens may be longer. No slot is
 * named twice. Bytes of a cache that no token owns stay as they are. */
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

/* The slots whose tokens are skipped. No other negative slot is in a call. */
typedef enum plumb_skipped_slots {
  PLUMB_SKIP_MINUS_ONE = 0,
  PLUMB_SKIP_NEGATIVE = 1,
  PLUMB_SKIP_NEVER = 2 /* every token has a slot */
} plumb_skipped_slots;

/* The byte behind the seven scales of a token of V4. */
typedef enum plumb_pad_byte { PLUMB_PAD_ZERO = 0, PLUMB_PAD_UNTOUCHED = 1 } plumb_pad_byte;

/* A scale that is stored as fp32. */
typedef enum plumb_scale_form {
  PLUMB_SCALE_AS_IT_IS = 0,
  PLUMB_SCALE_POWER_OF_TWO = 1 /* the least power of two that is not smaller */
} plumb_scale_form;

/* Latent k of V4 into the layout of plumb_mla_cache   [2.11, 1.1]. Seven groups of 64 columns in
 * fp8, scale 2^ceil(log2(max(amax, amax_floor) / largest)), largest 448 or 224; the last 64 columns
 * copied. */
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

/* Latent k of V3.2: 656 bytes a token, token by token   [1.1 V32]: 512 codes, 4 fp32 scales
 * max(amax / largest, scale_floor) of 128 columns each, 64 bf16 copied. */
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

/* Keys of the lightning indexer   [5.4]. A block holds the codes of all its tokens, then their fp32
 * scales max(amax, amax_floor) / largest, head_dim / quant_block_size per token. */
typedef struct plumb_indexer_k_quant_and_cache_params {
  int64_t struct_size; /* of this structure, in bytes */
  const uint16_t* k;   /* bf16 [>= tokens, head_dim] */
  const int64_t* slot_mapping;
  plumb_paged_cache cache; /* block_stride_bytes and page * head_dim multiples of 4 */
  int64_t tokens, k_row_stride;
  int64_t head_dim, quant_block_size; /* the second divides the first */
  plumb_scale_form scale_form;
  int32_t shuffled; /* 1: codes in [page / 16][head_dim / 16][16 tokens][16 bytes] where the page
                       is more than 1; 16 divides page and head_dim */
  plumb_stream stream;
  plumb_skipped_slots skip;
  float amax_floor; /* > 0 */
} plumb_indexer_k_quant_and_cache_params;

#ifdef __cplusplus
}
#endif

#endif
