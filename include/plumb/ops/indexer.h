/* SPDX-License-Identifier: Apache-2.0
 *
 * The lightning indexer: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_INDEXER_H
#define PLUMB_OPS_INDEXER_H

#include "cache.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* logits[m,n] = k_scale[n] * sum_h weights[m,h] * max(0, q[m,h,:] . k[n,:])   [5.1, 5.2]
 * for the keys n in [starts[m], ends[m]), both clamped to [0, keys]. */
typedef struct plumb_fp8_mqa_logits_params {
  int64_t struct_size;   /* of this structure, in bytes */
  const uint8_t* q;      /* fp8 [rows, heads, dim] contiguous */
  const uint8_t* k;      /* fp8 [keys, dim] contiguous */
  const float* k_scale;  /* [keys], positive */
  const float* weights;  /* [rows, heads] */
  const int32_t* starts; /* [rows] */
  const int32_t* ends;   /* [rows]; an end <= its start means no keys */
  float* logits;         /* [rows, keys], or [rows, max_seqlen_k] if that is above 0 */
  int64_t rows, keys;
  int64_t logits_row_stride; /* gaps between rows may be written */
  int64_t heads, dim;
  int64_t max_seqlen_k; /* above 0: column c is key start + c; needs clean_logits 0 */
  int32_t clean_logits; /* 1: columns without a key of the row are -inf; 0: unspecified */
  plumb_format q_dialect, k_dialect; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ */
  plumb_stream stream;
  plumb_scaled scaled; /* OPERAND: k[n,:] is multiplied by k_scale[n] before the product */
} plumb_fp8_mqa_logits_params;

/* The same logits over the tokens of a request in a paged cache, with next_n query rows per
 * request [5.1, 5.3] */
typedef struct plumb_fp8_paged_mqa_logits_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const uint8_t* q;            /* fp8 [requests, next_n, heads, dim] contiguous */
  plumb_paged_cache cache;     /* as indexer_k_quant_and_cache writes it, one scale per token; only
                                  read; block_stride_bytes a multiple of 4 */
  const float* weights;        /* [requests * next_n, heads] */
  const int32_t* context_lens; /* [requests] if 1-D; [requests, next_n] if 2-D */
  const int32_t* block_table; /* [requests, block_table_row_stride]; entries past a request's tokens
                                 may hold anything */
  float* logits;              /* [requests * next_n, max_context_len] */
  int64_t requests, max_context_len;
  int64_t logits_row_stride;                               /* gaps between rows may be written */
  int64_t context_lens_row_stride, block_table_row_stride; /* elements between requests */
  int32_t context_lens_dims; /* 1: length = max(0, len - next_n + i + 1); 2: the length itself */
  int64_t next_n, heads, dim;
  int32_t shuffled;     /* as in indexer_k_quant_and_cache */
  int32_t clean_logits; /* 1: columns from the length on are -inf, for 1-D lengths only; 0:
                           unspecified */
  plumb_format q_dialect;
  plumb_stream stream;
  plumb_scaled scaled; /* OPERAND: a key is multiplied by its token's scale before the product */
  /* [slots + 1, 2], of paged_mqa_logits_metadata for these lengths; NULL: the kernel divides the
     work as it likes. With a schedule clean_logits is 0, and atoms divides next_n */
  const int32_t* schedule;
  int64_t slots, schedule_row_stride;
  int64_t split_kv, atoms; /* tokens of a segment; groups of query rows of a request */
} plumb_fp8_paged_mqa_logits_params;

/* fp8_paged_mqa_logits with queries and keys in MXFP4, without a schedule [5.8]: E2M1 codes, the
 * even dim in the low nibble, and a UE8M0 scale for each 32 dims. A block holds the codes of all
 * its tokens, dim / 2 bytes each, then dim / 32 scales per token. A token's score is the sum over
 * heads of weight * max(0, dot product). No scale is 255 (NaN). */
typedef struct plumb_fp4_paged_mqa_logits_params {
  int64_t struct_size;     /* of this structure, in bytes */
  const uint8_t* q;        /* E2M1 [requests, next_n, heads, dim / 2] contiguous */
  const uint8_t* q_scales; /* UE8M0 [requests * next_n, heads, dim / 32] contiguous */
  const uint8_t* cache;    /* [num_blocks, block_stride_bytes]; bytes of no token may be anything */
  const float* weights;    /* [requests * next_n, heads] */
  const int32_t* context_lens; /* [requests] if 1-D; [requests, next_n] if 2-D */
  const int32_t* block_table; /* [requests, block_table_row_stride]; entries past a request's tokens
                                 may hold anything */
  float* logits;              /* [requests * next_n, max_context_len] */
  int64_t block_stride_bytes; /* a multiple of 4, at least page * (dim / 2 + dim / 32) */
  int64_t num_blocks, page;   /* page: tokens of a block */
  int64_t requests, max_context_len;
  int64_t logits_row_stride;                               /* gaps between rows may be written */
  int64_t context_lens_row_stride, block_table_row_stride; /* elements between requests */
  int32_t context_lens_dims;  /* 1: length = max(0, len - next_n + i + 1); 2: the length itself */
  int64_t next_n, heads, dim; /* dim a multiple of 32 */
  int32_t clean_logits;       /* 1: columns from the length on are -inf, for 1-D lengths only; 0:
                                 unspecified */
  plumb_stream stream;
} plumb_fp4_paged_mqa_logits_params;

typedef enum plumb_rope_pairs {
  PLUMB_ROPE_INTERLEAVED = 0, /* (2 i, 2 i + 1) */
  PLUMB_ROPE_HALVES = 1       /* (i, i + rope_dim / 2) */
} plumb_rope_pairs;

typedef enum plumb_query_scale {
  PLUMB_QUERY_SCALE_POW2 = 0, /* rounded up to a power of two */
  PLUMB_QUERY_SCALE_FP32 = 1  /* unchanged */
} plumb_query_scale;

/* Rounding of rotated queries before the amax is taken. */
typedef enum plumb_rotated_rounding {
  PLUMB_ROTATED_BF16 = 0,
  PLUMB_ROTATED_NONE = 1 /* they stay in fp32 */
} plumb_rotated_rounding;

/* Transform of rotated queries. The scores stay the same if the keys are transformed as well. */
typedef enum plumb_hadamard {
  PLUMB_HADAMARD_NONE = 0,
  /* y[i] = dim^-0.5 sum_j (-1)^popcount(i & j) x[j], with i and j below dim. With
   * PLUMB_ROTATED_BF16, x and y are both rounded to bf16. */
  PLUMB_HADAMARD_Q_AND_K = 1
} plumb_hadamard;

/* The indexer's queries: rotated in fp32, rounded to bf16, quantised with one scale per head, which
 * goes into the head's weight   [5.1]
 *   scale = max(amax, amax_floor) / largest, largest 448 or 224, rounded up to a power of two
 *   q_out = fp8(rotated / scale), weights_out = weights * scale * softmax_scale * head_scale */
typedef struct plumb_indexer_q_rope_quant_params {
  int64_t struct_size;      /* of this structure, in bytes */
  const uint16_t* q;        /* bf16 [tokens, heads, dim], the heads of a token contiguous */
  const int64_t* positions; /* [tokens] */
  const float* cos_sin;     /* [any position, rope_dim]: rope_dim / 2 cosines, then the sines */
  const uint16_t* weights;  /* bf16 [tokens, heads] */
  uint8_t* q_out;           /* fp8 [tokens, heads, dim] */
  float* weights_out;       /* [tokens, heads] */
  int64_t tokens, q_token_stride;
  int64_t heads, dim;
  int64_t rope_dim, rope_offset; /* dimensions [rope_offset, rope_offset + rope_dim) are rotated */
  int64_t q_out_token_stride, q_out_head_stride, weights_out_row_stride;
  plumb_rope_pairs rope_pairs;
  float softmax_scale, head_scale; /* dim^-0.5, heads^-0.5 */
  float amax_floor;                /* lower limit of the amax of a head */
  plumb_format dialect;            /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ */
  plumb_stream stream;
  plumb_query_scale scale_form;
  plumb_rotated_rounding rotated_rounding;
  plumb_hadamard hadamard; /* dim at most 1024 */
} plumb_indexer_q_rope_quant_params;

/* How the request of a gathered key is found. */
typedef enum plumb_request_of_key {
  PLUMB_REQUEST_BY_CU_SEQ_LENS = 0, /* by the range of cu_seq_lens that contains the row */
  PLUMB_REQUEST_BY_TOKEN_TO_SEQ = 1 /* by token_to_seq, if the row is in that request's range */
} plumb_request_of_key;

/* Gathers keys of requests from the cache of indexer_k_quant_and_cache for a prefill [5.6]. Row
 * n with cu_seq_lens[b] <= n < cu_seq_lens[b + 1] is key n - cu_seq_lens[b] of request b. All
 * bytes are copied unchanged. Rows that belong to no request are kept. */
typedef struct plumb_cp_gather_indexer_k_quant_cache_params {
  int64_t struct_size;     /* of this structure, in bytes */
  plumb_paged_cache cache; /* only read */
  const int32_t*
      block_table; /* [requests, pages]; entries past a request's keys may hold anything */
  const int32_t* cu_seq_lens;  /* [requests + 1] from 0, at most keys */
  const int32_t* token_to_seq; /* [keys] with TOKEN_TO_SEQ; outside [0, requests): no request */
  uint8_t* k;                  /* codes [keys, head_dim] */
  uint8_t* k_scale;            /* bytes [keys, 4 * head_dim / quant_block_size] */
  int64_t requests, keys, pages;
  int64_t block_table_row_stride, k_row_stride, k_scale_row_stride;
  int64_t head_dim, quant_block_size; /* quant_block_size divides head_dim */
  int32_t shuffled;                   /* as in indexer_k_quant_and_cache */
  plumb_request_of_key request_of_key;
  plumb_stream stream;
} plumb_cp_gather_indexer_k_quant_cache_params;

/* The schedule of a paged logits kernel with `slots` blocks [5.7]. A request has ceil(length /
 * split_kv) segments, and each of its `atoms` (groups of query rows) processes all of them.
 * Entry i = (atom, segment), with atoms counted over all requests, is where slot i begins and
 * where slot i - 1 ends (exclusive). In order, every segment of every atom is in exactly one
 * slot. */
typedef struct plumb_paged_mqa_logits_metadata_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const int32_t* context_lens; /* [requests] if 1-D; [requests, next_n] if 2-D: only the last length
                                  of a row counts, and it is the longest. Not negative */
  int32_t* schedule;           /* [slots + 1, 2] */
  int64_t requests, slots;
  int64_t context_lens_row_stride; /* elements between requests */
  int32_t context_lens_dims;       /* 1 or 2 */
  int64_t next_n, split_kv, atoms;
  int64_t schedule_row_stride;
  plumb_stream stream;
} plumb_paged_mqa_logits_metadata_params;

#ifdef __cplusplus
}
#endif

#endif
