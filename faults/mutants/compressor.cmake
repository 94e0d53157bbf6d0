# SPDX-License-Identifier: Apache-2.0
#
# Mutants of this family (faults/CMakeLists.txt says what the words mean). Text stands
# between brackets.

plumb_mutant(compressed_slots_of_replayed_tokens
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[|| p.slot_mapping[token] >= 0]]
  TO [[|| p.ratio > 0]]
  CASE compressed_slot_mapping/c4_seven_drafts/eager
  SAYS "expected -1, got"
  WHY "a token whose own slot is -1 writes the state of its group once more")

plumb_mutant(compressed_slots_own_slot_always_required
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[return p.own_slot == PLUMB_OWN_SLOT_IGNORED || p.slot_mapping[token] >= 0;]]
  TO [[return p.slot_mapping[token] >= 0;]]
  CASE compressed_slot_mapping/own_slot_ignored/eager
  SAYS "each wrong row is -1"
  WHY "own slots are asked for where the engine does not")

plumb_mutant(compressed_slots_tail_kept
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[if (row < p.buffer_tokens)]]
  TO [[if (row < p.tokens)]]
  CASE compressed_slot_mapping/long_buffer/eager
  SAYS "rows 8-307 of 308"
  WHY "rows behind the tokens keep the slots of a larger batch (slot_map_tail_not_cleared)")

plumb_mutant(compressed_slots_at_the_first_token
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[(position + 1) % p.ratio != 0]]
  TO [[position % p.ratio != 0]]
  CASE compressed_slot_mapping/c4_chunk/eager
  SAYS "compressed_slots: "
  WHY "the first token of a group closes it, not the last")

plumb_mutant(compressed_slots_of_positions
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[slot_of(blocks, p.page, position / p.ratio)]]
  TO [[p.page == 0 ? 0 : slot_of(blocks, p.page * p.ratio, position) / p.ratio * p.ratio]]
  CASE compressed_slot_mapping/c4_chunk/eager
  SAYS "compressed_slots: "
  WHY "slots count positions, as in the table of the uncompressed cache")

plumb_mutant(compressed_slots_from_the_chunk
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[position_of(p.query_start_loc, p.seq_lens, request, token);]]
  TO [[token - p.query_start_loc[request];]]
  CASE compressed_slot_mapping/c128_chunk/eager
  SAYS "compressed_slots: "
  WHY "positions are counted from the first token of the chunk")

plumb_mutant(compressed_slots_request_0
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[p.block_table + request * p.block_table_row_stride]]
  TO [[p.block_table + 0 * p.block_table_row_stride]]
  CASE compressed_slot_mapping/c4_three_drafts/eager
  SAYS "compressed_slots: "
  WHY "every token takes the blocks of request 0")

plumb_mutant(compressed_slots_table_packed
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[request * p.block_table_row_stride]]
  TO [[request * (p.block_table_row_stride - 5)]]
  CASE compressed_slot_mapping/strided_table/eager
  SAYS "compressed_slots: "
  WHY "rows of the block table lie as far apart as they have columns")

plumb_mutant(partial_states_ape_of_the_slot
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[p.positions[token] % p.ratio]]
  TO [[slot % p.ratio]]
  CASE save_partial_states/c4_main/eager
  SAYS "differs from the projection"
  WHY "the row of ape is that of the slot, not of the position (ape_of_slot)")

plumb_mutant(partial_states_ape_twice
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [=[biased ? score[i] + ape[i] : score[i]]=]
  TO [=[biased ? score[i] + ape[i] + ape[i] : score[i]]=]
  CASE save_partial_states/c128_main/eager
  SAYS "differs from the projection"
  WHY "ape is added twice")

plumb_mutant(partial_states_ape_on_kv
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[store_state(to, i, kv[i], p.form);]]
  TO [[store_state(to, i, biased ? kv[i] + ape[i] : kv[i], p.form);]]
  CASE save_partial_states/c4_indexer/eager
  SAYS "differs from the projection"
  WHY "ape is added to kv as well")

plumb_mutant(partial_states_raw_with_ape_left_out
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [=[biased ? score[i] + ape[i] : score[i]]=]
  TO [[score[i] + 0 * p.width]]
  CASE save_partial_states/c4_main/eager
  SAYS "differs from the projection"
  WHY "scores are stored without ape where the reader expects it")

plumb_mutant(partial_states_of_padding_written
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[slot = p.slot_mapping[token];
  if (slot < 0) return;]]
  TO [[slot = p.slot_mapping[token] < 0 ? 0 : p.slot_mapping[token];]]
  CASE save_partial_states/c4_main/full_graph
  SAYS "a byte that no token owns changed"
  WHY "tokens without a slot go to slot 0 (state_of_padding_written)")

plumb_mutant(partial_states_minus_one_only
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[if (slot < 0) return;]]
  TO [[if (slot == -1) return;]]
  CASE save_partial_states/holes/eager
  SAYS "save_partial_states"
  WHY "negative slots but -1 are written in front of the cache")

plumb_mutant(partial_states_blocks_packed
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[block * state.block_stride_bytes +]]
  TO [[block * state.rows * state.row_stride_bytes +]]
  CASE save_partial_states/padded_blocks/eager
  SAYS "differs from the projection"
  WHY "blocks lie as far apart as their rows take")

plumb_mutant(partial_states_block_offset_32_bits
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[block * state.block_stride_bytes +]]
  TO [[static_cast<std::uint32_t>(block * state.block_stride_bytes) +]]
  CASE save_partial_states/far_blocks/eager
  SAYS "cache.state"
  WHY "the offset of a block wraps at 2^32 bytes")

plumb_mutant(partial_states_score_stride_of_kv
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[p.score + token * p.score_row_stride]]
  TO [[p.score + token * p.kv_row_stride]]
  CASE save_partial_states/width_257/eager
  SAYS "differs from the projection"
  WHY "scores are read with the row stride of kv")

plumb_mutant(partial_states_bf16_truncated
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[store_bf16(value)]]
  TO [[static_cast<std::uint16_t>(float_bits(value) >> 16)]]
  CASE save_partial_states/raw_bf16/eager
  SAYS "differs from the projection"
  WHY "bf16 is rounded towards zero")
