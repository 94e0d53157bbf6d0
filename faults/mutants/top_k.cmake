# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(top_k_global_indices
  OP top_k_per_row_prefill FILE top_k/top_k_per_row_prefill.cu DECODE
  FROM [[                     room, shared);
}]]
  TO [[                     room, shared);
  block_sync();
  for (int i = thread_index(); i < p.k; i += block_size()) {
    std::int32_t& index = p.indices[row * p.indices_row_stride + i];
    if (index >= 0) index += static_cast<std::int32_t>(start);
  }
}]]
  CASE top_k_per_row_prefill/ragged_two_requests/eager
  SAYS "global columns where the caller needs row-local ones"
  WHY "indices count the columns of logits instead of those of the row's window (vLLM #42810)")

plumb_mutant(top_k_pads_with_zero
  OP top_k_per_row_decode FILE top_k/top_k_select.h DECODE
  FROM [[kTopKNoIndex = -1;]]
  TO [[kTopKNoIndex = 0;]]
  CASE top_k_per_row_decode/all_short/eager
  SAYS "indices: 9 of 10 rows (rows 0-6, 8-9) wrong"
  WHY "the tail behind the last index holds 0 instead of -1")

plumb_mutant(top_k_padding_beats_infinity
  OP top_k_per_row_decode FILE top_k/top_k_per_row_decode.cu
  FROM [[                     room, shared);
}]]
  TO [[                     room, shared);
  block_sync();
  for (int i = thread_index(); i < p.k && length > p.k; i += block_size()) {
    std::int32_t& index = p.indices[row * p.indices_row_stride + i];
    if (fp32_bits(window.first[index * p.logits_column_stride]) == 0xff800000u) {
      index = static_cast<std::int32_t>(length) + i;
    }
  }
}]]
  CASE top_k_per_row_decode/few_finite_of_16384_columns/eager
  SAYS "index outside the row's window"
  WHY "columns behind the row count as the lowest finite number, which is above -inf (vLLM 0.33)")

plumb_mutant(top_k_nan_always_by_sign
  OP top_k_per_row_prefill FILE top_k/top_k_row.h
  FROM [[order == PLUMB_NAN_SIGN_ORDERED ?]]
  TO [[order <= PLUMB_NAN_UNSPECIFIED ?]]
  CASE top_k_per_row_prefill/all_nan_top/eager
  SAYS "indices: "
  WHY "-NaN is below all numbers, where every NaN is declared to be above them")

plumb_mutant(top_k_nan_always_top
  OP top_k_per_row_decode FILE top_k/top_k_row.h
  FROM [[order == PLUMB_NAN_SIGN_ORDERED ?]]
  TO [[order > PLUMB_NAN_UNSPECIFIED ?]]
  CASE top_k_per_row_decode/nan_by_sign_of_a_long_row/eager
  SAYS "indices: "
  WHY "-NaN is above all numbers, where it is declared to be below -inf")

plumb_mutant(top_k_only_right_for_2048
  OP top_k_per_row_prefill FILE top_k/top_k_select.h DECODE
  FROM [[if (window.length > k) return select]]
  TO [[if (window.length > k && window.length <= 2048) {
    for (int i = thread_index(); i < k; i += block_size()) indices[i] = i;
    return;
  }
  if (window.length > k) return select]]
  CASE top_k_per_row_prefill/ragged_two_requests/eager
  SAYS "indices: 6 of 6 rows (rows 0-5) wrong"
  WHY "in rows of up to 2048 columns the first K columns are taken, as if K were 2048")

plumb_mutant(top_k_candidates_overflow
  OP top_k_per_row_prefill FILE top_k/top_k_flags.h
  FROM [[const bool wins = !is_inside || before.inside < interval.wanted;]]
  TO [[const bool wins = !is_inside || (before.inside < interval.wanted && before.inside < 512);]]
  CASE top_k_per_row_prefill/ties_at_the_threshold/eager
  SAYS "indices: 1 of 2 rows (row 1) wrong"
  WHY "candidates beyond a fixed buffer are dropped")

plumb_mutant(top_k_negative_length
  OP top_k_per_row_decode FILE top_k/top_k_per_row_decode.cu
  FROM [[end > 0 ? end : 0;]]
  TO [[end;]]
  CASE top_k_per_row_decode/shorter_than_next_n/eager
  SAYS "indices: 1 of 32 rows (row 23) wrong" SIMULATED  # on an H200 the block that is right comes last
  WHY "a sequence shorter than next_n gives a negative length")

plumb_mutant(top_k_stops_at_the_first_part
  OP top_k_per_row_prefill FILE top_k/top_k_select.h
  FROM [[pass < kTopKPasses && !interval.done]]
  TO [[pass < 0 && !interval.done]]
  CASE top_k_per_row_prefill/low_ten_bits/eager
  SAYS "indices: "
  WHY "the search stops after the first radix digit: keys that differ below it count as equal")

plumb_mutant(top_k_windows_as_whole_chunks
  OP top_k_per_row_prefill FILE top_k/top_k_row.h
  FROM [[if (is_column(row, column + i)) bits.at[i] = fp32_bits(row.window.first[element]);]]
  TO [[if (column >= 0 && is_column(row, column + i)) bits.at[i] = fp32_bits(row.window.first[element]);]]
  CASE top_k_per_row_prefill/k1024_around_k/eager
  SAYS "indices: "
  WHY "the columns of a window that starts inside a chunk are read as zeros")

plumb_mutant(top_k_list_without_the_lead
  OP top_k_per_row_prefill FILE top_k/top_k_list.h
  FROM [[candidate.column + row.lead]]
  TO [[candidate.column]]
  CASE top_k_per_row_prefill/columns_65537/eager
  SAYS "indices: 1 of 2 rows (row 1) wrong"
  WHY "candidates of a row that starts inside a chunk are placed as if it started at one")

plumb_mutant(top_k_candidates_dropped
  OP top_k_per_row_decode FILE top_k/top_k_flags.h DECODE
  FROM [[const bool wins = !is_inside || before.inside < interval.wanted;]]
  TO [[const bool wins = !is_inside || (before.inside < interval.wanted && before.inside < 4);]]
  CASE top_k_per_row_decode/ties_at_the_threshold/eager
  SAYS "-1 inside the valid prefix: winners were dropped"
  WHY "candidates beyond a buffer of 4 are dropped, in real kernels beyond thousands")

plumb_mutant(top_k_candidates_of_positive_logits
  OP top_k_per_row_decode FILE top_k/top_k_list.h
  FROM [[top_k_key(candidate.bits)]]
  TO [[(candidate.bits | 0x80000000u)]]
  CASE top_k_per_row_decode/long_negative/eager
  SAYS "indices: "
  WHY "keys of negative candidates are not complemented, which shows in rows with few positive logits")

plumb_mutant(top_k_bf16_read_as_fp32
  OP top_k_per_row_prefill FILE top_k/top_k_per_row_prefill.cu
  FROM [[if (p.logits_format == PLUMB_LOGITS_BF16)]]
  TO [[if (p.logits_format > PLUMB_LOGITS_BF16)]]
  CASE top_k_per_row_prefill/bf16_one_row/eager
  SAYS "indices: "
  WHY "logits of bf16 are read as fp32: two columns count as one")

plumb_mutant(top_k_bf16_row_stride_in_bytes
  OP top_k_per_row_decode FILE top_k/top_k_row.h
  FROM [[static_cast<const Logit*>(p.logits) + element;]]
  TO [[reinterpret_cast<const Logit*>(static_cast<const std::uint8_t*>(p.logits) +
                                     element * (sizeof(Logit) == 2 ? 1 : sizeof(Logit)));]]
  CASE top_k_per_row_decode/bf16_around_k512/eager
  SAYS "indices: "
  WHY "the distance between rows of bf16 logits is taken for a number of bytes")

plumb_mutant(top_k_bf16_halves_swapped
  OP top_k_per_row_prefill FILE top_k/top_k_row.h
  FROM [[bits.at[i] = fp32_bits(logits.at[i]);]]
  TO [[bits.at[i] = fp32_bits(logits.at[sizeof(Logit) == 2 ? i ^ 1 : i]);]]
  CASE top_k_per_row_prefill/bf16_long/eager
  SAYS "indices: "
  WHY "of two bf16 logits in a word the upper half is taken for the first one, in whole chunks")

plumb_mutant(top_k_bf16_in_the_lower_half
  OP top_k_per_row_decode FILE top_k/top_k_row.h
  FROM [[return static_cast<std::uint32_t>(bf16) << 16;]]
  TO [[return bf16;]]
  CASE top_k_per_row_decode/bf16_special_values/eager
  SAYS "indices: "
  WHY "bits of bf16 are taken for the lower half of an fp32 number: negative logits are above positive ones")

plumb_mutant(top_k_bf16_keys_without_the_last_bit
  OP top_k_per_row_decode FILE top_k/top_k_row.h
  FROM [[return static_cast<std::uint32_t>(bf16) << 16;]]
  TO [[return static_cast<std::uint32_t>(bf16 & 0xfffeu) << 16;]]
  CASE top_k_per_row_decode/bf16_neighbours/eager
  SAYS "a larger logit was left out"
  WHY "neighbouring numbers of bf16 count as equal")

plumb_mutant(top_k_bf16_through_fp16
  OP top_k_per_row_prefill FILE top_k/top_k_row.h
  FROM [[return static_cast<std::uint32_t>(bf16) << 16;]]
  TO [[return static_cast<std::uint32_t>((bf16 & 0x7fffu) >= 0x4780u && (bf16 & 0x7fffu) < 0x7f80u
                                        ? (bf16 & 0x8000u) | 0x7f80u : bf16) << 16;]]
  CASE top_k_per_row_prefill/bf16_beyond_fp16/eager
  SAYS "a larger logit was left out"
  WHY "bf16 is converted to fp16: all logits above 65504 become infinite")

plumb_mutant(top_k_bf16_zeros_always_equal
  OP top_k_per_row_decode FILE top_k/top_k_row.h
  FROM [[minus_zero(p.zeros)};]]
  TO [[sizeof(Logit) == 2 ? 0 : minus_zero(p.zeros)};]]
  CASE top_k_per_row_decode/bf16_signed_zeros/eager
  SAYS "indices: "
  WHY "-0 of bf16 is equal to +0, where it is declared to be below")

plumb_mutant(top_k_bf16_zeros_always_by_sign
  OP top_k_per_row_prefill FILE top_k/top_k_row.h
  FROM [[  if (bits == kTopKMinusZero) return row.window.minus_zero;]]
  TO [[  if (bits == kTopKMinusZero && sizeof(Logit) != 2) return row.window.minus_zero;]]
  CASE top_k_per_row_prefill/bf16_equal_zeros/eager
  SAYS "of equal keys those with the lowest indices"
  WHY "-0 of bf16 is below +0, where both are declared to be equal")

plumb_mutant(top_k_bf16_chunks_packed
  OP top_k_per_row_decode FILE top_k/top_k_row.h
  FROM [[    element += row.window.column_stride;]]
  TO [[    element += sizeof(Logit) == 2 ? 1 : row.window.column_stride;]]
  CASE top_k_per_row_decode/bf16_strided/eager
  SAYS "indices: "
  WHY "the four bf16 logits of a chunk are read side by side, whatever the column stride is")

plumb_mutant(candidates_block_from_column_0
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[row.window.start + block * p.block_size;]]
  TO [[(row.window.start + p.block_size - 1) / p.block_size * p.block_size + block * p.block_size;]]
  CASE select_candidate_blocks/v41_prefill/eager
  SAYS "blocks: "
  WHY "blocks are counted from column 0: they begin at multiples of the block")

plumb_mutant(candidates_newest_not_pinned
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[if (block == row.pinned) return]]
  TO [[if (block == row.pinned && block < 0) return]]
  CASE select_candidate_blocks/newest_block_last/eager
  SAYS "blocks: "
  WHY "the block with the newest column competes with its score")

plumb_mutant(candidates_last_block_dropped
  OP select_candidate_blocks FILE top_k/candidate_window.h
  FROM [[(stop - start + p.block_size - 1) / p.block_size]]
  TO [[(stop - start) / p.block_size]]
  CASE select_candidate_blocks/last_block_partial/eager
  SAYS "blocks: "
  WHY "a last block of fewer columns does not count, although it is the newest one")

plumb_mutant(candidates_scores_in_bf16
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[return top_k_key(float_bits(logit));]]
  TO [[return top_k_key(float_bits(load_bf16(store_bf16(logit))));]]
  CASE select_candidate_blocks/low_bits/eager
  SAYS "a block with a larger score was left out"
  WHY "scores of fp32 are rounded to bf16")

plumb_mutant(candidates_nan_skipped
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[p.nan_block == PLUMB_NAN_BLOCK_FORCED ? kKeyOfInfinity : kKeyOfNan;]]
  TO [[kKeyOfDead;]]
  CASE select_candidate_blocks/few_nans/eager
  SAYS "a block with a larger score was left out"
  WHY "the maximum of a block ignores NaN")

plumb_mutant(candidates_nan_always_forced
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[p.nan_block == PLUMB_NAN_BLOCK_FORCED ?]]
  TO [[p.nan_block >= PLUMB_NAN_BLOCK_DROPPED ?]]
  CASE select_candidate_blocks/nan_top/eager
  SAYS "a block with a larger score was left out"
  WHY "a block with NaN is equal to +inf, where it is declared to be above")

plumb_mutant(candidates_dead_blocks_kept
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[&& p.dead_block == PLUMB_DEAD_BLOCK_MINUS_ONE;]]
  TO [[&& p.dead_block > PLUMB_DEAD_BLOCK_INDEX;]]
  CASE select_candidate_blocks/newest_block_dead/eager
  SAYS "no candidate block of the row"
  WHY "blocks of -inf have indices, where -1 is declared")

plumb_mutant(candidates_dead_blocks_lost
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[&& p.dead_block == PLUMB_DEAD_BLOCK_MINUS_ONE;]]
  TO [[&& p.dead_block >= PLUMB_DEAD_BLOCK_MINUS_ONE;]]
  CASE select_candidate_blocks/dead_blocks_index/eager
  SAYS "-1 in place of candidate blocks"
  WHY "blocks of -inf are -1, where their indices are declared")

plumb_mutant(candidates_tail_unwritten
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[j = written + thread_index(); j < p.topk_blocks]]
  TO [[j = written + thread_index(); j < written]]
  CASE select_candidate_blocks/fewer_blocks/eager
  SAYS "blocks: "
  WHY "places behind the last candidate are not written: they have blocks of an earlier step")

plumb_mutant(candidates_newest_of_columns
  OP select_candidate_blocks FILE top_k/candidate_window.h
  FROM [[end > start ? (end - start - 1) / p.block_size : -1]]
  TO [[stop > start ? (stop - start - 1) / p.block_size : -1]]
  CASE select_candidate_blocks/columns_missing/eager
  SAYS "blocks: "
  WHY "the last block with columns is pinned, although the row ends behind the columns")

plumb_mutant(candidates_row_repeat_ignored
  OP select_candidate_blocks FILE top_k/candidate_window.h
  FROM [[p.row_starts[row / p.row_repeat];]]
  TO [[p.row_starts[row % (p.rows / p.row_repeat)];]]
  CASE select_candidate_blocks/row_repeat/eager
  SAYS "blocks: "
  WHY "rows have the starts of other rows: repeats are taken for outer ones")

plumb_mutant(candidates_grid_ignored
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[p.newest == PLUMB_NEWEST_IN_GRID && window.newest < grid]]
  TO [[p.newest > PLUMB_NEWEST_IN_GRID && window.newest < grid]]
  CASE select_candidate_blocks/newest_in_grid/eager
  SAYS "blocks: "
  WHY "a newest block behind the columns is dropped, where it is declared to be a candidate")

plumb_mutant(candidates_ties_dropped
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[is_inside != 0 && inside_before < interval.wanted]]
  TO [[is_inside != 0 && inside_before < interval.wanted && inside_before < 8]]
  CASE select_candidate_blocks/all_equal/eager
  SAYS "blocks: "
  WHY "blocks at the threshold beyond a buffer of 8 are dropped, in real kernels beyond thousands")

plumb_mutant(candidates_packed_rows
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[launch_row * p.blocks_row_stride]]
  TO [[launch_row * p.topk_blocks]]
  CASE select_candidate_blocks/strided_views/eager
  SAYS "blocks: "
  WHY "rows of the result are written as if they were contiguous")

plumb_mutant(mask_block_from_column_0
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[const std::int64_t begin = window.start + first * p.block_size;]]
  TO [[const std::int64_t begin = first * p.block_size;]]
  CASE mask_candidate_logits/v41_prefill/eager
  SAYS "logits: "
  WHY "blocks are counted from column 0 instead of from the start")

plumb_mutant(mask_keeps_column_end
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[column >= window.stop) mask]]
  TO [[column > window.stop) mask]]
  CASE mask_candidate_logits/v41_prefill/eager
  SAYS "logits: "
  WHY "the column behind the window stays, which nothing has written")

plumb_mutant(mask_keeps_columns_in_front
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[if (column < window.start || column >= window.stop)]]
  TO [[if (column >= window.stop)]]
  CASE mask_candidate_logits/v41_prefill/eager
  SAYS "logits: "
  WHY "columns in front of the window stay")

plumb_mutant(mask_edge_always_kept
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[if (p.edge == PLUMB_EDGE_IGNORE) return false;]]
  TO [[if (p.edge < PLUMB_EDGE_IGNORE) return false;]]
  CASE mask_candidate_logits/columns_missing/eager
  SAYS "logits: "
  WHY "a candidate behind the columns keeps the last one (vLLM)")

plumb_mutant(mask_edge_never_kept
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[if (p.edge == PLUMB_EDGE_IGNORE) return false;]]
  TO [[if (p.edge >= PLUMB_EDGE_IGNORE) return false;]]
  CASE mask_candidate_logits/keep_last/eager
  SAYS "logits: "
  WHY "a candidate behind the columns does not keep the last one, where this is declared")

plumb_mutant(mask_minus_one_is_block_0
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[const std::int64_t block = blocks[j] - first;]]
  TO [[const std::int64_t block = (blocks[j] < 0 ? 0 : blocks[j]) - first;]]
  CASE mask_candidate_logits/v41_decode/eager
  SAYS "logits: "
  WHY "-1 keeps block 0")

plumb_mutant(mask_lowest_finite
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[bits_float(0xff800000u)]]
  TO [[bits_float(0xff7fffffu)]]
  CASE mask_candidate_logits/v41_decode/eager
  SAYS "logits: "
  WHY "masked logits are the lowest finite number, which top-k takes for a score")

plumb_mutant(mask_lowest_finite_bf16
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[= 0xff80;]]
  TO [[= 0xff7f;]]
  CASE mask_candidate_logits/bf16/eager
  SAYS "logits: "
  WHY "masked logits of bf16 are the lowest finite number")

plumb_mutant(mask_packed_candidates
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[row * p.blocks_row_stride]]
  TO [[row * p.topk_blocks]]
  CASE mask_candidate_logits/strided_views/eager
  SAYS "logits: "
  WHY "rows of candidates are read as if they were contiguous")

plumb_mutant(mask_candidates_of_first_repeat
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[row * p.blocks_row_stride]]
  TO [[row / p.row_repeat * p.row_repeat * p.blocks_row_stride]]
  CASE mask_candidate_logits/row_repeat/eager
  SAYS "logits: "
  WHY "rows that share a window share the candidates of the first one")

plumb_mutant(mask_marks_not_cleared
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [[marks[i] = 0;]]
  TO [[marks[i] = first == 0 ? 0 : marks[i];]]
  CASE mask_candidate_logits/block_size_1/eager
  SAYS "logits: "
  WHY "candidates among the first 2048 blocks mark the next 2048 blocks too")

plumb_mutant(candidates_nan_never_dropped
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [[&& p.nan_block == PLUMB_NAN_BLOCK_DROPPED;]]
  TO [[&& p.nan_block > PLUMB_NAN_BLOCK_UNSPECIFIED;]]
  CASE select_candidate_blocks/few_nans/eager
  SAYS "blocks: "
  WHY "blocks with NaN have their indices in the result, where -1 is declared")
