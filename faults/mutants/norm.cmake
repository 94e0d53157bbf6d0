# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(mtp_position_mask_missing
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu DECODE
  FROM [[const bool keep = !is_embedding || p.positions[token] != 0;]]
  TO [[const bool keep = true;]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS " rows (rows 1, 11, 14-15, 22, 24, 26, "
  WHY "the embedding of position 0 is not masked before its norm")

plumb_mutant(mtp_position_mask_on_hidden
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu DECODE
  FROM [[!is_embedding || p.positions[token] != 0]]
  TO [[p.positions[token] != 0]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS " rows (rows 4-7, 44-47, 56-63, 88-91, 96-99, 104-107, "
  WHY "the mask of position 0 is applied to the hidden states too")

plumb_mutant(rms_norm_divides_by_block
  OP rms_norm FILE norm/row_norm.h
  FROM [[static_cast<float>(hidden)]]
  TO [[static_cast<float>(kMostRowThreads)]]
  CASE rms_norm/hidden_257/eager
  SAYS "in 9 of 9 rows (rows 0-8)"
  WHY "the sum of squares is divided by the block size instead of the width")

plumb_mutant(rms_norm_row_in_16_bits
  OP rms_norm FILE norm/row_norm.h
  FROM [[return {row, lane_index(), wave_size(), row < rows};]]
  TO [[return {row & 0xffff, lane_index(), wave_size(), row < rows};]]
  CASE rms_norm/tokens_65540/eager
  SAYS "4 of 65540 rows (rows 65536-65539)"
  WHY "the row wraps at 65536")

plumb_mutant(rms_norm_truncates
  OP rms_norm FILE bf16.h
  FROM [[bits + 0x7fffu + ((bits >> 16) & 1u)]]
  TO [[bits]]
  CASE rms_norm/v4_flash_hidden/eager
  SAYS "in 5 of 5 rows (rows 0-4)" SIMULATED  # devices have an instruction for it
  WHY "the output is truncated to bf16 instead of rounded")

plumb_mutant(rms_norm_neighbours_swapped
  OP rms_norm FILE bf16.h
  FROM [=[std::uint32_t{from[i]} << (i % 2 * 16)]=]
  TO [=[std::uint32_t{from[i]} << (16 - i % 2 * 16)]=]
  CASE rms_norm/rows_at_odd_addresses/eager
  SAYS "5 of 5 rows (rows 0-4)"
  WHY "in rows that are not made of whole vectors, the two numbers of a pair are swapped")

plumb_mutant(rms_norm_tail_of_a_long_row_dropped
  OP rms_norm FILE norm/row_norm.h
  FROM [[  for (std::int64_t c = first + kRowVectors * stride; c < hidden; c += stride) {
    finish(]]
  TO [[  for (std::int64_t c = first + kRowVectors * stride; c < 0; c += stride) {
    finish(]]
  CASE rms_norm/hidden_20488/eager
  SAYS "2 of 2 rows (rows 0-1)"
  WHY "columns that do not fit into registers are not stored")

plumb_mutant(rms_norm_row_stride_ignored
  OP rms_norm FILE norm/rms_norm.cu
  FROM [[p.x + team.row * p.x_row_stride]]
  TO [[p.x + team.row * p.hidden]]
  CASE rms_norm/kv_latent_slice/eager
  SAYS "8 of 9 rows (rows 1-8)"
  WHY "strided rows are read as if they were contiguous")

plumb_mutant(fused_add_norms_unrounded_sum
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [[p.sum == PLUMB_SUM_FP32 ? launch_sum<Fp32Sum>(p) : launch_sum<RoundedSum>(p)]]
  TO [[launch_sum<Fp32Sum>(p)]]
  CASE fused_add_rms_norm/v4_pro_hidden/eager
  SAYS "in 4 of 4 rows (rows 0-3)"
  WHY "the norm uses x + residual before it is rounded to bf16")

plumb_mutant(fused_add_squares_rows_unrounded
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [[launch_sum<Fp32Squares>(p)]]
  TO [[launch_sum<Fp32Sum>(p)]]
  CASE fused_add_rms_norm/fp32_squares/eager
  SAYS " rows (row"
  WHY "the normalised row is that of the fp32 sum, where that of the stored sum is declared")

plumb_mutant(fused_add_squares_of_stored
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [[launch_sum<Fp32Squares>(p)]]
  TO [[launch_sum<RoundedSum>(p)]]
  CASE fused_add_rms_norm/fp32_squares_narrow/eager
  SAYS " rows (row"
  WHY "squares are those of the stored sum, where those of the fp32 sum are declared")

plumb_mutant(fused_add_residual_kept
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [[store_bf16x8(residual + column, bits, count, whole);]]
  TO [[]]
  CASE fused_add_rms_norm/v4_pro_hidden/full_graph
  SAYS "in 4 of 4 rows (rows 0-3)"
  WHY "the sum x + residual is normalised, but not stored")

plumb_mutant(fused_add_row_stride_ignored
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [[p.x + team.row * p.x_row_stride]]
  TO [[p.x + team.row * p.hidden]]
  CASE fused_add_rms_norm/x_in_wider_rows/eager
  SAYS "8 of 9 rows (rows 1-8)"
  WHY "rows of x are updated as if they were contiguous")

plumb_mutant(fused_add_rounds_twice
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [[p.rounding == PLUMB_ROUND_TWICE]]
  TO [[true]]
  CASE fused_add_rms_norm/v4_flash_hidden/eager
  SAYS "x: "
  WHY "the normalised row is rounded before the weight too, where one rounding is declared")

plumb_mutant(fused_add_mean_square_in_bf16
  OP fused_add_rms_norm FILE norm/row_norm.h
  FROM [[rsqrt_approx(mean + norm.eps)]]
  TO [[rsqrt_approx(load_bf16(store_bf16(mean + norm.eps)))]]
  CASE fused_add_rms_norm/v4_pro_hidden/composition
  SAYS "x: "
  WHY "the mean square is rounded to bf16")

plumb_mutant(q_kv_one_width_for_both
  OP q_kv_rms_norm FILE norm/q_kv_rms_norm.cu
  FROM [[p.out_kv + t * p.out_kv_row_stride]]
  TO [[p.out_kv + t * p.out_q_row_stride]]
  CASE q_kv_rms_norm/v4_flash/eager
  SAYS "in 4 of 5 rows (rows 1-4)"
  WHY "the stride of the kv output is taken to be that of q")

plumb_mutant(q_kv_strides_ignored
  OP q_kv_rms_norm FILE norm/q_kv_rms_norm.cu
  FROM [[p.kv + t * p.kv_row_stride]]
  TO [[p.kv + t * p.kv_hidden]]
  CASE q_kv_rms_norm/v3_slices/composition
  SAYS "out_kv: differs from rms_norm, rms_norm in 5 of 6 rows (rows 1-5)"
  WHY "strided rows of kv are read as if they were contiguous")

plumb_mutant(q_kv_weight_of_q
  OP q_kv_rms_norm FILE norm/q_kv_rms_norm.cu
  FROM [[is_q ? p.q_weight : p.kv_weight]]
  TO [[p.q_weight]]
  CASE q_kv_rms_norm/v3_slices/full_graph
  SAYS "in 6 of 6 rows (rows 0-5)"
  WHY "both norms take the weight of q")

plumb_mutant(q_head_rotated_backwards
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [[y = rotate(]]
  TO [[y = rotate_back(]]
  CASE q_head_rms_norm_rope/ascending_positions/eager
  SAYS "in 12 of 14 rows (rows 2-13)"
  WHY "RoPE turns the other way, so that only position 0 is right")

plumb_mutant(q_head_rotates_first_dims
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [[if (column >= kNopeDim) rotate_pairs(x, p.cos_sin, p.positions[token], pair);]]
  TO [[if (column < kRopeDim) rotate_pairs(x, p.cos_sin, p.positions[token], column / 2);]]
  CASE q_head_rms_norm_rope/ascending_positions/full_graph
  SAYS "in 12 of 14 rows (rows 2-13)"
  WHY "RoPE turns the first 64 dims instead of the last 64")

plumb_mutant(q_head_position_of_row
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [=[p.positions[token]]=]
  TO [=[p.positions[(token * p.heads + head) % p.tokens]]=]
  CASE q_head_rms_norm_rope/ascending_positions/eager
  SAYS "in 12 of 14 rows (rows 1-12)"
  WHY "positions are read by row, (token, head), instead of by token")

plumb_mutant(q_head_interleaved_cache
  OP q_head_rms_norm_rope FILE norm/rope.h
  FROM [=[{row[pair], row[kRopePairs + pair]}]=]
  TO [=[{row[2 * pair], row[2 * pair + 1]}]=]
  CASE q_head_rms_norm_rope/ascending_positions/eager
  SAYS "in 14 of 14 rows (rows 0-13)"
  WHY "cos_sin is read as cos, sin, cos, sin instead of all cosines, then all sines")

plumb_mutant(q_head_mean_without_rope_dims
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [[static_cast<float>(kHeadDim)]]
  TO [[static_cast<float>(kNopeDim)]]
  CASE q_head_rms_norm_rope/v4_pro_tp8/eager
  SAYS "in 32 of 32 rows (rows 0-31)"
  WHY "the mean square is taken over 448 dims, without those of RoPE")

plumb_mutant(q_head_rounds_twice
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [[if (p.rounding != PLUMB_ROUND_ONCE)]]
  TO [[if (true)]]
  CASE q_head_rms_norm_rope/v4_pro_tp8/eager
  SAYS "out: "
  WHY "the norm is rounded to bf16 before RoPE, where one rounding is declared")

plumb_mutant(inverse_rope_copies_rotated_dims
  OP inverse_rope FILE norm/inverse_rope.cu
  FROM [[if (to == from) return;]]
  TO [[return;]]
  CASE inverse_rope/v4_pro_tp8_copy/eager
  SAYS "out (not rotated)"
  WHY "the dims that are not rotated are not copied")

plumb_mutant(inverse_rope_copies_through_floats
  OP inverse_rope FILE norm/inverse_rope.cu
  FROM [[    to[head * p.out_head_stride + dim] = from[head * kHeadDim + dim];]]
  TO [[    to[head * p.out_head_stride + dim] = store_bf16(load_bf16(from[head * kHeadDim + dim]));]]
  CASE inverse_rope/v4_pro_tp8_copy/full_graph
  SAYS "out (not rotated)"
  WHY "the dims that are not rotated are converted to fp32 and back, so a NaN of padding gets other bits")

plumb_mutant(inverse_rope_forward
  OP inverse_rope FILE norm/inverse_rope.cu
  FROM [[rotate_back({]]
  TO [[rotate({]]
  CASE inverse_rope/ascending_positions/eager
  SAYS "in 12 of 14 rows (rows 2-13)"
  WHY "the output is rotated once more instead of back")

plumb_mutant(inverse_rope_on_first_dims
  OP inverse_rope FILE norm/inverse_rope.cu
  FROM [[dim = kNopeDim + 2 * pair]]
  TO [[dim = 2 * pair]]
  CASE inverse_rope/ascending_positions/eager
  SAYS "x (not rotated): changed in 12 of 14 rows (rows 2-13)"
  WHY "the first 64 dims are rotated instead of the last 64")

plumb_mutant(inverse_rope_half_split_pairs
  OP inverse_rope FILE norm/inverse_rope.cu
  FROM [=[const int dim = kNopeDim + 2 * pair;
    const std::uint16_t* x = from + head * kHeadDim + dim;
    std::uint16_t* y = to + head * p.out_head_stride + dim;
    const Pair back = rotate_back({load_bf16(x[0]), load_bf16(x[1])}, turn);
    y[0] = store_bf16(back.even);
    y[1] = store_bf16(back.odd);]=]
  TO [=[const int dim = kNopeDim + pair;
    const std::uint16_t* x = from + head * kHeadDim + dim;
    std::uint16_t* y = to + head * p.out_head_stride + dim;
    const Pair back = rotate_back({load_bf16(x[0]), load_bf16(x[kRopePairs])}, turn);
    y[0] = store_bf16(back.even);
    y[kRopePairs] = store_bf16(back.odd);]=]
  CASE inverse_rope/ascending_positions/full_graph
  SAYS "in 12 of 14 rows (rows 2-13)"
  WHY "RoPE pairs dims i and i + 32, as NeoX does, instead of neighbours")

plumb_mutant(shared_head_without_weight
  OP mtp_shared_head_rms_norm FILE norm/mtp_shared_head_rms_norm.cu
  FROM [[norm{p.weight,]]
  TO [[norm{nullptr,]]
  CASE mtp_shared_head_rms_norm/v4_flash_hidden/eager
  SAYS "in 5 of 5 rows (rows 0-4)"
  WHY "the weight of the shared head's norm is not applied")

plumb_mutant(shared_head_without_eps
  OP mtp_shared_head_rms_norm FILE norm/mtp_shared_head_rms_norm.cu
  FROM [[p.hidden, p.eps,]]
  TO [[p.hidden, 0.0F,]]
  CASE mtp_shared_head_rms_norm/tokens_257/eager
  SAYS " rows (rows 5, 7, 12, 15, 27, 37, "
  WHY "eps is missing, which matters in rows of small norm")

plumb_mutant(rms_norm_wrong_from_row_1000
  OP rms_norm FILE norm/rms_norm.cu
  FROM [[p.weight, p.hidden, p.eps,]]
  TO [[p.weight, p.hidden - (team.row < 1000 ? 0 : 1), p.eps,]]
  CASE rms_norm/tokens_1025/eager
  SAYS "25 of 1025 rows (rows 1000-1024)"
  WHY "rows from 1000 on lose their last column (vLLM #42810)")

plumb_mutant(mtp_divides_by_padded_block
  OP mtp_input_rms_norm FILE norm/row_norm.h DECODE
  FROM [[static_cast<float>(hidden)]]
  TO [=[[](std::int64_t columns) {
    std::int64_t block = 1;
    while (block < columns) block *= 2;
    return static_cast<float>(block);
  }(hidden)]=]
  CASE mtp_input_rms_norm/hidden_257/eager
  SAYS "elements beyond their bound in 36 of 36 rows (rows 0-35)"
  WHY "the sum of squares is divided by the width rounded up to a power of two (vLLM #43746)")

plumb_mutant(mtp_slot_of_another_stream
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu DECODE
  FROM [[(is_embedding ? p.embeds : p.previous_hidden) + first,]]
  TO [[(is_embedding ? p.embeds : p.previous_hidden - (slot > 0 ? p.hidden : 0)) + first,]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS "each wrong row: row r holds the values of row r - 1"
  WHY "hidden slot s is read where slot s - 1 lies (vLLM #43746)")

plumb_mutant(mtp_row_offset_too_narrow
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu DECODE
  FROM [[: token * p.hc_mult + slot) * p.hidden;]]
  TO [[: token * p.hc_mult + slot) * p.hidden & 1023;]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS "all rows from 8 on are wrong, none before"
  WHY "row offsets wrap at 2^10 elements, in real kernels at 2^32 (vLLM #43746)")
