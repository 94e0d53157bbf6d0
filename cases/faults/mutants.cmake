# SPDX-License-Identifier: Apache-2.0
#
# The mutants (cases/faults/CMakeLists.txt says what the words mean). Text stands between brackets.

plumb_mutant(mtp_position_mask_missing
  OP mtp_input_rms_norm FILE mtp_input_rms_norm.cu
  FROM [[const bool keep = p.positions[token] != 0;]]
  TO [[const bool keep = true;]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS "out_embeds: "
  WHY "the embedding of position 0 reaches its norm")

plumb_mutant(mtp_position_mask_on_hidden
  OP mtp_input_rms_norm FILE mtp_input_rms_norm.cu
  FROM [[true, false, wave_partials);]]
  TO [[p.positions[token] != 0, false, wave_partials);]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS "out_hidden: "
  WHY "the mask of position 0 is applied to the hidden states too")

plumb_mutant(rms_norm_divides_by_block
  OP rms_norm FILE row_norm.h
  FROM [[static_cast<float>(hidden)]]
  TO [[static_cast<float>(kRowNormBlock)]]
  CASE rms_norm/hidden_257/eager
  SAYS "out: "
  WHY "the mean is taken over the block instead of the width")

plumb_mutant(rms_norm_truncates
  OP rms_norm FILE bf16.h
  FROM [[bits + 0x7fffu + ((bits >> 16) & 1u)]]
  TO [[bits]]
  CASE rms_norm/v4_flash_hidden/eager
  SAYS "out: "
  WHY "the output is truncated to bf16 instead of rounded")

plumb_mutant(rms_norm_row_stride_ignored
  OP rms_norm FILE rms_norm.cu
  FROM [[p.x + row * p.x_row_stride]]
  TO [[p.x + row * p.hidden]]
  CASE rms_norm/kv_latent_slice/eager
  SAYS "rows 1-8 of 9"
  WHY "strided rows are read as if they were contiguous")

plumb_mutant(top_k_global_indices
  OP top_k_per_row_prefill FILE top_k_per_row_prefill.cu
  FROM [[  select_top_k(window, p.k, p.indices + row * p.k, shared);]]
  TO [[  select_top_k(window, p.k, p.indices + row * p.k, shared);
  block_sync();
  for (int i = thread_index(); i < p.k; i += block_size()) {
    std::int32_t& index = p.indices[row * p.k + i];
    if (index >= 0) index += static_cast<std::int32_t>(start);
  }]]
  CASE top_k_per_row_prefill/ragged_two_requests/eager
  SAYS "global columns where the caller needs row-local ones"
  WHY "indices count the columns of logits instead of those of the row's window (vLLM #42810)")

plumb_mutant(top_k_pads_with_zero
  OP top_k_per_row_decode FILE top_k_select.h
  FROM [[kTopKNoIndex = -1;]]
  TO [[kTopKNoIndex = 0;]]
  CASE top_k_per_row_decode/all_short/eager
  SAYS "indices: "
  WHY "the tail behind the last index holds 0 instead of -1")

plumb_mutant(top_k_only_right_for_2048
  OP top_k_per_row_prefill FILE top_k_select.h
  FROM [[if (window.length <= k) {]]
  TO [[if (window.length > k && window.length <= 2048) {
    for (int i = thread_index(); i < k; i += block_size()) indices[i] = i;
    return;
  }
  if (window.length <= k) {]]
  CASE top_k_per_row_prefill/ragged_two_requests/eager
  SAYS "indices: "
  WHY "the identity limit is 2048 whatever K is")

plumb_mutant(top_k_candidates_overflow
  OP top_k_per_row_prefill FILE top_k_select.h
  FROM [[is_tie && own_ties < threshold.wanted)]]
  TO [[is_tie && own_ties < threshold.wanted && own_ties < 512)]]
  CASE top_k_per_row_prefill/ties_at_the_threshold/eager
  SAYS "indices: rows 1 of 2 wrong"
  WHY "candidates beyond a fixed buffer are dropped")

plumb_mutant(top_k_negative_length
  OP top_k_per_row_decode FILE top_k_per_row_decode.cu
  FROM [[end > 0 ? end : 0;]]
  TO [[end;]]
  CASE top_k_per_row_decode/shorter_than_next_n/eager
  SAYS "indices"
  WHY "a sequence shorter than next_n gives a negative length")

plumb_mutant(mhc_mean_square_over_hidden
  OP mhc_pre FILE mhc_pre.cu
  FROM [[static_cast<float>(kStreams * p.hidden)]]
  TO [[static_cast<float>(p.hidden)]]
  CASE mhc_pre/rows_17/eager
  SAYS "rows 0-16 of 17"
  WHY "the mean square is taken over H instead of 4 H")

plumb_mutant(mhc_row_sum_unguarded
  OP mhc_pre FILE mhc_pre.cu
  FROM [[if (lane_index() < kRowsPerWave && tile_row < rows_in_tile) {]]
  TO [[if (tile_row < rows_in_tile) {]]
  CASE mhc_pre/rows_64/eager
  SAYS "partial_square_sums"
  WHY "every lane stores a row sum, so waves overwrite the rows of later waves (aiter #3033)")

plumb_mutant(mhc_comb_transposed
  OP mhc_post FILE mhc_post.cu
  FROM [=[comb[kStreams * m + n] * residual[m]]=]
  TO [=[comb[kStreams * n + m] * residual[m]]=]
  CASE mhc_post/flash_two_tokens/eager
  SAYS "out: "
  WHY "the residual is mixed by the transposed matrix")

plumb_mutant(hc_head_without_eps
  OP hc_head FILE hc_head.cu
  FROM [[sigmoid(mix * p.scale[0] + p.base[j]) + p.hc_eps;]]
  TO [[sigmoid(mix * p.scale[0] + p.base[j]);]]
  CASE hc_head/closed_gates/eager
  SAYS "out: "
  WHY "hc_eps is lost (vLLM #42604)")

plumb_mutant(mla_sink_per_split
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[const float sink = split ? 0.0F : sink_weight(call, head, softmax.largest);]]
  TO [[const float sink = sink_weight(call, head, softmax.largest);]]
  CASE sparse_mla_decode/more_parts_than_blocks/eager
  SAYS "partial_out: "
  WHY "the sink enters every split, and once more in the combination")

plumb_mutant(mla_extra_in_main_dialect
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[found.dialect = found.cache->dialect;]]
  TO [[found.dialect = params.main_cache.dialect;]]
  CASE sparse_mla_decode/fnuz_main_fn_extra/eager
  SAYS "out: "
  WHY "one FP8 flag for two caches (vLLM #42893)")

plumb_mutant(mla_block_offset_in_32_bits
  OP sparse_mla_decode FILE mla_cache.h
  FROM [[cache.data + block * cache.block_stride_bytes;]]
  TO [[cache.data + static_cast<std::uint32_t>(block * cache.block_stride_bytes);]]
  CASE sparse_mla_decode/far_blocks/eager
  SAYS "out: "
  WHY "block * stride wraps at 2^32 bytes (aiter #4774)")

plumb_mutant(mla_minus_one_read_as_slot_0
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[if (slot < 0) return zero_group(to);]]
  TO [[if (slot < 0) return load_group(locate(*block.cache, 0), group, block.dialect, to);]]
  CASE sparse_mla_decode/holes/eager
  SAYS "out: "
  WHY "-1 is clamped to slot 0 and only its score is masked: 0 * NaN (hazard A3)")
