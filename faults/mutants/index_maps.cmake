# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels that map indices. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(combine_dense_hole_shifted
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[if (state < 0 && p.minus_one]]
  TO [[if (state < -1 && p.minus_one]]
  CASE combine_topk_swa_indices/holes_kept/eager
  SAYS "expected -1, got "
  WHY "a hole of request b becomes b * M - 1, the last row of the request before")

plumb_mutant(combine_dense_hole_always_kept
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[p.minus_one == PLUMB_MINUS_ONE_KEPT)]]
  TO [[p.tokens > 0)]]
  CASE combine_topk_swa_indices/c4a_two_requests/full_graph
  SAYS "combined_indices: "
  WHY "a hole stays -1, where it has to be shifted like any other entry")

plumb_mutant(combine_dense_bound_inclusive
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[state >= p.compressed_rows]]
  TO [[state > p.compressed_rows]]
  CASE combine_topk_swa_indices/bounds_checked/eager
  SAYS "combined_indices: "
  WHY "an entry equal to N passes the bounds check: it is the first row of the window")

plumb_mutant(combine_dense_next_row_read
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[    j = 0;
]]
  TO [[]]
  CASE combine_topk_swa_indices/narrow_topk/eager
  SAYS "combined_indices: "
  WHY "columns beyond the top-k table are read: they belong to the next row")

plumb_mutant(combine_dense_tail_stale
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[if (p.tail == PLUMB_ROW_TAIL_UNTOUCHED) return;]]
  TO [[if (p.tokens > 0) return;]]
  CASE combine_topk_swa_indices/c4a_two_requests/full_graph
  SAYS "combined_indices: "
  WHY "columns behind the last entry keep the entries of an earlier chunk")

plumb_mutant(combine_dense_tail_cleared
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[if (p.tail == PLUMB_ROW_TAIL_UNTOUCHED) return;]]
  TO [[]]
  CASE combine_topk_swa_indices/tail_untouched/eager
  SAYS "got -1"
  WHY "columns behind the last entry are cleared, where they have to stay")

plumb_mutant(combine_dense_packed_rows
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[token * p.combined_indices_row_stride;]]
  TO [[token * p.width;]]
  CASE combine_topk_swa_indices/strided_views/eager
  SAYS "combined_indices: "
  WHY "rows of the result are written as if they were contiguous")

plumb_mutant(combine_dense_one_region
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[window_row = region + p.compressed_rows]]
  TO [[window_row = p.compressed_rows]]
  CASE combine_topk_swa_indices/window_only/eager
  SAYS "combined_indices: "
  WHY "the windows of all requests lie in the region of the first one")

plumb_mutant(combine_dense_gather_offset_ignored
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[p.seq_lens[request] - p.gather_lens[request];]]
  TO [[0 * p.gather_lens[request];]]
  CASE combine_topk_swa_indices/one_request/eager
  SAYS "combined_indices: "
  WHY "positions are taken for rows of the workspace, as if all tokens had been gathered")

plumb_mutant(combine_dense_image_ends_at_the_query
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[a.end += p.right_visible[token];]]
  TO [[]]
  CASE combine_topk_swa_indices/images/eager
  SAYS "combined_lens: "
  WHY "later tokens of the image are left out")

plumb_mutant(combine_dense_image_added_to_the_window
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[p.left_visible[token] - (p.window - 1);]]
  TO [[p.left_visible[token];]]
  CASE combine_topk_swa_indices/short_images/eager
  SAYS "combined_lens: "
  WHY "earlier tokens of the image are added to the window, although it holds them")

plumb_mutant(combine_dense_image_behind_the_sequence
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[if (a.end > p.seq_lens[request]) a.end = p.seq_lens[request];]]
  TO [[]]
  CASE combine_topk_swa_indices/images/eager
  SAYS "combined_lens: "
  WHY "an image that the chunk cuts is visible to its end: rows that were not gathered")

plumb_mutant(combine_dense_replay_ignored
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [[if (a.first < begin) a.first = begin;]]
  TO [[static_cast<void>(begin);]]
  CASE combine_topk_swa_indices/replay/eager
  SAYS "combined_lens: "
  WHY "windows begin before replay_start, at positions without cache entries")

plumb_mutant(convert_block_stride_is_page
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[block * p.block_stride_rows +]]
  TO [[block * p.block_size +]]
  CASE convert_req_index_to_global/block_stride/eager
  SAYS "global_indices: "
  WHY "blocks are taken to lie side by side, although pages of other layers lie between them")

plumb_mutant(convert_stride_for_columns
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[>= p.blocks_per_request) return]]
  TO [[>= p.block_table_row_stride) return]]
  CASE convert_req_index_to_global/strided_views/eager
  SAYS "expected -1, got "
  WHY "the bounds check uses the stride of the block table instead of its columns")

plumb_mutant(convert_prefill_is_decode
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[if (prefill >= 0) source]]
  TO [[if (prefill < -1) source]]
  CASE convert_req_index_to_global/two_sources/eager
  SAYS "global_indices: "
  WHY "prefill tokens get slots of the cache instead of rows of their workspace")

plumb_mutant(convert_workspace_of_first_prefill
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[p.workspace_starts[prefill];]]
  TO [[p.workspace_starts[0];]]
  CASE convert_req_index_to_global/two_sources/eager
  SAYS "global_indices: "
  WHY "all prefill tokens read the workspace of the first prefill request")

plumb_mutant(convert_workspace_without_bound
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[  if (local / p.block_size >= p.blocks_per_request) return kNoIndex;
  if (source.workspace >= 0) return static_cast<std::int32_t>(source.workspace + position);]]
  TO [[  if (source.workspace >= 0) return static_cast<std::int32_t>(source.workspace + position);
  if (local / p.block_size >= p.blocks_per_request) return kNoIndex;]]
  CASE convert_req_index_to_global/two_sources/eager
  SAYS "expected -1, got "
  WHY "a prefill token's position behind the block table gets a row of the workspace")

plumb_mutant(convert_missing_is_0
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[if (position < 0) return kNoIndex;]]
  TO [[if (position < 0) return 0;]]
  CASE convert_req_index_to_global/decode/eager
  SAYS "every wrong element is 0 where -1 is expected"
  WHY "a missing position becomes row 0 of the cache, as in the op for ROCm, and attention reads it")

plumb_mutant(convert_padding_counted
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[own = row >= 0 ? 1 : 0;]]
  TO [[own = inside ? 1 : 0;]]
  CASE convert_req_index_to_global/decode/eager
  SAYS "valid_counts: "
  WHY "entries of -1 count as rows")

plumb_mutant(convert_never_compacted
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[in_place = p.compaction == PLUMB_VALID_IN_PLACE;]]
  TO [[in_place = p.topk > 0;]]
  CASE convert_req_index_to_global/compacted/eager
  SAYS "global_indices: "
  WHY "valid entries stay in their columns: a reader of the first ones reads holes and loses the last")

plumb_mutant(convert_tail_stale
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[j < p.topk; j += wave_size()) out[j] = kNoIndex;]]
  TO [[j < 0; j += wave_size()) out[j] = kNoIndex;]]
  CASE convert_req_index_to_global/compacted/full_graph
  SAYS "global_indices: "
  WHY "behind the valid entries are those of an earlier step: the buffer was not filled with -1")

plumb_mutant(convert_any_order_rows_lost
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[    found += wave_sum(own);]]
  TO [[    found = p.compaction == PLUMB_VALID_ANY_ORDER ? wave_sum(own) : found + wave_sum(own);]]
  CASE convert_req_index_to_global/any_order/eager
  SAYS "global_indices: "
  WHY "every tile of a row begins at the first place: a tile overwrites the entries of another one")

plumb_mutant(convert_rank_ignored
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[% p.dcp_size != p.dcp_rank) return]]
  TO [[% p.dcp_size > p.dcp_size) return]]
  CASE convert_req_index_to_global/dcp_2/eager
  SAYS "expected -1, got "
  WHY "positions of the other ranks get rows of this rank's cache")

plumb_mutant(convert_turns_of_one
  OP convert_req_index_to_global FILE index_maps/convert_req_index_to_global.cu
  FROM [[if (position / p.dcp_interleave % p.dcp_size]]
  TO [[if (position % p.dcp_size]]
  CASE convert_req_index_to_global/dcp_interleave_16/eager
  SAYS "global_indices: "
  WHY "ranks are taken to have one position at a time, whatever the size of a turn is")

plumb_mutant(mixed_one_span
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[spanned(slot, p.compressed_block_size, p.compressed_block_span)]]
  TO [[spanned(slot, p.compressed_block_size, p.compressed_block_size + p.swa_block_span - p.swa_block_size)]]
  CASE build_flashinfer_mixed_sparse_indices/pages_of_two_sizes/eager
  SAYS "sparse_indices: "
  WHY "the gap between blocks of the window's cache is taken for that of both caches")

plumb_mutant(mixed_given_slots_kept
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[: spanned(index, p.compressed_block_size, p.compressed_block_span);]]
  TO [[: index;]]
  CASE build_flashinfer_mixed_sparse_indices/slots_of_two_sizes/eager
  SAYS "sparse_indices: "
  WHY "slots that decode tokens come with are not converted to the distance of blocks")

plumb_mutant(mixed_window_as_if_packed
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[return spanned(slot_of(blocks, p.swa_block_size, position), p.swa_block_size, p.swa_block_span);]]
  TO [[return slot_of(blocks, p.swa_block_size, position);]]
  CASE build_flashinfer_mixed_sparse_indices/pages_of_two_sizes/eager
  SAYS "sparse_indices: "
  WHY "slots of a prefill token's window count the block size, although blocks lie further apart")

plumb_mutant(mixed_length_without_window
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[static_cast<std::int32_t>(p.window + states);]]
  TO [[static_cast<std::int32_t>(states);]]
  CASE build_flashinfer_mixed_sparse_indices/c4a_mixed/eager
  SAYS "sparse_topk_lens: "
  WHY "the length leaves out the columns of the window: the reader stops before the compressed slots")

plumb_mutant(mixed_length_of_short_window
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[static_cast<std::int32_t>(p.window + states);]]
  TO [[static_cast<std::int32_t>(position - start + 1 + states);]]
  CASE build_flashinfer_mixed_sparse_indices/prefill_only/eager
  SAYS "sparse_topk_lens: "
  WHY "columns of -1 in a short window do not count: the reader loses the last compressed slots")

plumb_mutant(mixed_window_one_early
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[position < p.window ? 0 : position - p.window + 1;]]
  TO [[position < p.window ? 0 : position - p.window;]]
  CASE build_flashinfer_mixed_sparse_indices/window_only/eager
  SAYS "sparse_indices: "
  WHY "a full window begins one token too early, and does not reach the token itself")

plumb_mutant(mixed_states_before_the_token
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[(position + 1) / p.ratio;]]
  TO [[position / p.ratio;]]
  CASE build_flashinfer_mixed_sparse_indices/prefill_only/eager
  SAYS "sparse_topk_lens: "
  WHY "a token does not see the state that it closes itself")

plumb_mutant(mixed_unreached_states
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[j < states ? chosen[j] : kNoIndex]]
  TO [[j < p.top_k ? chosen[j] : kNoIndex]]
  CASE build_flashinfer_mixed_sparse_indices/c4a_mixed/eager
  SAYS "sparse_indices: "
  WHY "columns of the top-k list behind the states of the token are taken for entries")

plumb_mutant(mixed_rows_of_all_tokens
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[(token - p.decode_tokens) * p.prefill_topk_row_stride]]
  TO [[(token - (p.decode_tokens > 0)) * p.prefill_topk_row_stride]]
  CASE build_flashinfer_mixed_sparse_indices/c4a_mixed/eager
  SAYS "sparse_indices: "
  WHY "the top-k list is read as if there were one decode token in front of the prefill tokens")

plumb_mutant(mixed_padding_counted
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[p.decode_is_valid_token[token] != 0 ? wave_sum(found) : 0;]]
  TO [[wave_sum(found);]]
  CASE build_flashinfer_mixed_sparse_indices/decode_only/eager
  SAYS "sparse_topk_lens: "
  WHY "tokens that are not of the batch have the length of their stale entries")

plumb_mutant(mixed_holes_counted
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[if (index >= 0) ++found;]]
  TO [[if (j < p.decode_topk) ++found;]]
  CASE build_flashinfer_mixed_sparse_indices/decode_only/eager
  SAYS "sparse_topk_lens: "
  WHY "entries of -1 of a decode token count")

plumb_mutant(mixed_lens_ignored
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[if (length > 0 && p.decode_compressed_lens != nullptr) length]]
  TO [[if (length < 0) length]]
  CASE build_flashinfer_mixed_sparse_indices/c128a_mixed/eager
  SAYS "sparse_topk_lens: "
  WHY "every decode token has as many compressed slots as there are columns")

plumb_mutant(mixed_no_block_is_slot_0
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[  const std::int32_t slot = slot_of(blocks, p.compressed_block_size, state);
]]
  TO [[  const std::int32_t found = slot_of(blocks, p.compressed_block_size, state);
  const std::int32_t slot = found < 0 ? 0 : found;
]]
  CASE build_flashinfer_mixed_sparse_indices/missing_blocks/eager
  SAYS "expected -1, got 0"
  WHY "a state in a block of -1 becomes slot 0, which attention reads")

plumb_mutant(mixed_alignment_stale
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[    out[p.window + j] = state_slot(p, request, j < states]]
  TO [[    if (j >= p.top_k) break;
    out[p.window + j] = state_slot(p, request, j < states]]
  CASE build_flashinfer_mixed_sparse_indices/columns_17/eager
  SAYS "sparse_indices: "
  WHY "columns that only align rows are not written")

plumb_mutant(mixed_packed_rows
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[token * p.sparse_indices_row_stride;]]
  TO [[token * p.width;]]
  CASE build_flashinfer_mixed_sparse_indices/strided_views/eager
  SAYS "sparse_indices: "
  WHY "rows of the matrix are written as if they were contiguous")

plumb_mutant(mixed_entries_of_request
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [[p.decode_compressed_indices + token * p]]
  TO [[p.decode_compressed_indices + p.token_to_req[token] * p]]
  CASE build_flashinfer_mixed_sparse_indices/drafts/eager
  SAYS "sparse_indices: "
  WHY "all query tokens of a decode request have the entries of one row")

plumb_mutant(transform_missing_is_0
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[slots[j] = index < 0 ? kNoIndex :]]
  TO [[slots[j] = index < 0 ? 0 :]]
  CASE transform_index_page_table/v32_decode/eager
  SAYS "every wrong element is 0 where -1 is expected"
  WHY "an index of -1 becomes slot 0, which attention reads")

plumb_mutant(transform_exactly_topk
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[all = length <= p.topk;]]
  TO [[all = length < p.topk;]]
  CASE transform_index_page_table/exactly_topk/eager
  SAYS "page_indices: "
  WHY "a token with as many candidates as columns gets given indices, which top-k has not written")

plumb_mutant(transform_first_candidate_of_none
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[(j < length ? j : kNoIndex)]]
  TO [[(j < length ? j : length > 0 ? kNoIndex : 0)]]
  CASE transform_index_page_table/v4_dual_output/eager
  SAYS "expected -1, got "
  WHY "a token without candidates selects the first one in all columns")

plumb_mutant(transform_last_candidate_repeated
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[(j < length ? j : kNoIndex)]]
  TO [[(j < length ? j : length - 1)]]
  CASE transform_index_page_table/v4_dual_output/eager
  SAYS "expected -1, got "
  WHY "columns behind the candidates repeat the last one")

plumb_mutant(transform_first_row_of_table
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[p.page_table + row * p.page_table_row_stride;]]
  TO [[p.page_table + (p.requests > 0 ? 0 : row) * p.page_table_row_stride;]]
  CASE transform_index_page_table/v32_prefill/eager
  SAYS "page_indices: "
  WHY "tokens of all requests use the row of the first one")

plumb_mutant(transform_padding_unwritten
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[  const std::int32_t* selected =]]
  TO [[  if (row < 0) return;
  const std::int32_t* selected =]]
  CASE transform_index_page_table/spare_tokens/eager
  SAYS "page_indices: "
  WHY "rows behind the last request are not written: they have the slots of an earlier step")

plumb_mutant(transform_raw_is_given
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[static_cast<std::int32_t>(index);]]
  TO [[selected[j];]]
  CASE transform_index_page_table/v4_dual_output/eager
  SAYS "raw_indices: "
  WHY "the second output has given indices, which top-k has not written for short sequences")

plumb_mutant(transform_page_for_slot
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[slot_of(pages, p.page_size, index);]]
  TO [[pages[index / p.page_size];]]
  CASE transform_index_page_table/v4_dual_output/eager
  SAYS "page_indices: "
  WHY "the result is a page, as if each page had one slot")

plumb_mutant(transform_no_page_unsigned
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[slot_of(pages, p.page_size, index);]]
  TO [[slot_of(pages, p.page_size, index) & 0x7fffffff;]]
  CASE transform_index_page_table/missing_pages/eager
  SAYS "expected -1, got "
  WHY "an index in a page of -1 becomes a large slot, since slots are taken for unsigned")

plumb_mutant(transform_packed_rows
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [[token * p.page_indices_row_stride;]]
  TO [[token * p.topk;]]
  CASE transform_index_page_table/strided_views/eager
  SAYS "page_indices: "
  WHY "rows of the result are written as if they were contiguous")
