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

#ifdef __cplusplus
}
#endif

#endif
