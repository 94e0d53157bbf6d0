/* SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of plumb's operations: one plain parameter struct per op, the same for plumb's own
 * kernels and for anybody else's. A launcher enqueues its work on `stream` and returns at once; it
 * neither allocates nor synchronises, so every call can be captured into a graph.
 *
 * Conventions. All device pointers. Strides count elements of the tensor's own dtype unless a name
 * says bytes; the last dimension is contiguous. bf16 travels as uint16_t, fp8 as uint8_t. An
 * optional pointer may be NULL and says so. The numbers in brackets name the section of the
 * operations' specification that a struct follows (docs/operations.md). */
#ifndef PLUMB_OPS_H
#define PLUMB_OPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_ABI_VERSION 1

typedef void* plumb_stream;

typedef enum plumb_status {
  PLUMB_OK = 0,
  PLUMB_INVALID_ARGUMENT = 1, /* a shape, stride or pointer that the op's contract forbids */
  PLUMB_UNSUPPORTED = 2, /* legal, but this implementation does not do it: the case is skipped */
  PLUMB_LAUNCH_FAILED = 3
} plumb_status;

typedef enum plumb_format {
  PLUMB_F64 = 0,
  PLUMB_F32 = 1,
  PLUMB_TF32 = 2,           /* fp32 operands rounded to nearest 10-bit mantissas */
  PLUMB_TF32_TRUNCATED = 3, /* fp32 operands whose low 13 bits the hardware drops */
  PLUMB_BF16 = 4,
  PLUMB_E4M3FN = 5,
  PLUMB_E4M3FNUZ = 6
} plumb_format;

typedef enum plumb_rounding {
  PLUMB_ROUND_ONCE = 0, /* fp32 throughout, one rounding at the store ("new") */
  PLUMB_ROUND_TWICE = 1 /* the normalised value is rounded to bf16 before what follows ("old") */
} plumb_rounding;

/* What an implementation of one op promises about its arithmetic. Bounds are derived from it. */
typedef struct plumb_numerics {
  plumb_format product;     /* format in which operands enter the op's long products */
  plumb_format accumulator; /* format of the running sums */
  int32_t chains;           /* partial sums side by side in a reduction, each sequential, then
                               combined by a tree; 1 = one sequential sum */
  plumb_format probability; /* attention: format in which p enters the PV product */
  float function_ulp;       /* error of exp2, log2, rsqrt, sigmoid and division, in fp32 ulp */
  int32_t deterministic;    /* 1: equal inputs give equal bits, run after run */
  int32_t stores_partials;  /* 1: writes the op's visible intermediates (named in its struct) */
} plumb_numerics;

/* out[t,:] = x[t,:] / sqrt(mean(x^2) + eps) * weight   [7.1] */
typedef struct plumb_rms_norm_params {
  const uint16_t* x;      /* bf16 [tokens, hidden] */
  const uint16_t* weight; /* bf16 [hidden], optional */
  uint16_t* out;          /* bf16 [tokens, hidden] contiguous */
  int64_t tokens, hidden;
  int64_t x_row_stride;
  float eps;
  plumb_rounding rounding;
  plumb_stream stream;
} plumb_rms_norm_params;

/* enorm of the masked embedding and hnorm of each of the hc_mult hidden slots   [7.3] */
typedef struct plumb_mtp_input_rms_norm_params {
  const uint16_t* embeds;          /* bf16 [tokens, hidden] */
  const uint16_t* previous_hidden; /* bf16 [tokens, hc_mult, hidden] */
  const int64_t* positions;        /* [tokens]; at position 0 the embedding counts as 0 */
  const uint16_t* enorm_weight;    /* bf16 [hidden] */
  const uint16_t* hnorm_weight;    /* bf16 [hidden] */
  uint16_t* out_embeds;            /* bf16 [tokens, hidden] */
  uint16_t* out_hidden;            /* bf16 [tokens, hc_mult, hidden] */
  int64_t tokens, hidden, hc_mult;
  float eps;
  plumb_stream stream;
} plumb_mtp_input_rms_norm_params;

/* rms_norm of the hidden states before the shared head, single rounding   [7.4] */
typedef struct plumb_mtp_shared_head_rms_norm_params {
  const uint16_t* x;      /* bf16 [tokens, hidden] contiguous */
  const uint16_t* weight; /* bf16 [hidden] */
  uint16_t* out;          /* bf16 [tokens, hidden] contiguous */
  int64_t tokens, hidden;
  float eps;
  plumb_stream stream;
} plumb_mtp_shared_head_rms_norm_params;

/* Row-local indices of the k largest logits of [row_starts, row_ends)   [4.1, 4.2] */
typedef struct plumb_top_k_per_row_prefill_params {
  const float* logits;       /* fp32 [num_rows, columns] */
  const int32_t* row_starts; /* [num_rows], columns of logits */
  const int32_t* row_ends;   /* [num_rows] */
  int32_t* indices;          /* [num_rows, k] contiguous; -1 behind min(k, length) */
  int64_t num_rows, columns;
  int64_t logits_row_stride, logits_column_stride;
  int32_t k;
  plumb_stream stream;
} plumb_top_k_per_row_prefill_params;

/* The same over [0, row_end), the ends derived from sequence lengths   [4.3] */
typedef struct plumb_top_k_per_row_decode_params {
  const float* logits;     /* fp32 [num_rows, columns] */
  const int32_t* seq_lens; /* [num_rows / next_n] if 1-D; [num_rows / next_n, next_n] if 2-D */
  int32_t* indices;        /* [num_rows, k] contiguous */
  int64_t num_rows, columns;
  int64_t logits_row_stride, logits_column_stride;
  int64_t seq_lens_row_stride; /* elements between requests */
  int32_t
      seq_lens_dims; /* 1: end = max(0, seq_len - next_n + row % next_n + 1); 2: the end itself */
  int32_t next_n;
  int32_t k;
  plumb_stream stream;
} plumb_top_k_per_row_decode_params;

/* Hyper-connection mixing before a sublayer   [6.1, 6.2]; hc_mult is 4 */
typedef struct plumb_mhc_pre_params {
  const uint16_t* residual;    /* bf16 [tokens, 4, hidden] */
  const float* fn;             /* fp32 [24, 4 * hidden], K order (slot, hidden) */
  const float* scale;          /* fp32 [3] */
  const float* base;           /* fp32 [24] */
  const uint16_t* norm_weight; /* bf16 [hidden], optional: fused norm of layer_input */
  float* post;                 /* fp32 [tokens, 4] */
  float* comb;                 /* fp32 [tokens, 4, 4] */
  uint16_t* layer_input;       /* bf16 [tokens, hidden] */
  float* partial_mixes; /* fp32 [splits, tokens, 24]: sum_k x_k fn[c,k] of the split (visible) */
  float* partial_square_sums; /* fp32 [splits, tokens]: sum x^2 of the split (visible) */
  int64_t tokens, hidden;
  int64_t residual_token_stride, residual_slot_stride;
  int32_t splits; /* part s of K = 4 hidden: [K s / splits, K (s + 1) / splits), summed in order */
  int32_t sinkhorn_iterations;
  float rms_eps, pre_eps, sinkhorn_eps, norm_eps, post_mult;
  plumb_stream stream;
} plumb_mhc_pre_params;

/* out[n,h] = post[n] x[h] + sum_m comb[m,n] residual[m,h]   [6.3] */
typedef struct plumb_mhc_post_params {
  const uint16_t* x;        /* bf16 [tokens, hidden] */
  const uint16_t* residual; /* bf16 [tokens, 4, hidden] */
  const float* post;        /* fp32 [tokens, 4] */
  const float* comb;        /* fp32 [tokens, 4, 4] */
  uint16_t* out;            /* bf16 [tokens, 4, hidden] contiguous */
  int64_t tokens, hidden;
  int64_t residual_token_stride, residual_slot_stride;
  plumb_stream stream;
} plumb_mhc_post_params;

/* Gated sum of the four streams before the LM head   [6.4] */
typedef struct plumb_hc_head_params {
  const uint16_t* hidden_states; /* bf16 [tokens, 4, hidden] */
  const float* fn;               /* fp32 [4, 4 * hidden] */
  const float* scale;            /* fp32 [1] */
  const float* base;             /* fp32 [4] */
  uint16_t* out;                 /* bf16 [tokens, hidden] */
  int64_t tokens, hidden;
  int64_t hidden_token_stride, hidden_slot_stride;
  float rms_eps, hc_eps;
  plumb_rounding rounding; /* TWICE: x * r is rounded to bf16 before the product with fn */
  plumb_stream stream;
} plumb_hc_head_params;

/* One paged cache in the V4 layout: per block all token data (448 fp8 + 64 bf16 = 576 bytes each),
 * then all scales (7 UE8M0 bytes + 1 pad each)   [1.1 MODEL1] */
typedef struct plumb_mla_cache {
  const uint8_t* data; /* optional for the extra cache: NULL = absent */
  int64_t block_stride_bytes;
  int64_t num_blocks;
  int32_t page;         /* tokens per block */
  plumb_format dialect; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ, each cache its own   [2.11] */
} plumb_mla_cache;

/* Candidates of every query row in one cache, in one of two forms:
 *  dense:  indices [requests, queries, width], of which the first lengths[request] count
 *  ragged: row r (= request * queries + query) owns indices[indptr[r] .. indptr[r+1])
 * An index is a slot, block * page + offset; -1 is skipped. */
typedef struct plumb_mla_candidates {
  const int32_t* indices;
  const int32_t* lengths; /* dense: [requests], optional = width for all; ragged: NULL */
  const int32_t* indptr;  /* ragged: [rows + 1]; dense: NULL */
  int64_t request_stride, query_stride; /* dense */
  int32_t width;                        /* dense: columns; ragged: most candidates of a row */
} plumb_mla_candidates;

/* Tile plan of a split decode, filled by the first call that finds `planned` == 0 and kept for
 * later calls: legal only while shapes and lengths stay as they were   [1.6, 1.7] */
typedef struct plumb_mla_plan {
  int32_t* tiles;      /* device [num_parts, 8]: begin_req, end_req, begin_block, end_block,
                          begin_split, first_split, last_split, pad */
  int32_t* num_splits; /* device [requests + 1], prefix sums */
  int32_t num_parts;
  int32_t block_n;        /* candidates per block, 64 */
  int32_t fixed_overhead; /* blocks, 5 */
  int32_t planned;        /* host state */
} plumb_mla_plan;

/* Sparse MLA decode over a main and an optional extra cache   [1.2 - 1.6, 2.10] */
typedef struct plumb_sparse_mla_decode_params {
  const uint16_t* q; /* bf16 [requests, queries, heads, 512] */
  plumb_mla_cache main_cache, extra_cache;
  plumb_mla_candidates main, extra;
  const float* attn_sink; /* fp32 [heads], optional */
  uint16_t* out;          /* bf16 [requests, queries, heads, 512] contiguous */
  float* lse;             /* fp32 [requests, heads, queries] contiguous, natural log; optional */
  float* partial_out;     /* fp32 [requests + num_parts, queries, heads, 512] (visible) */
  float* partial_lse;     /* fp32 [requests + num_parts, queries, heads], base 2 (visible) */
  plumb_mla_plan* plan;
  int64_t requests, queries, heads;
  int64_t q_request_stride, q_query_stride, q_head_stride;
  float sm_scale;
  plumb_stream stream;
} plumb_sparse_mla_decode_params;

/* What an implementation offers: entries by op name. Ops without an entry are skipped, never
 * replaced by somebody else's. `params` points to the op's struct above. */
typedef struct plumb_op_entry {
  const char* op;
  plumb_status (*launch)(const void* params);
  plumb_numerics numerics;
} plumb_op_entry;

typedef struct plumb_implementation {
  uint32_t abi_version; /* PLUMB_ABI_VERSION */
  const char* name;
  const plumb_op_entry* entries;
  int32_t entry_count;
} plumb_implementation;

#ifdef __cplusplus
}
#endif

#endif
