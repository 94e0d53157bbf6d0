/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse MLA: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_SPARSE_MLA_H
#define PLUMB_OPS_SPARSE_MLA_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum plumb_mla_layout {
  PLUMB_MLA_V4 = 0, /* key = value = 512. Per block all token data (448 fp8 + 64 bf16 = 576 bytes
                       each), then all scales (7 UE8M0 bytes + 1 pad each)   [1.1 MODEL1] */
  PLUMB_MLA_V32 = 1 /* key 576, value = its first 512. Token by token 656 bytes: 512 fp8, 4 fp32
                       scales, 64 bf16; block_stride_bytes is a multiple of 4   [1.1 V32] */
} plumb_mla_layout;

/* How a kernel of V32 multiplies codes by their fp32 scale. Kernels in use differ, so the caller
 * chooses. An implementation with another reading returns PLUMB_UNSUPPORTED. All agree if scales
 * are powers of two   [1.1] */
typedef enum plumb_scale_reading {
  PLUMB_SCALE_FP32 = 0, /* bf16(code * scale), the product in fp32 */
  PLUMB_SCALE_BF16 = 1, /* bf16(code * bf16(scale)): FlashMLA's sm90 kernels */
  PLUMB_SCALE_E8M0 = 2  /* code * (power of two not above scale): FlashMLA's sm100 kernels */
} plumb_scale_reading;

/* One paged cache of keys. */
typedef struct plumb_mla_cache {
  const uint8_t* data; /* optional for the extra cache: NULL = absent */
  int64_t block_stride_bytes;
  int64_t num_blocks;
  int64_t page;         /* tokens per block */
  plumb_format dialect; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ; may differ between caches   [2.11] */
  plumb_mla_layout layout;
  plumb_scale_reading scale_reading; /* V32 only */
} plumb_mla_cache;

/* Candidates of every query row in one cache, in one of two forms:
 *  dense:  indices [requests, queries, width], of which the first lengths[request] count
 *  ragged: row r (= request * queries + query) owns indices[indptr[r] .. indptr[r+1])
 * In a decode, an index is a slot, block * page + offset, and -1 is skipped. In a prefill, an
 * index is a row of kv, and every index outside [0, kv_rows) is skipped. */
typedef struct plumb_mla_candidates {
  const int32_t* indices;
  const int32_t* lengths; /* dense: [requests], optional = width for all; ragged: NULL */
  const int32_t* indptr;  /* ragged: [rows + 1]; dense: NULL */
  int64_t request_stride, query_stride; /* dense */
  int64_t width;                        /* dense: columns; ragged: most candidates of a row */
} plumb_mla_candidates;

/* Tile plan of a split decode. The function `plan` of the op's plumb_op_entry fills it, and later
 * launches use it. It is valid only while shapes and lengths stay the same. If the entry has no
 * function `plan`, each launch fills the tile plan [1.6, 1.7] */
typedef struct plumb_mla_plan {
  int64_t struct_size; /* of this structure, in bytes */
  int32_t* tiles;      /* device [num_parts, 8]: begin_req, end_req, begin_block, end_block,
                          begin_split, first_split, last_split, pad */
  int32_t* num_splits; /* device [requests + 1], prefix sums */
  int64_t num_parts;
  int64_t block_n;        /* candidates per block, 64 */
  int64_t fixed_overhead; /* blocks, 5 */
} plumb_mla_plan;

/* Sparse MLA decode over a main and an optional extra cache of one layout; dims is 512 for V4 and
 * 576 for V32   [1.2 - 1.6, 2.10] */
typedef struct plumb_sparse_mla_decode_params {
  int64_t struct_size; /* of this structure, in bytes */
  const uint16_t* q;   /* bf16 [requests, queries, heads, dims] */
  plumb_mla_cache main_cache, extra_cache;
  plumb_mla_candidates main, extra;
  const float* attn_sink; /* fp32 [heads], optional */
  uint16_t* out;          /* bf16 [requests, queries, heads, 512] */
  float* lse;             /* fp32 [requests, heads, queries], natural log; optional */
  /* Visible intermediates of requests with several splits. NULL if there is no plan. */
  float* partial_out;         /* fp32 [requests + num_parts, queries, heads, 512] */
  float* partial_lse;         /* fp32 [requests + num_parts, queries, heads], base 2 */
  const plumb_mla_plan* plan; /* optional; NULL: the kernel may divide the work in any way */
  int64_t requests, queries, heads;
  int64_t q_request_stride, q_query_stride, q_head_stride;
  int64_t out_request_stride, out_query_stride, out_head_stride, lse_request_stride,
      lse_head_stride;
  float sm_scale;
  plumb_stream stream;
  int64_t partial_out_slot_stride, partial_out_query_stride, partial_out_head_stride;
  int64_t partial_lse_slot_stride, partial_lse_query_stride;
  void* state; /* result of the entry's state_create; NULL if it has none */
} plumb_sparse_mla_decode_params;

/* Sparse MLA prefill over a workspace of dequantised rows [1.8, 2.10]. For plumb_mla_candidates
 * every query row is a request with one query, so lengths is [rows]. */
typedef struct plumb_sparse_mla_prefill_params {
  int64_t struct_size; /* of this structure, in bytes */
  const uint16_t* q;   /* bf16 [rows, heads, key_dims] */
  const uint16_t* kv;  /* bf16 [kv_rows, key_dims]: keys, values are their first 512 */
  plumb_mla_candidates candidates;
  const float* attn_sink; /* fp32 [heads], optional */
  uint16_t* out;          /* bf16 [rows, heads, 512] */
  float* max_logits;      /* fp32 [rows, heads], natural units; optional */
  float* lse;             /* fp32 [rows, heads], natural logarithm; optional */
  int64_t rows, heads, kv_rows;
  int64_t key_dims; /* 512 or 576 */
  int64_t q_row_stride, q_head_stride, kv_row_stride;
  int64_t out_row_stride, out_head_stride, max_logits_row_stride, lse_row_stride;
  float sm_scale;
  plumb_stream stream;
} plumb_sparse_mla_prefill_params;

/* Copies the last gather_len tokens of each request from a V4 cache to rows [offset, offset +
 * gather_len) of its workspace [2.8]. All other rows stay unchanged. */
typedef struct plumb_dequantize_and_gather_k_cache_params {
  int64_t struct_size;        /* of this structure, in bytes */
  plumb_mla_cache cache;      /* PLUMB_MLA_V4 */
  const int32_t* block_table; /* [requests, pages]: block of each page of a request's tokens */
  const int32_t* seq_lens;    /* [requests] */
  const int32_t* gather_lens; /* [requests], at most seq_lens; optional = seq_lens */
  uint16_t* out;              /* bf16 [requests, rows, 512]; in and out */
  int64_t requests, rows, pages, offset;
  int64_t out_request_stride, out_row_stride, block_table_row_stride;
  plumb_stream stream;
} plumb_dequantize_and_gather_k_cache_params;

/* The tile plan of a split decode as an op of its own [1.9]. Part p has
 * requests begin_req to end_req inclusive, from begin_block of the first to end_block of the
 * last. Every block of every request is in exactly one part. If a request is in several parts,
 * its flag is set in each of them and num_splits counts them. */
typedef struct plumb_get_decoding_sched_meta_params {
  int64_t struct_size;              /* of this structure, in bytes */
  const int32_t* topk_length;       /* [requests], optional = topk for all */
  const int32_t* extra_topk_length; /* [requests], optional = extra_topk for all */
  int32_t* tile_scheduler_metadata; /* [num_sm_parts, 8] contiguous: the tiles of plumb_mla_plan */
  int32_t* num_splits;              /* [requests + 1], prefix sums */
  int64_t requests, topk;
  int64_t extra_topk; /* candidates in the extra cache; 0: no extra cache */
  int64_t num_sm_parts;
  int64_t block_n;        /* candidates per block, 64 */
  int64_t fixed_overhead; /* cost of a request in blocks; planners may balance in any way */
  plumb_stream stream;
  /* Ragged candidates, in place of lengths: request r has indptr[r + 1] - indptr[r] of them */
  const int32_t* topk_indptr;       /* [requests + 1], optional */
  const int32_t* extra_topk_indptr; /* [requests + 1], with topk_indptr and extra_topk above 0 */
} plumb_get_decoding_sched_meta_params;

/* AITER's plan of a split MLA decode with one query per row, as V3.2 on ROCm has it [1.10]. A row
 * of the plan is a row of kv_indptr, or one of its qk_batch_ratio groups of 16 heads: row v has the
 * query v and the keys of batch row v / qk_batch_ratio. Every key of every row is in exactly one
 * item. If a row has several items, each writes a partial result, and a second kernel reduces them.
 * Entries behind the counts are not written. */
typedef struct plumb_get_mla_metadata_v1_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const int32_t* kv_indptr;    /* [batch + 1] keys of each row; begins with 0, never decreases */
  int64_t* work_metadata_ptrs; /* [2] addresses of work_indptr and work_info_set */
  int32_t* work_indptr;        /* [num_cu + 1] items of each compute unit */
  int32_t* work_info_set;      /* [max_rows + num_cu - 1, 8] contiguous: row, partial or -1, first
                                  and last query, first and last key (last: exclusive), keys of the
                                  row behind the last one, padding */
  int32_t* reduce_indptr;      /* [max_rows + 1] partials of each row; the total behind all rows */
  int32_t* reduce_final_map;   /* [max_rows, 2] contiguous: queries of each row that has partials */
  int32_t* reduce_partial_map; /* [min(max_rows + num_cu - 1, 2 * (num_cu - 1))] partials of rows */
  int64_t batch;               /* rows of kv_indptr */
  int64_t qk_batch_ratio;      /* 1, or heads / 16 where the decode kernel takes 16 heads */
  int64_t max_rows;            /* size of the buffers, at least batch * qk_batch_ratio */
  int64_t num_cu;              /* compute units of the decode kernel */
  int64_t max_split_per_batch; /* balances the work; < 0: no limit. Planners may balance anyhow */
  plumb_stream stream;
} plumb_get_mla_metadata_v1_params;

#ifdef __cplusplus
}
#endif

#endif
