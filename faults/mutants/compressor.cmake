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
