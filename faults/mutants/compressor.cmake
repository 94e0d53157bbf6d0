# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(compressed_slots_of_replayed_tokens
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[|| p.slot_mapping[token] >= 0]]
  TO [[|| p.ratio > 0]]
  CASE compressed_slot_mapping/c4_seven_drafts/eager
  SAYS "expected -1, got"
  WHY "a token without a slot of its own still gets the slot of its group's state")

plumb_mutant(compressed_slots_own_slot_always_required
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[return p.own_slot == PLUMB_OWN_SLOT_IGNORED || p.slot_mapping[token] >= 0;]]
  TO [[return p.slot_mapping[token] >= 0;]]
  CASE compressed_slot_mapping/own_slot_ignored/eager
  SAYS "each wrong row is -1"
  WHY "a token without a slot of its own gets no compressed slot where own slots are ignored")

plumb_mutant(compressed_slots_tail_kept
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[if (row < p.buffer_tokens)]]
  TO [[if (row < p.tokens)]]
  CASE compressed_slot_mapping/long_buffer/eager
  SAYS "300 of 308 rows (rows 8-307)"
  WHY "rows behind the tokens keep the slots of a larger batch")

plumb_mutant(compressed_slots_at_the_first_token
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[(position + 1) % p.ratio != 0]]
  TO [[position % p.ratio != 0]]
  CASE compressed_slot_mapping/c4_chunk/eager
  SAYS "compressed_slots: "
  WHY "the first token of a group completes it, not the last")

plumb_mutant(compressed_slots_of_positions
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[wide_slot_of(blocks, p.page, position / p.ratio)]]
  TO [[p.page == 0 ? 0 : wide_slot_of(blocks, p.page * p.ratio, position) / p.ratio * p.ratio]]
  CASE compressed_slot_mapping/c4_chunk/eager
  SAYS "compressed_slots: "
  WHY "slots count positions, as in the table of the uncompressed cache")

plumb_mutant(compressed_slots_of_32_bits
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [[wide_slot_of(blocks, p.page, position / p.ratio)]]
  TO [[slot_of(blocks, p.page, position / p.ratio)]]
  CASE compressed_slot_mapping/blocks_near_2_31/eager
  SAYS "compressed_slots: "
  WHY "slots wrap at 2^31")

plumb_mutant(compressed_slots_of_the_sequence_end
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu DECODE
  FROM [[wide_slot_of(blocks, p.page, position / p.ratio)]]
  TO [[wide_slot_of(blocks, p.page, (p.seq_lens[request] - 1) / p.ratio)]]
  CASE compressed_slot_mapping/c4_seven_drafts/eager
  SAYS "compressed_slots: "
  WHY "the number of a state follows from the length of the sequence, so that two states of a step get one slot")

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
  WHY "the stride of the block table is taken to be its number of columns")

plumb_mutant(partial_states_ape_of_the_slot
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[p.positions[token] % p.ratio]]
  TO [[slot % p.ratio]]
  CASE save_partial_states/c4_main/eager
  SAYS "differs from the projection"
  WHY "the row of ape is that of the slot's phase, not of the position's")

plumb_mutant(partial_states_ape_twice
  OP save_partial_states FILE compressor/save_partial_states.cu DECODE
  FROM [=[biased ? score[i] + ape[i] : score[i]]=]
  TO [=[biased ? score[i] + ape[i] + ape[i] : score[i]]=]
  CASE save_partial_states/c128_main/eager
  SAYS "differs from the projection"
  WHY "ape is added twice")

plumb_mutant(partial_states_ape_of_the_row
  OP save_partial_states FILE compressor/save_partial_states.cu DECODE
  FROM [[p.positions[token] % p.ratio]]
  TO [[token % p.ratio]]
  CASE save_partial_states/c4_main/eager
  SAYS "differs from the projection"
  WHY "the row of ape follows from the token's place in the batch, not from its position")

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
  WHY "tokens without a slot are written to slot 0")

plumb_mutant(partial_states_minus_one_only
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[if (slot < 0) return;]]
  TO [[if (slot == -1) return;]]
  CASE save_partial_states/holes/eager
  SAYS "save_partial_states"
  WHY "negative slots other than -1 are written, in front of the cache")

plumb_mutant(partial_states_blocks_packed
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [[block * state.block_stride_bytes +]]
  TO [[block * state.rows * state.row_stride_bytes +]]
  CASE save_partial_states/padded_blocks/eager
  SAYS "differs from the projection"
  WHY "the block stride is taken to be the size of its rows")

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

plumb_mutant(compressed_rope_at_the_closing_token
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[p.cos_sin + position / p.ratio * p.ratio * kRopeDim]]
  TO [[p.cos_sin + position * kRopeDim]]
  CASE compress_norm_rope_insert/c4_main/eager
  SAYS "cache.rope: "
  WHY "the RoPE angle is that of the group's last position, not its first")

plumb_mutant(compressed_rope_at_the_state_number
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[p.cos_sin + position / p.ratio * p.ratio * kRopeDim]]
  TO [[p.cos_sin + position / p.ratio * kRopeDim]]
  CASE compress_norm_rope_insert/c128_main/eager
  SAYS "cache.rope: "
  WHY "the RoPE angle is that of the state's number, not of a position")

plumb_mutant(compressed_overlap_halves_swapped
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[p.overlap && i >= p.ratio]]
  TO [[p.overlap && i < p.ratio]]
  CASE compress_norm_rope_insert/c4_indexer/eager
  SAYS "cache.codes: "
  WHY "the two groups of a window have each other's half of the channels")

plumb_mutant(compressed_overlap_of_own_halves
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[p.overlap && i >= p.ratio]]
  TO [[p.overlap != 0]]
  CASE compress_norm_rope_insert/c4_main/eager
  SAYS "cache.codes: "
  WHY "both groups of a window have the second half")

plumb_mutant(compressed_first_group_repeats_position_0
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[i = window.first < 0 ? -window.first : 0; i < window.positions; ++i) {
    const std::int64_t position = window.first + i;]]
  TO [[i = 0; i < window.positions; ++i) {
    const std::int64_t position = window.first + i < 0 ? 0 : window.first + i;]]
  CASE compress_norm_rope_insert/first_groups/eager
  SAYS "cache.codes: "
  WHY "positions in front of the sequence are read")

plumb_mutant(compressed_window_of_the_chunk
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu DECODE
  FROM [[p.positions[token] - positions + 1]]
  TO [[p.positions[token] - (token < positions ? token : positions - 1)]]
  CASE compress_norm_rope_insert/c4_chunk/eager
  SAYS "cache."
  WHY "the window of a chunk's first group begins with the chunk")

plumb_mutant(compressed_window_without_its_last_token
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[i < window.positions; ++i]]
  TO [[i < window.positions - 1; ++i]]
  CASE compress_norm_rope_insert/c128_main/eager
  SAYS "cache.codes: "
  WHY "the token that completes a group is not part of its window")

plumb_mutant(compressed_state_of_the_first_request
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu DECODE
  FROM [[p.token_to_req[token] * p.block_table_row_stride]]
  TO [[p.token_to_req[0] * p.block_table_row_stride]]
  CASE compress_norm_rope_insert/c4_three_drafts/eager
  SAYS "cache."
  WHY "every token of a step compresses the window of the first request")

plumb_mutant(compressed_state_by_batch_row
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[p.token_to_req[token] * p.block_table_row_stride]]
  TO [[token % 2 * p.block_table_row_stride]]
  CASE compress_norm_rope_insert/c4_three_drafts/eager
  SAYS "cache."
  WHY "blocks are looked up by the token's number modulo 2 instead of by its request")

plumb_mutant(compressed_ape_twice
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[score += p.ape[]]
  TO [[score += 2 * p.ape[]]
  CASE compress_norm_rope_insert/c4_raw/eager
  SAYS "cache.codes: "
  WHY "ape is added twice")

plumb_mutant(compressed_ape_of_the_first_half
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[window.width + column];
    use]]
  TO [[window.width + d];
    use]]
  CASE compress_norm_rope_insert/c4_raw/eager
  SAYS "cache.codes: "
  WHY "both halves of a window have the first half of ape")

plumb_mutant(compressed_softmax_not_normalised
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[PLUMB_COMPRESSED_ROUND_NORM, sum / weights);]]
  TO [[PLUMB_COMPRESSED_ROUND_NORM, sum);]]
  CASE compress_norm_rope_insert/c4_indexer/eager
  SAYS "cache.codes: "
  WHY "softmax weights of a channel do not add up to 1, which the norm does not hide")

plumb_mutant(compressed_norm_left_out
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[PLUMB_COMPRESSED_ROUND_NORM, states[i] * r *]]
  TO [[PLUMB_COMPRESSED_ROUND_NORM, states[i] *]]
  CASE compress_norm_rope_insert/c4_rows/eager
  SAYS "cache.rows: "
  WHY "states are not normalised")

plumb_mutant(compressed_eps_lost
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[rsqrt_approx(mean + p.eps)]]
  TO [[rsqrt_approx(mean + 0 * p.eps)]]
  CASE compress_norm_rope_insert/small_kv/eager
  SAYS "cache."
  WHY "eps is missing")

plumb_mutant(compressed_norm_rounded_before_the_rotation
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[normed[d] = result(p, PLUMB_COMPRESSED_ROUND_NORM, states[i]]
  TO [[normed[d] = stored_bf16(states[i]]
  CASE compress_norm_rope_insert/c4_main/eager
  SAYS "cache.rope: "
  WHY "channels are also rounded to bf16 before the rotation")

plumb_mutant(compressed_every_token_closes
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[|| (position + 1) % p.ratio != 0) return;]]
  TO [[|| position < 0) return;]]
  CASE compress_norm_rope_insert/c4_three_drafts/eager
  SAYS "a byte that no token owns changed"
  WHY "tokens inside of a group write a state too")

plumb_mutant(compressed_states_of_unsaved_tokens
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[|| p.slot_mapping[token] < 0]]
  TO [[]]
  CASE compress_norm_rope_insert/c4_indexer/eager
  SAYS "a byte that no token owns changed"
  WHY "a token without a slot in the state cache still writes a state")

plumb_mutant(compressed_floor_on_amax
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[if (of_scale && scale < kLeast) scale = kLeast;]]
  TO [[if (of_scale && amax < kLeast) scale = kLeast / kLargestCode;]]
  CASE compress_norm_rope_insert/small_weights_scale_floor/eager
  SAYS "cache.scales: "
  WHY "the floor applies to amax instead of the scale")

plumb_mutant(compressed_floor_on_scale
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[&& p.floor == PLUMB_COMPRESSED_FLOOR_SCALE;]]
  TO [[&& p.cache.page > 0;]]
  CASE compress_norm_rope_insert/small_weights/eager
  SAYS "cache.scales: "
  WHY "the floor applies to the scale instead of amax")

plumb_mutant(compressed_pad_byte_stale
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[thread_index() == groups && p.pad == PLUMB_PAD_ZERO]]
  TO [[thread_index() == groups && p.pad != PLUMB_PAD_ZERO]]
  CASE compress_norm_rope_insert/c4_main/eager
  SAYS "cache.pad: "
  WHY "the byte behind the scales is not written")

plumb_mutant(compressed_indexer_scale_of_offset_0
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[p.cache.page * p.head_dim) + to.offset;]]
  TO [[p.cache.page * p.head_dim) + 0 * to.offset;]]
  CASE compress_norm_rope_insert/c4_indexer/eager
  SAYS "cache.scales: "
  WHY "all scales of a page are written to its first place")

plumb_mutant(compressed_state_blocks_packed
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[block * p.states.block_stride_bytes]]
  TO [[block * p.states.rows * p.states.row_stride_bytes]]
  CASE compress_norm_rope_insert/padded_states/eager
  SAYS "cache."
  WHY "the block stride of the state cache is taken to be the size of its rows")

plumb_mutant(compressed_state_offset_32_bits
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[block * p.states.block_stride_bytes]]
  TO [[static_cast<std::uint32_t>(block * p.states.block_stride_bytes)]]
  CASE compress_norm_rope_insert/far_states/eager
  SAYS "cache."
  WHY "the offset of a block of partial states wraps at 2^32 bytes")

plumb_mutant(compressed_page_offset_32_bits
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[slot / p.cache.page * p.cache.block_stride_bytes]]
  TO [[static_cast<std::uint32_t>(slot / p.cache.page * p.cache.block_stride_bytes)]]
  CASE compress_norm_rope_insert/far_pages/eager
  SAYS "cache."
  WHY "the offset of a page wraps at 2^32 bytes")

plumb_mutant(compressed_mean_not_rounded
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[return result(p, PLUMB_COMPRESSED_ROUND_NORM, sum / weights);]]
  TO [[return sum / weights;]]
  CASE compress_norm_rope_insert/c4_rows_norm/eager
  SAYS "cache.rows: "
  WHY "the norm takes the mean over the window before its rounding to bf16")

plumb_mutant(compressed_weights_not_rounded
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[stored_bf16(stored_bf16(weight_of(score, largest) / weights) * kv)]]
  TO [[stored_bf16(weight_of(score, largest) / weights * kv)]]
  CASE compress_norm_rope_insert/c4_rows_every/eager
  SAYS "cache.rows: "
  WHY "weights of the softmax keep fp32 where the contract rounds them to bf16")

plumb_mutant(compressed_products_not_rounded
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[sum += stored_bf16(stored_bf16(weight_of(score, largest) / weights) * kv)]]
  TO [[sum += stored_bf16(weight_of(score, largest) / weights) * kv]]
  CASE compress_norm_rope_insert/c4_rows_every/eager
  SAYS "cache.rows: "
  WHY "products of weights and kv keep fp32 where the contract rounds them to bf16")

plumb_mutant(compressed_scores_not_rounded
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[use(result(p, PLUMB_COMPRESSED_ROUND_EVERY, score),]]
  TO [[use(score,]]
  CASE compress_norm_rope_insert/c4_rows_every/eager
  SAYS "cache.rows: "
  WHY "scores with ape keep fp32 where the contract rounds them to bf16")

plumb_mutant(compressed_scale_of_three_bytes
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[encode_ue8m0(scales[0]) * 0x01010101U]]
  TO [[encode_ue8m0(scales[0]) * 0x00010101U]]
  CASE compress_norm_rope_insert/c4_indexer_bytes/eager
  SAYS "cache.scales: "
  WHY "the fourth byte of a scale is not written")

plumb_mutant(compressed_mxfp4_halves_swapped
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[code(2 * i) | code(2 * i + 1) << 4]]
  TO [[code(2 * i + 1) | code(2 * i) << 4]]
  CASE compress_norm_rope_insert/c4_indexer_mxfp4/eager
  SAYS "cache.codes: "
  WHY "the odd channel is in the low half of a byte")

plumb_mutant(compressed_mxfp4_scale_of_the_first_group
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[(1 / scales[d / kMxGroup])]]
  TO [[(1 / scales[d / kMostDim])]]
  CASE compress_norm_rope_insert/c4_indexer_mxfp4/eager
  SAYS "cache.codes: "
  WHY "all channels are divided by the scale of the first group")

plumb_mutant(compressed_mxfp4_scales_by_group
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[p.cache.page * bytes + to.offset * groups + thread_index()]]
  TO [[p.cache.page * bytes + thread_index() * p.cache.page + to.offset]]
  CASE compress_norm_rope_insert/c4_mxfp4_pages_of_7/eager
  SAYS "cache."
  WHY "scales of a page lie group by group instead of state by state")

plumb_mutant(compressed_mxfp4_scale_of_4
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[/ kLargestE2m1;]]
  TO [[/ 4.0F;]]
  CASE compress_norm_rope_insert/c4_indexer_mxfp4/eager
  SAYS "cache.scales: "
  WHY "scales are amax / 4 instead of amax / 6")

plumb_mutant(compressed_row_scale_not_inverted
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[const float inverse = 1 / *p.cache_scale;]]
  TO [[const float inverse = *p.cache_scale;]]
  CASE compress_norm_rope_insert/c4_rows_fp8/eager
  SAYS "cache.codes: "
  WHY "fp8 rows are multiplied by the scale of the cache instead of its reciprocal")

plumb_mutant(compressed_hadamard_left_out
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[of_indexer && p.hadamard != PLUMB_HADAMARD_NONE]]
  TO [[of_indexer && p.tokens < 0]]
  CASE compress_norm_rope_insert/c4_indexer_sglang/eager
  SAYS "cache."
  WHY "states are not transformed")

plumb_mutant(compressed_hadamard_without_its_factor
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[return sum * rsqrt_approx(static_cast<float>(dim));]]
  TO [[return sum;]]
  CASE compress_norm_rope_insert/c4_indexer_sglang/eager
  SAYS "cache."
  WHY "the transform is not divided by the root of the number of channels")

plumb_mutant(compressed_hadamard_of_unrounded
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[normed[d] = stored_bf16(turned[d]);]]
  TO [[normed[d] = turned[d];]]
  CASE compress_norm_rope_insert/c4_indexer_sglang/eager
  SAYS "cache."
  WHY "states are not rounded to bf16 before the transform")

plumb_mutant(compressed_scale_always_a_power
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [[return as_it_is ? scale : decode_ue8m0(encode_ue8m0(scale));]]
  TO [[return decode_ue8m0(encode_ue8m0(scale));]]
  CASE compress_norm_rope_insert/c4_indexer_fp32_scales/eager
  SAYS "cache.scales: "
  WHY "scales are rounded up to powers of two where the contract keeps them")
