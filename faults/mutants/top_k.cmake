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
    if (float_bits(window.first[index * p.logits_column_stride]) == 0xff800000u) {
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
  FROM [[if (is_column(row, column + i)) bits.at[i] = float_bits(row.window.first[element]);]]
  TO [[if (column >= 0 && is_column(row, column + i)) bits.at[i] = float_bits(row.window.first[element]);]]
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
