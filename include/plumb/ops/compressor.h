/* SPDX-License-Identifier: Apache-2.0
 *
 * The compressor of V4's caches: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_COMPRESSOR_H
#define PLUMB_OPS_COMPRESSOR_H

#include "cache.h"
#include "indexer.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Treatment of tokens that have no slot of their own in the cache of their layer. */
typedef enum plumb_own_slot {
  PLUMB_OWN_SLOT_REQUIRED = 0, /* they get no compressed slot */
  PLUMB_OWN_SLOT_IGNORED = 1   /* slot_mapping is not read */
} plumb_own_slot;

/* Computes the slots of the compressed states that tokens close   [10.2] */
typedef struct plumb_compressed_slot_mapping_params {
  int64_t struct_size;            /* of this structure, in bytes */
  const int32_t* query_start_loc; /* [requests + 1], the first is 0 */
  const int32_t* seq_lens;        /* [requests] */
  const int64_t* slot_mapping;    /* [tokens]: slots of the tokens; < 0: none */
  const int32_t* block_table;     /* [requests, blocks_per_request] of the compressed cache */
  int64_t* compressed_slots;      /* [buffer_tokens]; -1 if a token closes no state */
  int64_t tokens, requests;
  int64_t buffer_tokens; /* >= tokens; rows after the tokens are -1 */
  int64_t ratio;         /* positions per state */
  int64_t page;          /* states per block */
  int64_t block_table_row_stride;
  plumb_stream stream;
  plumb_own_slot own_slot;
} plumb_compressed_slot_mapping_params;

/* Contents of the partial state of a position. */
typedef enum plumb_state_form {
  PLUMB_STATE_BIASED = 0,  /* fp32; scores plus the position's row of ape */
  PLUMB_STATE_RAW = 1,     /* fp32; projected kv and scores */
  PLUMB_STATE_RAW_BF16 = 2 /* bf16; projected kv and scores */
} plumb_state_form;

/* A cache of partial states, [num_blocks, rows, 2 * width]: `width` values of kv, then `width`
 * scores. */
typedef struct plumb_state_cache {
  void* data;                 /* fp32 or bf16, by the form */
  int64_t block_stride_bytes; /* >= rows * row_stride_bytes */
  int64_t row_stride_bytes;   /* >= 2 * width elements */
  int64_t num_blocks;
  int64_t rows; /* positions per block */
} plumb_state_cache;

/* Writes the projections of a step's tokens to the state cache [10.3]. Token t goes to
 * slot_mapping[t] = block * rows + row; negative slots are skipped. No slot occurs twice. Bytes
 * that belong to no token stay unchanged. */
typedef struct plumb_save_partial_states_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const float* kv;             /* [>= tokens, width] */
  const float* score;          /* [>= tokens, width] */
  const float* ape;            /* [ratio, width]; null unless the form is biased */
  const int64_t* positions;    /* [>= tokens] */
  const int64_t* slot_mapping; /* [tokens] */
  plumb_state_cache states;
  int64_t tokens, width, ratio;
  int64_t kv_row_stride, score_row_stride;
  plumb_stream stream;
  plumb_state_form form;
} plumb_save_partial_states_params;

/* Layout of the cache of compressed states. */
typedef enum plumb_compressed_layout {
  PLUMB_COMPRESSED_INDEXER = 0, /* per block the codes of all its states, then their fp32 scales */
  PLUMB_COMPRESSED_MAIN = 1,    /* as quantize_and_insert_k_cache: head_dim 512 */
  PLUMB_COMPRESSED_ROWS = 2,    /* rows of head_dim bf16 */
  PLUMB_COMPRESSED_INDEXER_BYTES = 3, /* as INDEXER, but a scale is four equal UE8M0 bytes */
  PLUMB_COMPRESSED_INDEXER_MXFP4 = 4, /* as the cache of fp4_paged_mqa_logits: E2M1, UE8M0 of 32 */
  PLUMB_COMPRESSED_ROWS_FP8 = 5       /* rows of head_dim codes, all under cache_scale */
} plumb_compressed_layout;

/* Which number has a lower limit of 10^-4 when a group of the main layout is quantised. */
typedef enum plumb_compressed_floor {
  PLUMB_COMPRESSED_FLOOR_AMAX = 0, /* the largest magnitude */
  PLUMB_COMPRESSED_FLOOR_SCALE = 1 /* the scale, before it is rounded up */
} plumb_compressed_floor;

/* Which results are rounded to bf16 before the state is stored. */
typedef enum plumb_compressed_rounding {
  PLUMB_COMPRESSED_ROUND_STORE = 0, /* none */
  PLUMB_COMPRESSED_ROUND_NORM = 1,  /* the mean over the window, and the normalised state */
  PLUMB_COMPRESSED_ROUND_EVERY = 2  /* also scores with ape, weights of the softmax, and their
                                       products with kv */
} plumb_compressed_rounding;

/* Computes the compressed states of the groups that tokens close: softmax over the window of
 * each channel, RMS norm, RoPE, quantisation, insert [10.4]. Token t writes to
 * kv_slot_mapping[t] = block * page + offset if this slot and slot_mapping[t] are not negative
 * and its position ends a group; otherwise it writes nothing. Codes are e4m3fn on every
 * platform. Bytes that belong to no token stay unchanged. */
typedef struct plumb_compress_norm_rope_insert_params {
  int64_t struct_size; /* of this structure, in bytes */
  plumb_state_cache states;
  const int32_t* block_table;     /* [requests, blocks_per_request] of the state cache */
  const int32_t* token_to_req;    /* [tokens] */
  const int64_t* positions;       /* [tokens] */
  const int64_t* slot_mapping;    /* [tokens] of the state cache */
  const float* ape;               /* [ratio, width]; null if the form is biased */
  const uint16_t* weight;         /* bf16 [head_dim] */
  const float* cos_sin;           /* [positions, 64]: cosines, then sines */
  const int64_t* kv_slot_mapping; /* [tokens] */
  /* block_stride_bytes: a multiple of 4 in the layouts INDEXER and INDEXER_BYTES, of 2 in MAIN and
   * ROWS */
  plumb_paged_cache cache;
  int64_t tokens;
  int64_t head_dim; /* a multiple of 64, 128 to 512; the last 64 are rotated */
  int64_t ratio;
  int64_t overlap; /* 1: a window is two groups, and width is 2 * head_dim; 0: one group, and width
                      is head_dim */
  int64_t block_table_row_stride;
  plumb_stream stream;
  float eps;
  plumb_state_form form;
  plumb_compressed_layout layout;
  plumb_compressed_floor floor; /* main layout only; the indexer's floor is that of amax */
  plumb_pad_byte pad;           /* main layout only */
  plumb_compressed_rounding rounding;
  plumb_hadamard hadamard;     /* indexer layouts only; the transformed state is rounded to bf16 */
  plumb_scale_form scale_form; /* layout INDEXER only */
  const float* cache_scale; /* [1]: a code times this is the number; null unless layout ROWS_FP8 */
} plumb_compress_norm_rope_insert_params;

/* States of open groups in the online form of C128A, whose groups have 128 positions: [rows, 3 *
 * head_dim] fp32. A state holds the largest score of each channel, then the sums of exp(score -
 * largest), then the means of kv under these weights. A fresh state is -inf, 0, 0. */
typedef struct plumb_online_states {
  float* data;
  int64_t row_stride; /* >= 3 * head_dim elements */
  int64_t rows;
} plumb_online_states;

/* Compresses the tokens of a step in the online form [10.5]. The tokens of request r are the last
 * ones of its sequence. A token at position p closes its group if p % 128 = 127; out then gets the
 * mean of kv over the group. The state of the group that stays open goes to row write_rows[r]. No
 * row is written for one request and read or written for another one. */
typedef struct plumb_online_compress_params {
  int64_t struct_size;            /* of this structure, in bytes */
  const float* kv;                /* [tokens, head_dim] */
  const float* score;             /* [tokens, head_dim], without ape */
  const float* ape;               /* [128, head_dim], added to scores */
  const int32_t* query_start_loc; /* [requests + 1], the first is 0 */
  const int32_t* seq_lens;        /* [requests], tokens of the step included */
  const int64_t* read_rows;       /* [requests]: of states; < 0: a fresh state */
  const int64_t* write_rows;      /* [requests]: of states; < 0: nothing is stored */
  plumb_online_states states;     /* updated in place */
  float* out;                     /* [tokens, head_dim]; other tokens' rows stay unchanged */
  int64_t tokens, requests;       /* tokens >= the last of query_start_loc */
  int64_t head_dim;
  int64_t kv_row_stride, score_row_stride;
  int64_t out_row_stride;
  plumb_stream stream;
} plumb_online_compress_params;

/* Stores the states that each accepted prefix of a verification step would leave [10.6]. Request r
 * has the committed state in row request_rows[r], which is read only, and verify_tokens tokens. The
 * state after token j (from 1) goes to row request_rows[r] + j * bank_rows, unless the token closes
 * its group. */
typedef struct plumb_online_compress_prefix_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const float* kv;             /* [requests * verify_tokens, head_dim] */
  const float* score;          /* [requests * verify_tokens, head_dim], without ape */
  const float* ape;            /* [128, head_dim], added to scores */
  const int32_t* seq_lens;     /* [requests], in front of the step; < 0: the request is skipped */
  const int64_t* request_rows; /* [requests], distinct; outside [0, bank_rows): skipped */
  plumb_online_states states;  /* updated in place; rows >= (verify_tokens + 1) * bank_rows */
  int64_t requests;
  int64_t verify_tokens; /* 1 to 8 */
  int64_t head_dim;
  int64_t bank_rows; /* from a row of a bank to that of the next bank */
  int64_t kv_row_stride, score_row_stride;
  plumb_stream stream;
} plumb_online_compress_prefix_params;

/* Copies the states of accepted prefixes to the committed rows [10.7]. Request r had
 * pending_seq_lens[request_rows[r]] tokens in front of the verification and has seq_lens[r] now. If
 * `accepted`, their difference clamped to [0, verify_tokens], is not 0 and the length plus
 * `accepted` is no multiple of 128, row request_rows[r] gets the bits of row
 * request_rows[r] + accepted * bank_rows. */
typedef struct plumb_commit_online_states_params {
  int64_t struct_size;             /* of this structure, in bytes */
  const int32_t* seq_lens;         /* [requests]; < 0: the request is skipped */
  const int64_t* request_rows;     /* [requests], distinct; outside [0, bank_rows): skipped */
  const int64_t* pending_seq_lens; /* [bank_rows]; < 0: nothing to commit */
  plumb_online_states states;      /* updated in place; rows >= (verify_tokens + 1) * bank_rows */
  int64_t requests;
  int64_t verify_tokens; /* 1 to 8 */
  int64_t head_dim;
  int64_t bank_rows; /* from a row of a bank to that of the next bank */
  plumb_stream stream;
} plumb_commit_online_states_params;

#ifdef __cplusplus
}
#endif

#endif
