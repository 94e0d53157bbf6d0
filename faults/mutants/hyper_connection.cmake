# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(mhc_pre_mixes_not_rounded
  OP mhc_pre FILE hyper_connection/mhc_pre.cu
  FROM [[mixing.bf16_mixes = p.mixes == PLUMB_MIXES_BF16;]]
  TO [[mixing.bf16_mixes = false;]]
  CASE mhc_pre/bf16_mixes/eager
  SAYS "post"
  WHY "the products with fn stay in fp32 where the kernel declares bf16")

plumb_mutant(mhc_pre_mixes_always_rounded
  OP mhc_pre FILE hyper_connection/mhc_pre.cu
  FROM [[mixing.bf16_mixes = p.mixes == PLUMB_MIXES_BF16;]]
  TO [[mixing.bf16_mixes = true;]]
  CASE mhc_pre/hidden_768/eager
  SAYS "post"
  WHY "the products with fn are rounded to bf16 where the kernel declares fp32")

plumb_mutant(mhc_mean_square_over_hidden
  OP mhc_pre FILE hyper_connection/mhc_mixing.h
  FROM [[static_cast<float>(p.depth)]]
  TO [[static_cast<float>(p.hidden)]]
  CASE mhc_pre/rows_17/eager
  SAYS "17 of 17 rows (rows 0-16)"
  WHY "the mean square is taken over H instead of 4 H")

plumb_mutant(mhc_row_sum_unguarded
  OP mhc_pre FILE hyper_connection/mhc_mixing.h
  FROM [[if (lane_index() < kRowsPerWave && tile_row < rows_in_tile) {]]
  TO [[if (tile_row < rows_in_tile) {]]
  CASE mhc_pre/rows_64/eager
  SAYS "partial_square_sums: 44 elements beyond their bound in "
  WHY "every lane stores a row sum, so waves overwrite the rows of later waves (aiter #3033)")

plumb_mutant(mhc_comb_transposed
  OP mhc_post FILE hyper_connection/hyper_connection.h
  FROM [=[comb[kStreams * m + n] *]=]
  TO [=[comb[kStreams * n + m] *]=]
  CASE mhc_post/flash_two_tokens/eager
  SAYS "in 8 of 8 rows (rows 0-7)"
  WHY "the residual is mixed by the transposed matrix")

plumb_mutant(hc_head_without_eps
  OP hc_head FILE hyper_connection/hc_head.cu
  FROM [[sigmoid(mix * p.scale[0] + p.base[j]) + p.hc_eps;]]
  TO [[sigmoid(mix * p.scale[0] + p.base[j]);]]
  CASE hc_head/closed_gates/eager
  SAYS "in 24 of 24 rows (rows 0-23)"
  WHY "hc_eps is missing (vLLM #42604)")

plumb_mutant(mhc_fused_always_rounds
  OP mhc_fused_post_pre FILE hyper_connection/mhc_fused_post_pre.cu
  FROM [[return x;]]
  TO [[return load_bf16(store_bf16(x));]]
  CASE mhc_fused_post_pre/rows_16/eager
  SAYS "in 64 of 64 rows (rows 0-63)"
  WHY "sums of 16 tokens use rounded streams: all rows of all 4 splits are wrong")

plumb_mutant(mhc_fused_switches_late
  OP mhc_fused_post_pre FILE hyper_connection/mhc_fused_post_pre.cu
  FROM [[p.tokens <= p.unrounded_rows]]
  TO [[p.tokens <= p.unrounded_rows + 1]]
  CASE mhc_fused_post_pre/rows_17/eager
  SAYS "in 17 of 17 rows (rows 0-16)"
  WHY "sums of 17 tokens use unrounded streams")

plumb_mutant(mhc_fused_multiplies_unrounded_streams
  OP mhc_fused_post_pre FILE hyper_connection/mhc_mixing.h
  FROM [[p.bf16_split ? load_bf16(store_bf16(x)) : x]]
  TO [[x]]
  CASE mhc_fused_post_pre/bf16_split_16/eager
  SAYS "partial_mixes: "
  WHY "products use streams in fp32, where bf16 is declared")

plumb_mutant(mhc_fused_drops_low_weights
  OP mhc_fused_post_pre FILE hyper_connection/mhc_mixing.h
  FROM [[return high + load_bf16(store_bf16(weight - high));]]
  TO [[return high;]]
  CASE mhc_fused_post_pre/bf16_split_17/eager
  SAYS "partial_mixes: "
  WHY "products use only the first of the two bf16 numbers of each weight")

plumb_mutant(mhc_fused_reads_old_streams
  OP mhc_fused_post_pre FILE hyper_connection/mhc_fused_post_pre.cu
  FROM [[mixing.streams = p.residual_out;]]
  TO [[mixing.streams = p.residual;]]
  CASE mhc_fused_post_pre/rows_16/full_graph
  SAYS "in 16 of 16 rows (rows 0-15)"
  WHY "layer_input is the gated sum of the streams before mhc_post")

plumb_mutant(mhc_fused_comb_transposed
  OP mhc_fused_post_pre FILE hyper_connection/hyper_connection.h DECODE
  FROM [=[comb[kStreams * m + n] *]=]
  TO [=[comb[kStreams * n + m] *]=]
  CASE mhc_fused_post_pre/rows_17/composition
  SAYS "residual_out: differs from mhc_post, mhc_pre in 68 of 68 rows (rows 0-67)"
  WHY "the streams are mixed by the transposed matrix; the plain mhc_post is right")

plumb_mutant(mhc_broadcast_mean_over_all_streams
  OP mhc_pre_broadcast FILE hyper_connection/mhc_mixing.h
  FROM [[static_cast<float>(p.depth)]]
  TO [[static_cast<float>(kStreams * p.hidden)]]
  CASE mhc_pre_broadcast/rows_17/eager
  SAYS "in 17 of 17 rows (rows 0-16)"
  WHY "the sum over H is divided by 4 H")

plumb_mutant(mhc_broadcast_slot_major
  OP mhc_pre_broadcast FILE hyper_connection/mhc_pre_broadcast.cu
  FROM [[token * out.token_stride + n * out.slot_stride]]
  TO [[(n * p.tokens + token) * p.hidden]]
  CASE mhc_pre_broadcast/rows_17/full_graph
  SAYS "residual_out: differs from the residual in 64 of 68 rows (rows 1-21, 23-44, 46-66)"
  WHY "the streams are written as [4, tokens, hidden]")

plumb_mutant(hc_head_mean_square_over_hidden
  OP hc_head FILE hyper_connection/hc_head.cu DECODE
  FROM [[static_cast<float>(kStreams * p.hidden)]]
  TO [[static_cast<float>(p.hidden)]]
  CASE hc_head/rows_65/eager
  SAYS "in 65 of 65 rows (rows 0-64)"
  WHY "the mean square is taken over H instead of 4 H")

plumb_mutant(mhc_post_row_offset_of_one_stream
  OP mhc_post FILE hyper_connection/hyper_connection.h
  FROM [[p.out + token * p.out_token_stride + n * p.out_slot_stride + h]]
  TO [[p.out + token * p.out_token_stride + (n ^ 1) * p.out_slot_stride + h]]
  CASE mhc_post/flash_two_tokens/eager
  SAYS "in 8 of 8 rows (rows 0-7)"
  WHY "streams 0 and 1, and streams 2 and 3, are stored in each other's places")

plumb_mutant(mhc_broadcast_row_sum_unguarded
  OP mhc_pre_broadcast FILE hyper_connection/mhc_mixing.h DECODE SIMULATED
  FROM [[if (lane_index() < kRowsPerWave && tile_row < rows_in_tile) {]]
  TO [[if (tile_row < rows_in_tile) {]]
  CASE mhc_pre_broadcast/rows_17/eager
  SAYS "in 1 of 17 rows (row 16)"
  WHY "every lane stores a row sum, so waves overwrite the rows of later waves (aiter #3033)")

plumb_mutant(mhc_norm_of_kept_columns_only
  OP mhc_pre FILE hyper_connection/mhc_mixing.h
  FROM [[store(h, normalized_input(p, load_bf16x8(out + h, p.hidden - h, whole), r, h, whole));]]
  TO [[]]
  CASE mhc_pre/hidden_9001/eager
  SAYS "only columns from 8192 on are wrong"
  WHY "columns beyond those that threads keep in registers are stored without their norm")

plumb_mutant(hc_head_gate_from_exp_of_the_logit
  OP hc_head FILE hyper_connection/hyper_connection.h
  FROM [[return 1.0F / (1.0F + exp2_approx(-z * kLog2E));]]
  TO [[const float e = exp2_approx(z * kLog2E);
  return e / (1.0F + e);]]
  CASE hc_head/saturated_gates/eager
  SAYS "12 of 12 rows (rows 0-11)"
  WHY "exp of a large logit overflows, and the gate is infinity / infinity")
