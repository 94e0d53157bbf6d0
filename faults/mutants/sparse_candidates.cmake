# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the ops on sparse blocks of the two-level top-k. faults/CMakeLists.txt explains the arguments
# of plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(expand_in_given_order
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[places.smaller += other >= 0 && other < block ? 1 : 0;]]
  TO [[places.smaller += other >= 0 && other != block && j < candidate ? 1 : 0;]]
  CASE expand_candidate_blocks/v41_decode/eager
  SAYS "sparse_blocks: "
  WHY "sparse blocks stand in the order of the candidates")

plumb_mutant(expand_start_not_added
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[const std::int64_t base = start / size;]]
  TO [[const std::int64_t base = 0;]]
  CASE expand_candidate_blocks/sparse_block_size_16/eager
  SAYS "sparse_blocks: "
  WHY "sparse blocks are counted from the start instead of from column 0")

plumb_mutant(expand_start_rounded_up
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[const std::int64_t base = start / size;]]
  TO [[const std::int64_t base = (start + size - 1) / size;]]
  CASE expand_candidate_blocks/v41_prefill/eager
  SAYS "sparse_blocks: "
  WHY "a start inside a sparse block is rounded up to the next one")

plumb_mutant(expand_last_block_dropped
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[length > 0 ? (length + size - 1) / size : 0;]]
  TO [[length > 0 ? length / size : 0;]]
  CASE expand_candidate_blocks/last_block_partial/eager
  SAYS "sparse_blocks: "
  WHY "a last block of fewer columns counts as behind the window")

plumb_mutant(expand_length_in_32_bits
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[length > 0 ? (length + size - 1) / size : 0;]]
  TO [[length > 0 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(length + size - 1)) / size : 0;]]
  CASE expand_candidate_blocks/window_of_2_31/eager
  SAYS "sparse_blocks: "
  WHY "a length near 2^31 plus a block overflows: no candidate is valid")

plumb_mutant(expand_block_at_the_end_kept
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[length > 0 ? (length + size - 1) / size : 0;]]
  TO [[length > 0 ? (length + size) / size : 0;]]
  CASE expand_candidate_blocks/last_block_full/eager
  SAYS "sparse_blocks: "
  WHY "the block that starts at the end of the window counts as valid")

plumb_mutant(expand_halves_behind_kept
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[first + pieces < valid_blocks ? first + pieces : valid_blocks;]]
  TO [[first + pieces;]]
  CASE expand_candidate_blocks/second_half_missing/eager
  SAYS "sparse_blocks: "
  WHY "all sparse blocks of the newest candidate count, also those behind the window")

plumb_mutant(expand_minus_one_is_block_0
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[const std::int64_t first = blocks[j] * pieces;]]
  TO [[const std::int64_t first = (blocks[j] < 0 ? 0 : blocks[j]) * pieces;]]
  CASE expand_candidate_blocks/fewer_blocks/eager
  SAYS "sparse_ends: "
  WHY "-1 counts as block 0")

plumb_mutant(expand_repeats_dropped
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[if (first < 0 || first >= valid_blocks) continue;]]
  TO [[if (first < 0 || first >= valid_blocks || places_of(blocks, j, j).equal > 0) continue;]]
  CASE expand_candidate_blocks/repeated_candidates/eager
  SAYS "sparse_ends: "
  WHY "of repeated candidates only the first one counts")

plumb_mutant(expand_repeats_in_one_place
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[places.before += other == block && j < candidate ? 1 : 0;]]
  TO [[places.before += 0;]]
  CASE expand_candidate_blocks/repeated_candidates/eager
  SAYS "sparse_blocks: "
  WHY "repeated candidates are written to one place: the others keep an earlier step's blocks")

plumb_mutant(expand_repeats_as_wholes
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[place += places.equal;]]
  TO [[place += 1;]]
  CASE expand_candidate_blocks/repeated_halves/eager
  SAYS "sparse_blocks: "
  WHY "copies of a candidate are not interleaved: their sparse blocks are not in order")

plumb_mutant(expand_tail_unwritten
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[i = count + thread_index(); i < p.topk_blocks * pieces;]]
  TO [[i = count + thread_index(); i < count;]]
  CASE expand_candidate_blocks/fewer_blocks/eager
  SAYS "sparse_blocks: "
  WHY "places behind the valid sparse blocks are not written")

plumb_mutant(expand_tail_minus_one
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[sparse_blocks[i] = static_cast<std::int32_t>(base + last);]]
  TO [[sparse_blocks[i] = -1;]]
  CASE expand_candidate_blocks/fewer_blocks/eager
  SAYS "sparse_blocks: "
  WHY "-1 stands behind the valid sparse blocks, which a kernel of sparse logits looks up")

plumb_mutant(expand_tail_of_block_0
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[sparse_blocks[i] = static_cast<std::int32_t>(base + last);]]
  TO [[sparse_blocks[i] = static_cast<std::int32_t>(base);]]
  CASE expand_candidate_blocks/fewer_blocks/eager
  SAYS "sparse_blocks: "
  WHY "the block of the start fills the row instead of the last one")

plumb_mutant(expand_empty_rows_of_block_0
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[sparse_blocks[i] = static_cast<std::int32_t>(base + last);]]
  TO [[sparse_blocks[i] = static_cast<std::int32_t>(count > 0 ? base + last : 0);]]
  CASE expand_candidate_blocks/no_valid_candidate/eager
  SAYS "sparse_blocks: "
  WHY "a row without a valid candidate has block 0 instead of the block of its start")

plumb_mutant(expand_end_of_whole_blocks
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[(left < size ? left : size)]]
  TO [[size]]
  CASE expand_candidate_blocks/last_block_partial/eager
  SAYS "sparse_ends: "
  WHY "all columns of the last block count as valid")

plumb_mutant(expand_end_always_partial
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[(left < size ? left : size)]]
  TO [[((length - 1) % size + 1)]]
  CASE expand_candidate_blocks/newest_not_selected/eager
  SAYS "sparse_ends: "
  WHY "the last candidate is taken for the last block of the window (SGLang's candidate_row_lens)")

plumb_mutant(expand_end_of_empty_rows
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[count > 0 ? (count - 1) * size]]
  TO [[count >= 0 ? (count > 0 ? count - 1 : 0) * size]]
  CASE expand_candidate_blocks/no_valid_candidate/eager
  SAYS "sparse_ends: "
  WHY "a row without a valid candidate has the columns of a block")

plumb_mutant(expand_end_from_all_candidates
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[count > 0 ? (count - 1) * size]]
  TO [[count > 0 ? (p.topk_blocks * pieces - 1) * size]]
  CASE expand_candidate_blocks/fewer_blocks/eager
  SAYS "sparse_ends: "
  WHY "copies of the last block count as valid columns")

plumb_mutant(expand_packed_candidates
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[p.blocks + row * p.blocks_row_stride]]
  TO [[p.blocks + row * p.topk_blocks]]
  CASE expand_candidate_blocks/strided_views/eager
  SAYS "sparse_blocks: "
  WHY "rows of candidates are read as if they were contiguous")

plumb_mutant(expand_packed_sparse_blocks
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [[row * p.sparse_blocks_row_stride]]
  TO [[row * p.topk_blocks * pieces]]
  CASE expand_candidate_blocks/strided_views/eager
  SAYS "sparse_blocks: "
  WHY "rows of sparse blocks are written as if they were contiguous")

plumb_mutant(remap_start_not_subtracted
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[const std::int64_t base = p.row_starts[row] / size;]]
  TO [[const std::int64_t base = 0;]]
  CASE remap_candidate_positions/sparse_block_size_16/eager
  SAYS "positions: "
  WHY "positions are counted from column 0 instead of from the start")

plumb_mutant(remap_start_subtracted_in_columns
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[(blocks[column / size] - base) * size + column % size;]]
  TO [[blocks[column / size] * size + column % size - p.row_starts[row];]]
  CASE remap_candidate_positions/v41_prefill/eager
  SAYS "positions: "
  WHY "the start is subtracted as columns, although sparse blocks begin at its remainder")

plumb_mutant(remap_start_rounded_up
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[const std::int64_t base = p.row_starts[row] / size;]]
  TO [[const std::int64_t base = (p.row_starts[row] + size - 1) / size;]]
  CASE remap_candidate_positions/v41_prefill/eager
  SAYS "positions: "
  WHY "a start inside a sparse block is rounded up to the next one")

plumb_mutant(remap_minus_one_is_column_0
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[const std::int64_t column = columns[j];]]
  TO [[const std::int64_t column = columns[j] < 0 ? 0 : columns[j];]]
  CASE remap_candidate_positions/fewer_columns/eager
  SAYS "positions: "
  WHY "-1 counts as column 0")

plumb_mutant(remap_columns_behind_clamped
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[const std::int64_t column = columns[j];]]
  TO [[const std::int64_t width = p.row_blocks * size, column = columns[j] < width ? columns[j] : width - 1;]]
  CASE remap_candidate_positions/v41_decode/eager
  SAYS "positions: "
  WHY "a column behind the sparse logits, which DeepSelect may write, counts as the last one")

plumb_mutant(remap_unwritten_without_column
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[    positions[j] = static_cast<std::int32_t>(position);]]
  TO [[    if (position >= 0) positions[j] = static_cast<std::int32_t>(position);]]
  CASE remap_candidate_positions/fewer_columns/eager
  SAYS "positions: "
  WHY "a place without a column is not written: it keeps an earlier step's position")

plumb_mutant(remap_offset_lost
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[* size + column % size;]]
  TO [[* size;]]
  CASE remap_candidate_positions/v41_decode/eager
  SAYS "positions: "
  WHY "the first column of a sparse block stands for all its columns")

plumb_mutant(remap_columns_unchanged
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[(blocks[column / size] - base) * size + column % size;]]
  TO [[column;]]
  CASE remap_candidate_positions/v41_decode/eager
  SAYS "positions: "
  WHY "columns of the sparse logits are taken for positions")

plumb_mutant(remap_columns_in_fp32
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[column % size;]]
  TO [[static_cast<std::int64_t>(static_cast<float>(column)) % size;]]
  CASE remap_candidate_positions/columns_beyond_2_24/eager
  SAYS "positions: "
  WHY "columns beyond 2^24 are rounded to fp32")

plumb_mutant(remap_packed_columns
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[row * p.columns_row_stride]]
  TO [[row * p.k]]
  CASE remap_candidate_positions/strided_columns/eager
  SAYS "positions: "
  WHY "rows of columns are read as if they were contiguous")

plumb_mutant(remap_packed_sparse_blocks
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[row * p.sparse_blocks_row_stride]]
  TO [[row * p.row_blocks]]
  CASE remap_candidate_positions/strided_blocks/eager
  SAYS "positions: "
  WHY "rows of sparse blocks are read as if they were contiguous")

plumb_mutant(remap_packed_positions
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [[row * p.positions_row_stride]]
  TO [[row * p.k]]
  CASE remap_candidate_positions/strided_positions/eager
  SAYS "positions: "
  WHY "rows of positions are written as if they were contiguous")
