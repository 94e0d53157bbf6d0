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
