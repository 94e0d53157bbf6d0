/* SPDX-License-Identifier: Apache-2.0
 *
 * The compressor of V4's caches: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_COMPRESSOR_H
#define PLUMB_OPS_COMPRESSOR_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens without a slot of their own in the cache of their layer. */
typedef enum plumb_own_slot {
  PLUMB_OWN_SLOT_REQUIRED = 0, /* they get no compressed slot */
  PLUMB_OWN_SLOT_IGNORED = 1   /* slot_mapping is not read */
} plumb_own_slot;

/* Slots of the compressed states that tokens close   [10.2] */
typedef struct plumb_compressed_slot_mapping_params {
  int64_t struct_size;            /* of this structure, in bytes */
  const int32_t* query_start_loc; /* [requests + 1], the first is 0 */
  const int32_t* seq_lens;        /* [requests] */
  const int64_t* slot_mapping;    /* [tokens] own slots; < 0: none */
  const int32_t* block_table;     /* [requests, blocks_per_request] of the compressed cache */
  int64_t* compressed_slots;      /* [buffer_tokens]; -1 wherever a token closes no state */
  int64_t tokens, requests;
  int64_t buffer_tokens; /* >= tokens: the rows behind the tokens are -1, too */
  int64_t ratio;         /* positions per state */
  int64_t page;          /* states per block */
  int64_t block_table_row_stride;
  plumb_stream stream;
  plumb_own_slot own_slot;
} plumb_compressed_slot_mapping_params;

/* What a partial state of a position is. */
typedef enum plumb_state_form {
  PLUMB_STATE_BIASED = 0,  /* fp32; scores with the position's row of ape */
  PLUMB_STATE_RAW = 1,     /* fp32; kv and scores as they were projected */
  PLUMB_STATE_RAW_BF16 = 2 /* bf16; the same */
} plumb_state_form;

/* Partial states of positions, [num_blocks, rows, 2 * width]: width of kv, then width of scores. */
typedef struct plumb_state_cache {
  void* data;                 /* of the form's format */
  int64_t block_stride_bytes; /* >= rows * row_stride_bytes */
  int64_t row_stride_bytes;   /* >= 2 * width elements */
  int64_t num_blocks;
  int64_t rows; /* positions per block */
} plumb_state_cache;

/* Projections of the tokens of a step into the state cache   [10.3]. Token t goes to
 * slot_mapping[t] = block * rows + row; a negative slot is skipped. No slot is named twice. Bytes
 * that no token owns stay as they are. */
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

#ifdef __cplusplus
}
#endif

#endif
