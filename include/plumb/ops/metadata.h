/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention metadata: parameters of its ops. Conventions are those of plumb_ops.h. All values
 * are integers, and every result is exact. Counts that differ from step to step (live tokens,
 * used entries) are in device memory, so that a captured call reads those of its replay. */
#ifndef PLUMB_OPS_METADATA_H
#define PLUMB_OPS_METADATA_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Treatment of holes: entries that are negative or outside [0, num_rows). */
typedef enum plumb_holes {
  PLUMB_HOLES_DROPPED = 0, /* holes are removed and later entries move up */
  PLUMB_HOLES_KEPT = 1     /* holes stay; those outside [0, num_rows) become -1 */
} plumb_holes;

/* Converts the rows of a dense table to one ragged list   [2.2, 2.3] */
typedef struct plumb_build_ragged_indices_from_dense_params {
  int64_t struct_size;    /* of this structure, in bytes */
  const int32_t* indices; /* [rows, width] */
  const int32_t* lengths; /* [rows], clamped to [0, width] */
  int32_t* indptr;        /* [rows + 1] */
  int32_t* flat;          /* [rows * width]; entries from indptr[rows] on are not written */
  int64_t rows, width;
  int64_t indices_row_stride;
  int64_t num_rows; /* entries outside [0, num_rows) are holes; -1: no limit */
  plumb_stream stream;
  plumb_holes holes;
} plumb_build_ragged_indices_from_dense_params;

/* Number of entries that copy_ragged_to_graph_buffers copies. */
typedef enum plumb_copied_entries {
  PLUMB_COPIED_CAPACITY = 0, /* rows * max_per_row, including entries that no row owns */
  PLUMB_COPIED_LENGTH = 1    /* indptr[rows] */
} plumb_copied_entries;

/* Copies a ragged list into buffers that keep their addresses from step to step   [2.4] */
typedef struct plumb_copy_ragged_to_graph_buffers_params {
  int64_t struct_size;     /* of this structure, in bytes */
  const int32_t* indices;  /* [rows * max_per_row], the first indptr[rows] are used */
  const int32_t* indptr;   /* [rows + 1] */
  int32_t* indices_buffer; /* [>= rows * max_per_row]; entries that are not copied are kept */
  int32_t* indptr_buffer;  /* [>= rows + 1]; entries from rows + 1 on are kept */
  int64_t rows, max_per_row;
  plumb_stream stream;
  plumb_copied_entries copied;
} plumb_copy_ragged_to_graph_buffers_params;

/* Converts the top-k positions of every token to slots, as a ragged list   [2.5] */
typedef struct plumb_compute_global_topk_ragged_indices_and_indptr_params {
  int64_t struct_size;           /* of this structure, in bytes */
  const int32_t* topk_indices;   /* [tokens, topk] positions in the token's request; < 0: none */
  const int32_t* token_to_req;   /* [tokens] */
  const int32_t* block_table;    /* [requests, blocks_per_request] */
  const uint8_t* is_valid_token; /* [tokens]; 0: the token gets no entries */
  int32_t* flat;                 /* [tokens * topk]; entries from indptr[tokens] on are kept */
  int32_t* indptr;               /* [tokens + 1] */
  int32_t* lens;                 /* [tokens] */
  int64_t tokens, topk;
  int64_t topk_indices_row_stride, block_table_row_stride;
  int64_t block_size; /* positions per block */
  plumb_stream stream;
} plumb_compute_global_topk_ragged_indices_and_indptr_params;

/* Treatment of columns that have no slot, in compute_global_topk_indices_and_lens. */
typedef enum plumb_compaction {
  PLUMB_COMPACTION_NONE = 0, /* they become -1 */
  PLUMB_COMPACTION_LEFT = 1  /* columns with a slot move to the left; -1 fills the rest */
} plumb_compaction;

typedef enum plumb_bounds {
  PLUMB_BOUNDS_UNCHECKED = 0, /* all requests and positions are in the block table */
  PLUMB_BOUNDS_CHECKED = 1    /* requests and positions outside the block table have no slot */
} plumb_bounds;

/* Converts the top-k positions of every token to slots, as a dense table [2.5]. An invalid token
 * has length 0. With PLUMB_COMPACTION_LEFT its row is -1, otherwise unspecified. */
typedef struct plumb_compute_global_topk_indices_and_lens_params {
  int64_t struct_size;           /* of this structure, in bytes */
  const int32_t* topk_indices;   /* [tokens, topk] */
  const int32_t* token_to_req;   /* [tokens] */
  const int32_t* block_table;    /* [requests, blocks_per_request] */
  const uint8_t* is_valid_token; /* [tokens] */
  int32_t* global_indices;       /* [tokens, topk] */
  int32_t* lens;                 /* [tokens]: number of slots */
  int64_t tokens, topk, requests, blocks_per_request;
  int64_t topk_indices_row_stride, block_table_row_stride;
  int64_t block_size;
  int64_t global_indices_row_stride;
  plumb_stream stream;
  plumb_compaction compaction;
  plumb_bounds bounds;
} plumb_compute_global_topk_indices_and_lens_params;

/* What both forms of combine_topk_swa_indices write for a top-k entry below 0 of request b. */
typedef enum plumb_minus_one {
  PLUMB_MINUS_ONE_SHIFTED = 0, /* rows_per_request * b is added, as to any entry */
  PLUMB_MINUS_ONE_KEPT = 1     /* -1 */
} plumb_minus_one;

/* Contents of list entries that have no value. */
typedef enum plumb_no_value {
  PLUMB_NO_VALUE_UNTOUCHED = 0,
  PLUMB_NO_VALUE_MINUS_ONE = 1
} plumb_no_value;

/* Computes the rows of the prefill workspace that each token of a chunk attends to   [2.8, 2.9] */
typedef struct plumb_combine_topk_swa_indices_ragged_params {
  int64_t struct_size;            /* of this structure, in bytes */
  const int32_t* topk_indices;    /* [tokens, topk_width] compressed positions; < 0: none */
  const int32_t* query_start_loc; /* [requests + 1]; may start above 0 */
  const int32_t* seq_lens;        /* [requests] */
  const int32_t* gather_lens;     /* [requests] */
  int32_t* flat;                  /* [tokens * (top_k + window)] */
  int32_t* indptr;                /* [tokens + 1] */
  int32_t* lens;                  /* [tokens]; 0 after the last token of the last request */
  int64_t tokens, requests;
  int64_t topk_width, topk_indices_row_stride;
  int64_t top_k, ratio, window;
  int64_t rows_per_request; /* M: rows of the workspace per request */
  int64_t compressed_rows;  /* N: the first rows of these, for compressed states */
  plumb_stream stream;
  plumb_minus_one minus_one;
  plumb_no_value tail;    /* entries of flat from indptr[tokens] on */
  plumb_no_value missing; /* entries for which topk_indices has no column */
} plumb_combine_topk_swa_indices_ragged_params;

/* Columns behind the last entry of a row of combine_topk_swa_indices. */
typedef enum plumb_row_tail {
  PLUMB_ROW_TAIL_MINUS_ONE = 0,
  PLUMB_ROW_TAIL_UNTOUCHED = 1
} plumb_row_tail;

/* Entry of combine_topk_swa_indices for which topk_indices has no column. */
typedef enum plumb_missing_column {
  PLUMB_MISSING_COLUMN_0 = 0,        /* the entry of column 0 */
  PLUMB_MISSING_COLUMN_MINUS_ONE = 1 /* -1 */
} plumb_missing_column;

/* As combine_topk_swa_indices_ragged, with a row of a table for each token   [2.9] */
typedef struct plumb_combine_topk_swa_indices_params {
  int64_t struct_size;            /* of this structure, in bytes */
  const int32_t* topk_indices;    /* [tokens, topk_width] compressed positions; < 0: none */
  const int32_t* query_start_loc; /* [requests + 1]; may start above 0 */
  const int32_t* seq_lens;        /* [requests] */
  const int32_t* gather_lens;     /* [requests] */
  const int32_t* replay_start;    /* [requests] or NULL: first position of any window */
  const int32_t* left_visible;    /* [tokens] or NULL: earlier tokens of the token's image */
  const int32_t* right_visible;   /* [tokens], NULL if left_visible is: later tokens of it */
  int32_t* combined_indices;      /* [tokens, width] */
  int32_t* combined_lens; /* [tokens]; unspecified after the last token of the last request */
  int64_t tokens, requests;
  int64_t topk_width, topk_indices_row_stride;
  int64_t top_k, ratio, window;
  int64_t width; /* columns, at least the entries of every token */
  int64_t combined_indices_row_stride;
  int64_t rows_per_request; /* M: rows of the workspace per request */
  int64_t compressed_rows;  /* N: the first rows of these, for compressed states */
  plumb_stream stream;
  plumb_minus_one minus_one;
  plumb_bounds bounds; /* CHECKED: top-k entries from compressed_rows on become -1 */
  plumb_row_tail tail;
  plumb_missing_column missing;
} plumb_combine_topk_swa_indices_params;

/* Computes the sliding-window slots of decode tokens, and the request of each token   [2.7] */
typedef struct plumb_swa_decode_metadata_params {
  int64_t struct_size;            /* of this structure, in bytes */
  const int32_t* query_start_loc; /* [requests + 1] */
  const int32_t* seq_lens;        /* [requests] */
  const int64_t* slot_mapping;    /* [tokens]; < 0: no token of the batch */
  const int32_t* block_table;     /* [requests, blocks_per_request] */
  int32_t* swa_indices;    /* [tokens, window], rows swa_indices_row_stride apart; padded with -1 */
  int32_t* swa_lens;       /* [tokens] */
  int32_t* token_to_req;   /* [tokens]; 0 for padding */
  uint8_t* is_valid_token; /* [tokens] */
  int32_t* gather_lens;    /* [requests]: number of tokens that a prefill must gather */
  int64_t tokens, requests;
  int64_t window, page;
  int64_t block_table_row_stride, swa_indices_row_stride;
  plumb_stream stream;
  plumb_no_value invalid_row; /* swa_indices of a token without a slot */
} plumb_swa_decode_metadata_params;

/* C128A: slots of decode tokens, positions of prefill tokens   [2.6] */
typedef struct plumb_c128a_decode_metadata_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const int64_t* positions;    /* [decode_tokens + prefill_tokens] */
  const int64_t* slot_mapping; /* [decode_tokens + prefill_tokens] */
  const int32_t* token_to_req; /* [decode_tokens + prefill_tokens] */
  const int32_t* block_table;  /* [requests, blocks_per_request] */
  int32_t* decode_slots;       /* [decode_tokens, max_compressed], padded with -1 */
  int32_t* decode_lens;        /* [decode_tokens]; 0 if slot_mapping < 0 */
  int32_t* prefill_indices;    /* [prefill_tokens, max_compressed] */
  int64_t decode_tokens, prefill_tokens;
  int64_t max_compressed; /* c128a_max_compressed: columns written in every row */
  int64_t block_size;     /* states per block */
  int64_t block_table_row_stride, decode_slots_row_stride, prefill_indices_row_stride;
  plumb_stream stream;
} plumb_c128a_decode_metadata_params;

/* V4 with FlashInfer: the slots that each token attends to, first those of the sliding window, then
 * those of compressed states. Decode tokens come first   [2.12] */
typedef struct plumb_build_flashinfer_mixed_sparse_indices_params {
  int64_t struct_size;                      /* of this structure, in bytes */
  const int32_t* decode_swa_indices;        /* [decode_tokens, window] slots; -1: none */
  const int32_t* decode_compressed_indices; /* [decode_tokens, decode_topk]; none: < 0 if they are
                                               positions, -1 if they are slots */
  const int32_t* decode_compressed_lens;    /* [decode_tokens] or NULL: decode_topk; NULL if
                                               decode_is_valid_token is not */
  const uint8_t* decode_is_valid_token;     /* [decode_tokens]: decode_compressed_indices has
                                               compressed positions. NULL: it has slots */
  const int32_t* prefill_topk_indices;      /* [prefill_tokens, top_k] compressed positions */
  const int32_t* query_start_loc; /* [requests + 1], of all tokens; rows of later tokens: padding */
  const int32_t* seq_lens;        /* [requests] */
  const int32_t* token_to_req;    /* [decode_tokens + prefill_tokens] */
  const int32_t* swa_block_table; /* rows of requests */
  const int32_t* compressed_block_table; /* rows of requests; NULL if only slots are given */
  int32_t* sparse_indices;               /* [decode_tokens + prefill_tokens, width] */
  int32_t* sparse_topk_lens;             /* [decode_tokens + prefill_tokens], window included */
  int64_t decode_tokens, prefill_tokens, requests;
  int64_t window, ratio;
  int64_t top_k;       /* most compressed states of a prefill token; 0: none */
  int64_t decode_topk; /* of a decode token; 0: none */
  int64_t width;       /* columns: window and at least the larger of top_k and decode_topk */
  int64_t swa_block_size, compressed_block_size;
  int64_t swa_block_span;        /* slots from one block to the next, >= swa_block_size */
  int64_t compressed_block_span; /* the same of the compressed cache */
  int64_t decode_swa_row_stride, decode_compressed_row_stride, prefill_topk_row_stride;
  int64_t swa_block_table_row_stride, compressed_block_table_row_stride;
  int64_t sparse_indices_row_stride;
  plumb_stream stream;
} plumb_build_flashinfer_mixed_sparse_indices_params;

/* Which elements of paged_kv_indices and req_id_per_token a step sets to 0. */
typedef enum plumb_cleared_extent {
  PLUMB_EXTENT_FULL_FILL = 0, /* all entries, and all ids after the tokens */
  PLUMB_EXTENT_N_TOPK =
      1, /* entries [tokens * topk, the same number of the step before); ids likewise */
  PLUMB_EXTENT_ENTRIES =
      2 /* entries after the step's own up to those of the step before; ids likewise */
} plumb_cleared_extent;

/* V3.2 on ROCm: writes the per-token metadata of a step to persistent buffers   [3.1, 3.2] */
typedef struct plumb_v32_paged_metadata_params {
  int64_t struct_size;            /* of this structure, in bytes */
  const int32_t* query_start_loc; /* [requests + 1]; query_start_loc[requests] tokens are live */
  const int32_t* seq_lens;        /* [requests] */
  int32_t* req_id_per_token;      /* [max_tokens] in place */
  int32_t* paged_kv_indptr;       /* [max_tokens + 1] */
  int32_t* paged_kv_indices;      /* [max_tokens * topk] in place */
  int32_t* extents; /* [2] in place: tokens of the latest step, and its entries or tokens * topk.
                       Unspecified with PLUMB_EXTENT_FULL_FILL */
  int64_t max_tokens, requests;
  int64_t topk;
  plumb_stream stream;
  plumb_cleared_extent extent;
} plumb_v32_paged_metadata_params;

/* Slot for a position that is negative or outside the block table. */
typedef enum plumb_invalid_slot {
  PLUMB_INVALID_SLOT_0 = 0,
  PLUMB_INVALID_SLOT_MINUS_ONE = 1
} plumb_invalid_slot;

/* V3.2 on ROCm: converts the indexer's tokens to slots, once per layer   [3.2] */
typedef struct plumb_v32_paged_kv_indices_params {
  int64_t struct_size;             /* of this structure, in bytes */
  const int32_t* topk_indices;     /* [tokens, topk]; topk a multiple of 128 */
  const int32_t* req_id_per_token; /* [tokens] */
  const int32_t* block_table;      /* [requests, blocks_per_request] */
  const int32_t* paged_kv_indptr;  /* [tokens + 1] */
  int32_t* paged_kv_indices;       /* [tokens * topk]; entries outside the ranges are kept */
  int64_t tokens, topk, blocks_per_request;
  int64_t topk_indices_row_stride, block_table_row_stride;
  int64_t page; /* 1 or 64 */
  plumb_stream stream;
  plumb_invalid_slot invalid;
} plumb_v32_paged_kv_indices_params;

/* Places of the entries of convert_req_index_to_global that are not -1. */
typedef enum plumb_valid_places {
  PLUMB_VALID_IN_PLACE = 0, /* every entry stays in its column */
  PLUMB_VALID_LEFT = 1,     /* they come first, in the order of their columns; -1 follows */
  PLUMB_VALID_ANY_ORDER = 2 /* they come first, in any order; -1 follows */
} plumb_valid_places;

/* V3.2: converts the indexer's tokens to rows of the cache, or of the prefill workspace   [3.3] */
typedef struct plumb_convert_req_index_to_global_params {
  int64_t struct_size;               /* of this structure, in bytes */
  const int32_t* req_id;             /* [tokens], rows of block_table */
  const int32_t* block_table;        /* [requests, blocks_per_request] */
  const int32_t* token_indices;      /* [tokens, topk] positions in the request; < 0: none */
  const int32_t* prefill_request_id; /* [tokens], NULL if prefills is 0; < 0: a decode token */
  const int32_t* workspace_starts;   /* [prefills], NULL if prefills is 0: first rows */
  int32_t* global_indices;           /* [tokens, topk] */
  int32_t* valid_counts;             /* [tokens] or NULL: entries that are not -1 */
  int64_t tokens, topk, blocks_per_request;
  int64_t token_indices_row_stride, block_table_row_stride, global_indices_row_stride;
  int64_t block_size;
  int64_t block_stride_rows; /* rows of the cache from one block to the next, >= block_size */
  int64_t prefills;          /* requests with a workspace; 0 if dcp_size > 1 */
  int64_t dcp_size;          /* ranks that share the positions of a request; usually 1 */
  int64_t dcp_rank;          /* in [0, dcp_size) */
  int64_t dcp_interleave;    /* positions that a rank takes at a time; divides block_size */
  plumb_stream stream;
  plumb_valid_places compaction;
} plumb_convert_req_index_to_global_params;

/* SGLang: converts the top-k indices of every token to slots by a page table   [3.4] */
typedef struct plumb_transform_index_page_table_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const int32_t* topk_indices; /* [tokens, topk]; < 0: none */
  const int32_t* seq_lens;     /* [tokens] or NULL. A token of length <= topk selects 0, 1, ... */
  const int32_t* cu_seqlens_q; /* [requests + 1], NULL if requests is 0; rows of later tokens: -1 */
  const int32_t* page_table;   /* rows of requests, or of tokens if requests is 0 */
  int32_t* page_indices;       /* [tokens, topk] slots */
  int32_t* raw_indices;        /* [tokens, topk] or NULL: indices before the conversion */
  int64_t tokens, topk;
  int64_t requests;  /* 0: each token has a row of the page table */
  int64_t page_size; /* a power of two */
  int64_t topk_indices_row_stride, page_table_row_stride;
  int64_t page_indices_row_stride, raw_indices_row_stride;
  plumb_stream stream;
} plumb_transform_index_page_table_params;

/* Packs the rows of sequences of different lengths, padded to one length   [4.6] */
typedef struct plumb_pack_seq_params {
  int64_t struct_size;    /* of this structure, in bytes */
  const void* x;          /* [tokens, columns], rows x_row_stride apart */
  const int32_t* lengths; /* [sequences], each in [0, max_length], together at most tokens */
  void* out;              /* [sequences, max_length, columns] */
  int64_t tokens, sequences, max_length, columns;
  int64_t x_row_stride;
  int64_t element_bytes; /* 1, 2 or 4: of x and out */
  int64_t out_sequence_stride, out_row_stride;
  uint32_t pad_bits; /* low bytes: value after a sequence's rows; usually -inf */
  plumb_stream stream;
} plumb_pack_seq_params;

/* Inverse of pack_seq   [4.6] */
typedef struct plumb_unpack_seq_params {
  int64_t struct_size;    /* of this structure, in bytes */
  const void* x;          /* [sequences, max_length, columns] contiguous */
  const int32_t* lengths; /* [sequences] */
  void* out;              /* [tokens, columns]; rows after the last sequence are kept */
  int64_t tokens, sequences, max_length, columns;
  int64_t out_row_stride;
  int64_t element_bytes;
  plumb_stream stream;
} plumb_unpack_seq_params;

#ifdef __cplusplus
}
#endif

#endif
