# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(ragged_negative_length
  OP build_ragged_indices_from_dense FILE metadata/build_ragged_indices_from_dense.cu
  FROM [[if (length < 0) return 0;]]
  TO [[if (length < 0) return static_cast<std::int32_t>(p.width);]]
  CASE build_ragged_indices_from_dense/one_column/eager
  SAYS "indptr: 58 of 68 rows (rows 10-67) wrong"
  WHY "lengths are compared as unsigned numbers: a negative one counts as the whole width")

plumb_mutant(ragged_indptr_one_off
  OP build_ragged_indices_from_dense FILE metadata/ragged.h DECODE
  FROM [[    end += length_of(row);
    indptr[row + 1] = end;]]
  TO [[    indptr[row + 1] = end;
    end += length_of(row);]]
  CASE build_ragged_indices_from_dense/swa_window/eager
  SAYS "indptr: 4 of 5 rows (rows 1-4) wrong"
  WHY "each entry of indptr leaves out the length of the last row before it")

plumb_mutant(ragged_bound_inclusive
  OP build_ragged_indices_from_dense FILE metadata/build_ragged_indices_from_dense.cu
  FROM [[index < p.num_rows]]
  TO [[index <= p.num_rows]]
  CASE build_ragged_indices_from_dense/holes_kept_bounded/eager
  SAYS "every wrong element is 4096 where -1 is expected"
  WHY "an entry equal to the bound num_rows counts as valid")

plumb_mutant(ragged_row_offset_32_bits
  OP build_ragged_indices_from_dense FILE metadata/build_ragged_indices_from_dense.cu
  FROM [[p.indices + row * p.indices_row_stride;]]
  TO [[p.indices + static_cast<std::uint32_t>(row * p.indices_row_stride);]]
  CASE build_ragged_indices_from_dense/far_rows/eager
  SAYS "flat: these entries belong to row 4 of 5"
  WHY "row offsets wrap at 2^32 elements")

plumb_mutant(ragged_holes_always_kept
  OP build_ragged_indices_from_dense FILE metadata/build_ragged_indices_from_dense.cu
  FROM [[p.holes == PLUMB_HOLES_KEPT ?]]
  TO [[p.rows > 0 ?]]
  CASE build_ragged_indices_from_dense/swa_window/eager
  SAYS "indptr: "
  WHY "holes are copied where they have to be dropped")

plumb_mutant(ragged_holes_always_dropped
  OP build_ragged_indices_from_dense FILE metadata/build_ragged_indices_from_dense.cu
  FROM [[p.holes == PLUMB_HOLES_KEPT ?]]
  TO [[p.rows < 0 ?]]
  CASE build_ragged_indices_from_dense/holes_kept/eager
  SAYS "indptr: "
  WHY "holes are dropped, and entries move up, where holes have to be kept")

plumb_mutant(graph_buffers_indptr_end_stale
  OP copy_ragged_to_graph_buffers FILE metadata/copy_ragged_to_graph_buffers.cu
  FROM [[i <= p.rows;]]
  TO [[i < p.rows;]]
  CASE copy_ragged_to_graph_buffers/swa_window/eager
  SAYS "indptr_buffer: 1 of 7 rows (row 4) wrong"
  WHY "one entry of indptr too few is copied: the end of the last row is stale")

plumb_mutant(graph_buffers_indptr_not_copied
  OP copy_ragged_to_graph_buffers FILE metadata/copy_ragged_to_graph_buffers.cu
  FROM [[p.indptr_buffer[i] = p.indptr[i];]]
  TO [[static_cast<void>(i);]]
  CASE copy_ragged_to_graph_buffers/rows_255/full_graph
  SAYS "indptr_buffer: 256 of 258 rows (rows 0-255) wrong"
  WHY "indices are copied, indptr is not: it is that of an earlier step (vLLM #42604)")

plumb_mutant(graph_buffers_capacity_copied
  OP copy_ragged_to_graph_buffers FILE metadata/copy_ragged_to_graph_buffers.cu
  FROM [[: p.indptr[p.rows];]]
  TO [[: p.rows * p.max_per_row;]]
  CASE copy_ragged_to_graph_buffers/length/full_graph
  SAYS "entries behind the last of "
  WHY "the whole capacity is copied, where the length of the list is declared")

plumb_mutant(graph_buffers_length_copied
  OP copy_ragged_to_graph_buffers FILE metadata/copy_ragged_to_graph_buffers.cu
  FROM [[all ? p.rows * p.max_per_row :]]
  TO [[all ? p.indptr[p.rows] :]]
  CASE copy_ragged_to_graph_buffers/swa_window/full_graph
  SAYS "entries behind the last of "
  WHY "only the length of the list is copied, where the whole capacity is declared")

plumb_mutant(global_topk_request_0
  OP compute_global_topk_ragged_indices_and_indptr
  FILE metadata/compute_global_topk_ragged_indices_and_indptr.cu
  FROM [[p.block_table + p.token_to_req[token] * p.block_table_row_stride;]]
  TO [[p.block_table;]]
  CASE compute_global_topk_ragged_indices_and_indptr/two_queries_per_request/eager
  SAYS "flat: these entries belong to tokens 2-3, 5-7 of 8"
  WHY "every token takes the blocks of request 0")

plumb_mutant(global_topk_counts_invalid_tokens
  OP compute_global_topk_ragged_indices_and_indptr
  FILE metadata/compute_global_topk_ragged_indices_and_indptr.cu
  FROM [[if (p.is_valid_token[token] != 0)]]
  TO [[if (p.is_valid_token != nullptr)]]
  CASE compute_global_topk_ragged_indices_and_indptr/one_position/eager
  SAYS "lens: 2 of 67 rows (rows 13, 49) wrong"
  WHY "invalid tokens get entries")

plumb_mutant(global_topk_page_of_64
  OP compute_global_topk_ragged_indices_and_indptr FILE block_table.h
  FROM [[block * block_size + position % block_size]]
  TO [[block * 64 + position % block_size]]
  CASE compute_global_topk_ragged_indices_and_indptr/block_of_53/eager
  SAYS "flat: these entries belong to tokens 0-3 of 4"
  WHY "the block number is multiplied by 64 instead of the block size")

plumb_mutant(global_topk_dense_stride_for_columns
  OP compute_global_topk_indices_and_lens FILE metadata/compute_global_topk_indices_and_lens.cu
  FROM [[position / p.block_size < p.blocks_per_request]]
  TO [[position / p.block_size < p.block_table_row_stride]]
  CASE compute_global_topk_indices_and_lens/compacted_strided/eager
  SAYS "lens: "
  WHY "the bounds check uses the stride of the block table instead of its columns")

plumb_mutant(global_topk_dense_padded_with_0
  OP compute_global_topk_indices_and_lens FILE metadata/compute_global_topk_indices_and_lens.cu
  FROM [[out[j] = kNoIndex;]]
  TO [[out[j] = 0;]]
  CASE compute_global_topk_indices_and_lens/compacted/eager
  SAYS "every wrong element is 0 where -1 is expected"
  WHY "0, a valid slot, stands behind the last slot instead of -1")

plumb_mutant(global_topk_dense_not_compacted
  OP compute_global_topk_indices_and_lens FILE metadata/compute_global_topk_indices_and_lens.cu
  FROM [[left = p.compaction == PLUMB_COMPACTION_LEFT;]]
  TO [[left = p.tokens < 0;]]
  CASE compute_global_topk_indices_and_lens/compacted/eager
  SAYS "global_indices: "
  WHY "slots stay in their columns where compaction to the left is declared")

plumb_mutant(global_topk_dense_always_compacted
  OP compute_global_topk_indices_and_lens FILE metadata/compute_global_topk_indices_and_lens.cu
  FROM [[left = p.compaction == PLUMB_COMPACTION_LEFT;]]
  TO [[left = p.tokens >= 0;]]
  CASE compute_global_topk_indices_and_lens/flash_topk_512/eager
  SAYS "global_indices: "
  WHY "slots move to the left where they have to stay in their columns")

plumb_mutant(combine_minus_one_shifted
  OP combine_topk_swa_indices_ragged FILE metadata/combine_topk_swa_indices_ragged.cu
  FROM [[kept && topk[j] < 0 ?]]
  TO [[kept && topk[j] < -1 ?]]
  CASE combine_topk_swa_indices_ragged/holes_kept/eager
  SAYS "expected -1, got 533"
  WHY "a hole of request b becomes b * M - 1, the last row of the request before")

plumb_mutant(combine_minus_one_kept
  OP combine_topk_swa_indices_ragged FILE metadata/combine_topk_swa_indices_ragged.cu
  FROM [[kept = p.minus_one == PLUMB_MINUS_ONE_KEPT;]]
  TO [[kept = p.tokens > 0;]]
  CASE combine_topk_swa_indices_ragged/c4a_two_requests/eager
  SAYS "every wrong element is -1 where 266 is expected"
  WHY "a hole stays -1, where it has to be shifted like any other entry")

plumb_mutant(combine_missing_column_read
  OP combine_topk_swa_indices_ragged FILE metadata/combine_topk_swa_indices_ragged.cu
  FROM [[with_column = a.compressed < p.topk_width ? a.compressed : p.topk_width;]]
  TO [[with_column = a.compressed;]]
  CASE combine_topk_swa_indices_ragged/narrow_topk/eager
  SAYS "flat: these entries belong to tokens "
  WHY "columns beyond the top-k table are read: they belong to the next row")

plumb_mutant(combine_tail_untouched
  OP combine_topk_swa_indices_ragged FILE metadata/combine_topk_swa_indices_ragged.cu
  FROM [[p.tail == PLUMB_NO_VALUE_MINUS_ONE]]
  TO [[p.tokens < 0]]
  CASE combine_topk_swa_indices_ragged/tail_minus_one/full_graph
  SAYS "entries behind the last of "
  WHY "entries behind the last one keep what earlier steps left")

plumb_mutant(combine_window_without_region
  OP combine_topk_swa_indices_ragged FILE metadata/combine_topk_swa_indices_ragged.cu
  FROM [[region + p.compressed_rows + first + j]]
  TO [[p.compressed_rows + first + j]]
  CASE combine_topk_swa_indices_ragged/window_only/eager
  SAYS "flat: these entries belong to tokens 1-4 of 9"
  WHY "the windows of all requests lie in the region of the first one")

plumb_mutant(combine_chunk_start_ignored
  OP combine_topk_swa_indices_ragged FILE block_table.h
  FROM [[query_start_loc[middle] - query_start_loc[0] <= token;]]
  TO [[query_start_loc[middle] <= token;]]
  CASE combine_topk_swa_indices_ragged/later_chunk/eager
  SAYS "flat: these entries belong to tokens 2-6 of 12"
  WHY "tokens of a later chunk are counted from the start of the batch")

plumb_mutant(combine_gather_offset_ignored
  OP combine_topk_swa_indices_ragged FILE metadata/combine_topk_swa_indices_ragged.cu
  FROM [[p.seq_lens[a.request] - p.gather_lens[a.request];]]
  TO [[0 * p.gather_lens[a.request];]]
  CASE combine_topk_swa_indices_ragged/one_request/eager
  SAYS "flat: these entries belong to token 0 of 5"
  WHY "positions are taken for rows of the workspace, as if all tokens had been gathered")

plumb_mutant(swa_window_one_short
  OP swa_decode_metadata FILE metadata/swa_decode_metadata.cu
  FROM [[start = end > p.window ? end - p.window : 0;]]
  TO [[start = end >= p.window ? end - p.window + 1 : 0;]]
  CASE swa_decode_metadata/decode_window_128/eager
  SAYS "swa_lens: 3 of 6 rows (rows 0, 2-3) wrong"
  WHY "the window lacks its oldest token")

plumb_mutant(swa_token_to_req_0
  OP swa_decode_metadata FILE metadata/swa_decode_metadata.cu
  FROM [[p.token_to_req[token] = static_cast<std::int32_t>(known);]]
  TO [[p.token_to_req[token] = 0;]]
  CASE swa_decode_metadata/decode_window_128/eager
  SAYS "token_to_req: 3 of 6 rows (rows 1-3) wrong"
  WHY "token_to_req is cleared and never filled")

plumb_mutant(swa_slot_0_is_padding
  OP swa_decode_metadata FILE metadata/swa_decode_metadata.cu
  FROM [[valid = p.slot_mapping[token] >= 0;]]
  TO [[valid = p.slot_mapping[token] > 0;]]
  CASE swa_decode_metadata/decode_window_128/eager
  SAYS "is_valid_token: 1 of 4 rows (row 0) wrong"
  WHY "the token in slot 0 is taken for padding")

plumb_mutant(swa_invalid_row_always_cleared
  OP swa_decode_metadata FILE metadata/swa_decode_metadata.cu
  FROM [[written = valid || p.invalid_row == PLUMB_NO_VALUE_MINUS_ONE;]]
  TO [[written = p.window > 0;]]
  CASE swa_decode_metadata/decode_window_128/full_graph
  SAYS "swa_indices: "
  WHY "rows of tokens without a slot are set to -1, where they have to stay")

plumb_mutant(swa_invalid_row_never_cleared
  OP swa_decode_metadata FILE metadata/swa_decode_metadata.cu
  FROM [[written = valid || p.invalid_row == PLUMB_NO_VALUE_MINUS_ONE;]]
  TO [[written = valid;]]
  CASE swa_decode_metadata/invalid_rows_cleared/full_graph
  SAYS "swa_indices: "
  WHY "rows of tokens without a slot keep slots of an earlier step, where -1 is declared")

plumb_mutant(swa_tail_not_cleared
  OP swa_decode_metadata FILE metadata/swa_decode_metadata.cu DECODE
  FROM [[j < p.window; j += block_size()]]
  TO [[j < length; j += block_size()]]
  CASE swa_decode_metadata/first_pages/full_graph
  SAYS "only columns from 51 on are wrong"
  WHY "columns behind a shorter window keep the slots of an earlier step")

plumb_mutant(c128a_packed_rows
  OP c128a_decode_metadata FILE metadata/c128a_decode_metadata.cu
  FROM [[p.decode_slots + token * p.decode_slots_row_stride;]]
  TO [[p.decode_slots + token * p.max_compressed;]]
  CASE c128a_decode_metadata/strided_buffer/eager
  SAYS "decode_slots: 2 of 6 rows (rows 1-2) wrong"
  WHY "rows are packed instead of at the buffer's stride: only row 0 is right (vLLM #51318)")

plumb_mutant(c128a_invalid_tokens_have_lens
  OP c128a_decode_metadata FILE metadata/c128a_decode_metadata.cu
  FROM [[p.slot_mapping[token] >= 0 ? states_of(p, token) : 0;]]
  TO [[states_of(p, token);]]
  CASE c128a_decode_metadata/context_16k/full_graph
  SAYS "decode_lens: 2 of 6 rows (rows 2-3) wrong"
  WHY "padded tokens get a length and attend to states of request 0")

plumb_mutant(c128a_state_too_early
  OP c128a_decode_metadata FILE metadata/c128a_decode_metadata.cu
  FROM [[(p.positions[token] + 1) / kC128aRatio;]]
  TO [[(p.positions[token] + kC128aRatio) / kC128aRatio;]]
  CASE c128a_decode_metadata/mixed_batch/eager
  SAYS "prefill_indices: 5 of 5 rows (rows 0-4) wrong"
  WHY "a compressed state is listed before its last token exists")

plumb_mutant(c128a_lens_not_clamped
  OP c128a_decode_metadata FILE metadata/c128a_decode_metadata.cu
  FROM [[states < p.max_compressed ? states : p.max_compressed;]]
  TO [[states;]]
  CASE c128a_decode_metadata/longer_than_the_rows/eager
  SAYS "decode_lens: 2 of 6 rows (rows 0, 3) wrong"
  WHY "a length exceeds the columns of its row")

plumb_mutant(v32_shrink_tail_kept
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [[p.paged_kv_indices[i] = 0;]]
  TO [[static_cast<void>(i);]]
  CASE v32_paged_metadata/entries/full_graph
  SAYS "entries behind the last of "
  WHY "entries that a smaller step no longer owns keep their slots (vLLM #42982)")

plumb_mutant(v32_shrink_tail_one_short
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [[thread < tokens_before]]
  TO [[thread + 1 < tokens_before]]
  CASE v32_paged_metadata/entries_of_one_token/full_graph
  SAYS "req_id_per_token: "
  WHY "the last request id of the step before is not cleared")

plumb_mutant(v32_extent_kept_on_growth
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [[p.extents[1] = static_cast<std::int32_t>(extent_of_indices(p, tokens));]]
  TO [[const auto entries = static_cast<std::int32_t>(extent_of_indices(p, tokens));
  if (entries < p.extents[1]) p.extents[1] = entries;]]
  CASE v32_paged_metadata/entries_mixed_queries/eager
  SAYS "extents: 1 of 2 rows (row 1) wrong"
  WHY "a growing step does not store its extent, so that the next one clears too little")

plumb_mutant(v32_extent_of_entries_for_n_topk
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [[p.extent == PLUMB_EXTENT_N_TOPK ? tokens * p.topk :]]
  TO [[p.max_tokens < 0 ? tokens * p.topk :]]
  CASE v32_paged_metadata/n_topk_mixed_queries/full_graph
  SAYS "extents: 1 of 2 rows (row 1) wrong"
  WHY "the extent counts entries, where it has to count topk for each token")

plumb_mutant(v32_full_fill_from_the_extent
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [[full ? p.max_tokens * p.topk :]]
  TO [[full ? std::int64_t{p.extents[1]} :]]
  CASE v32_paged_metadata/decode_topk_128/full_graph
  SAYS "paged_kv_indices: "
  WHY "only the extent of the step before is cleared, where everything has to be")

plumb_mutant(v32_lens_not_causal
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [[position_of(p.query_start_loc, p.seq_lens, request, token) + 1;]]
  TO [[p.seq_lens[request];]]
  CASE v32_paged_metadata/chunked_prefill/eager
  SAYS "paged_kv_indptr: 11 of 12 rows (rows 1-11) wrong"
  WHY "every token of a request gets the length of the last one")

plumb_mutant(v32_missing_is_minus_one
  OP v32_paged_kv_indices FILE metadata/v32_paged_kv_indices.cu
  FROM [[p.invalid == PLUMB_INVALID_SLOT_0 ? 0 : kNoIndex;]]
  TO [[kNoIndex;]]
  CASE v32_paged_kv_indices/page_64/eager
  SAYS "every wrong element is -1 where 0 is expected"
  WHY "missing positions give -1 instead of slot 0, and the consumer takes -1 for a slot")

plumb_mutant(v32_dense_ranges
  OP v32_paged_kv_indices FILE metadata/v32_paged_kv_indices.cu
  FROM [[p.paged_kv_indices[begin + j] =]]
  TO [[p.paged_kv_indices[token * p.topk + j] =]]
  CASE v32_paged_kv_indices/topk_256/eager
  SAYS "paged_kv_indices: these entries belong to tokens 1-4 of 5"
  WHY "a token's entries are written at token * topk instead of at the start of its range")

plumb_mutant(v32_stride_for_columns
  OP v32_paged_kv_indices FILE metadata/v32_paged_kv_indices.cu
  FROM [[topk[j] / p.page < p.blocks_per_request]]
  TO [[topk[j] / p.page < p.block_table_row_stride]]
  CASE v32_paged_kv_indices/strided_views/eager
  SAYS "paged_kv_indices: these entries belong to tokens"
  WHY "positions behind the table's columns are looked up in the gap between its rows")

plumb_mutant(pack_seq_starts_padded
  OP pack_seq FILE metadata/pack_seq.cu
  FROM [[first = first_token(p.lengths, sequence)]]
  TO [[first = sequence * p.max_length]]
  CASE pack_seq/indexer_weights/eager
  SAYS "out: differs from the reference in 1 of 16 rows (row 8)"
  WHY "packed sequences are read as if they were padded already")

plumb_mutant(pack_seq_padded_with_0
  OP pack_seq FILE metadata/pack_seq.cu
  FROM [[static_cast<Element>(p.pad_bits);]]
  TO [[Element{0};]]
  CASE pack_seq/indexer_weights/eager
  SAYS "every wrong element is 0 where -inf is expected"
  WHY "padding is 0, which beats every negative logit")

plumb_mutant(pack_seq_one_round_of_lengths
  OP pack_seq FILE metadata/pack_seq.h
  FROM [[i < sequence; i += wave_size()]]
  TO [[i < sequence && i < wave_size(); i += wave_size()]]
  CASE pack_seq/sequences_67/eager
  SAYS "all rows from 130 on are wrong, none before"
  PLATFORMS sim-gfx942,sim-gfx950
  WHY "starts of sequences are right only for as many as a wave has lanes")

plumb_mutant(unpack_seq_copies_padding
  OP unpack_seq FILE metadata/unpack_seq.cu
  FROM [[i < length * p.columns;]]
  TO [[i < (length > 0 ? p.max_length : 0) * p.columns;]]
  CASE unpack_seq/topk_512_indices/full_graph
  SAYS "out: differs from the reference in 1 of 8 rows (row 5)"
  WHY "padding is copied too, over the rows of the next sequence or behind the last one")

plumb_mutant(unpack_seq_stride_ignored
  OP unpack_seq FILE metadata/unpack_seq.cu
  FROM [[out[row * p.out_row_stride + column] = x[i];]]
  TO [[out[row * p.columns + column] = x[i];]]
  CASE unpack_seq/strided_rows/eager
  SAYS "out: differs from the reference in 4 of 17 rows (rows 1, 3, 5, 7)"
  WHY "rows are written as if they were contiguous")
