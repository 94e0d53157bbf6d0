# SPDX-License-Identifier: Apache-2.0
#
# Defects planted by a reader of all kernels and of the list of missed defects, who knew neither the
# rows of cases nor the detectors. One per op, most of them wrong in one situation only.
plumb_unseen(all_add_norm_fp32_squares_needs_contiguous
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [==[  if (p.sum == PLUMB_SUM_FP32_SQUARES) return launch_sum<Fp32Squares>(p);]==]
  TO [==[  if (p.sum == PLUMB_SUM_FP32_SQUARES && p.x_row_stride == p.hidden) {
    return launch_sum<Fp32Squares>(p);
  }]==]
  CLASS [==[dispatch: strided fallback lacks a mode]==]
  WHY [==[With sum=fp32_squares and strided rows of x the kernel falls back to the squares of the bf16-rounded sum, which is sum=bf16.]==])
plumb_unseen(all_combine_state_bound_off_by_one
  OP combine_topk_swa_indices FILE index_maps/combine_topk_swa_indices.cu
  FROM [==[state >= p.compressed_rows && p.bounds]==]
  TO [==[state > p.compressed_rows && p.bounds]==]
  CLASS [==[off by one in a bound]==]
  WHY [==[With bounds=checked an entry equal to N is not replaced by -1 and names the first row of the window's part of the workspace.]==])
plumb_unseen(all_combine_sums_one_split_per_lane
  OP sparse_mla_decode FILE sparse_mla/mla_combine.h
  FROM [==[  for (int i = lane_index(); i < splits; i += wave_size()) {
    sum += exp2_approx(lse[i * stride] - largest);
  }]==]
  TO [==[  if (lane_index() < splits) sum = exp2_approx(lse[lane_index() * stride] - largest);]==]
  CLASS [==[more items than lanes]==]
  WHY [==[The combined LSE adds at most one split per lane. Output too large and LSE too small for a request of more splits than a wave has lanes (32 or 64).]==])
plumb_unseen(all_commit_drops_crossed_group
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [==[  const bool closes = (pending + accepted) % kGroupPositions == 0;]==]
  TO [==[  const bool closes = (pending + accepted) / kGroupPositions != pending / kGroupPositions;]==]
  CLASS [==[boundary condition]==]
  WHY [==[Nothing is committed if the accepted tokens close a group, even if they go on into the next group. Wrong when pending % 128 + accepted > 128; then bank `accepted` holds the state of the new group and must be copied.]==])
plumb_unseen(all_compress_largest_from_zero
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [==[  float largest = -INFINITY;
]==]
  TO [==[  float largest = 0;
]==]
  CLASS [==[initial value of a maximum]==]
  WHY [==[The softmax's maximum starts at 0. If all scores of a channel's window are below about -87, the weights are subnormal (coarse means) or all 0.]==])
plumb_unseen(all_compressed_logits_from_raw_start
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [==[  const std::int64_t shift = p.max_seqlen_k > 0 ? start : 0;]==]
  TO [==[  const std::int64_t shift = p.max_seqlen_k > 0 ? p.starts[row] : 0;]==]
  CLASS [==[unclamped value]==]
  WHY [==[In the compressed form column c is key starts[row] + c with the start before clamping. Wrong for a row whose start is below 0: its logits are shifted to the right.]==])
plumb_unseen(all_compressed_slot_in_32_bits
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [==[  return wide_slot_of(blocks, p.page, position / p.ratio);]==]
  TO [==[  return slot_of(blocks, p.page, position / p.ratio);]==]
  CLASS [==[int32 overflow of a slot]==]
  WHY [==[The int64 slot is truncated to int32: wrong for a block number of 2^31 / page or more (2^25 for pages of 64).]==])
plumb_unseen(all_expand_repeated_candidates_unsorted
  OP expand_candidate_blocks FILE top_k/expand_candidate_blocks.cu
  FROM [==[    std::int64_t place = places.smaller * pieces + places.before;
    for (std::int64_t sparse = first; sparse < behind; ++sparse) {
      sparse_blocks[place] = static_cast<std::int32_t>(base + sparse);
      place += places.equal;
    }]==]
  TO [==[    std::int64_t place = (places.smaller + places.before) * pieces;
    for (std::int64_t sparse = first; sparse < behind; ++sparse) {
      sparse_blocks[place++] = static_cast<std::int32_t>(base + sparse);
    }]==]
  CLASS [==[ties / duplicates]==]
  WHY [==[A candidate that occurs twice gives b, b+1, b, b+1 instead of b, b, b+1, b+1: not ascending. Only with repeated candidates and two or more sparse blocks per candidate.]==])
plumb_unseen(all_expert_indices_not_of_padding
  OP sqrt_softplus_topk FILE router/sqrt_softplus_topk.cu
  FROM [==[  if (p.token_expert_indices && lane < p.topk) {]==]
  TO [==[  const bool padded = p.is_padding && p.is_padding[token];
  if (p.token_expert_indices && lane < p.topk && !padded) {]==]
  CLASS [==[two optional arguments together]==]
  WHY [==[token_expert_indices of a padded token is not written and keeps stale contents. Only if both is_padding and token_expert_indices are given.]==])
plumb_unseen(all_group_quant_amax_without_tail
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [==[  const float amax = group_amax(x, count);]==]
  TO [==[  const float amax = group_amax(x, count / kGroupLanes * kGroupLanes);]==]
  CLASS [==[vector tail left out of a maximum]==]
  WHY [==[amax ignores the columns behind the last whole eight of a group. Wrong in a last partial group (or group size) that is no multiple of 8 if the largest magnitude lies in this tail: scale too small, codes saturate.]==])
plumb_unseen(all_hash_scale_only_if_renormalized
  OP hash_routing FILE router/hash_routing.cu
  FROM [==[  store_expert(p, token, id, weight * p.routed_scaling_factor);]==]
  TO [==[  store_expert(p, token, id, p.renormalize ? weight * p.routed_scaling_factor : weight);]==]
  CLASS [==[scaling tied to another option]==]
  WHY [==[routed_scaling_factor is not applied if renormalize is 0.]==])
plumb_unseen(all_indexer_k_scales_by_group
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [==[  const std::int64_t page = p.cache.page, groups = p.head_dim / p.quant_block_size;
  const auto [number, offset] = place_of(slot, static_cast<int>(p.cache.page));
  std::uint8_t* block = p.cache.data + number * p.cache.block_stride_bytes;
  if (group_lane() == 0) {
    reinterpret_cast<float*>(block + page * p.head_dim)[offset * groups + group] = scale;]==]
  TO [==[  const std::int64_t page = p.cache.page;
  const auto [number, offset] = place_of(slot, static_cast<int>(p.cache.page));
  std::uint8_t* block = p.cache.data + number * p.cache.block_stride_bytes;
  if (group_lane() == 0) {
    reinterpret_cast<float*>(block + page * p.head_dim)[group * page + offset] = scale;]==]
  CLASS [==[layout of scales]==]
  WHY [==[Scales are stored one plane per quant block instead of consecutively per token. Equal with one scale per key; wrong if head_dim / quant_block_size > 1.]==])
plumb_unseen(all_mhc_fused_squares_of_split_operand
  OP mhc_fused_post_pre FILE hyper_connection/mhc_mixing.h
  FROM [==[      square_sum += x * x;
      const float operand = p.bf16_split ? load_bf16(store_bf16(x)) : x;]==]
  TO [==[      const float operand = p.bf16_split ? load_bf16(store_bf16(x)) : x;
      square_sum += operand * operand;]==]
  CLASS [==[extra rounding in one mode]==]
  WHY [==[With gemm_operand=bf16_split and at most unrounded_rows tokens, square sums use the streams rounded to bf16; the contract says those before rounding.]==])
plumb_unseen(all_mhc_square_sum_of_kept_only
  OP mhc_pre FILE hyper_connection/mhc_mixing.h
  FROM [==[  for (std::int64_t h = kept_column(kKept); h < p.hidden; h += stride) {
    store(h, input_columns(load_input(p, token, h, whole), pre, square_sum));
  }]==]
  TO [==[  float rest = 0;
  for (std::int64_t h = kept_column(kKept); h < p.hidden; h += stride) {
    store(h, input_columns(load_input(p, token, h, whole), pre, rest));
  }]==]
  CLASS [==[row longer than the registers]==]
  WHY [==[With norm_weight the squares of columns that are not kept in registers are not added. Wrong if hidden is above what a block keeps (8192 with 256 threads).]==])
plumb_unseen(all_mixed_length_clamped_by_width
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [==[    p.sparse_topk_lens[token] = static_cast<std::int32_t>(p.window + states);]==]
  TO [==[    const std::int64_t seen = (position + 1) / p.ratio, most = p.width - p.window;
    p.sparse_topk_lens[token] = static_cast<std::int32_t>(p.window + (seen < most ? seen : most));]==]
  CLASS [==[clamp by the padded width]==]
  WHY [==[A prefill token's length is clamped by the padded number of columns instead of top_k. Wrong if the token sees more than top_k states and top_k is no multiple of 4 or below decode_topk.]==])
plumb_unseen(all_mla_reduce_indptr_last_tail
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [==[row <= p.max_rows; row += wave_size()]==]
  TO [==[row < p.max_rows; row += wave_size()]==]
  CLASS [==[off by one in a tail fill]==]
  WHY [==[reduce_indptr[max_rows] keeps its stale value if the batch has fewer rows than max_rows.]==])
plumb_unseen(all_mtp_mask_by_block
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu
  FROM [==[  const bool keep = !is_embedding || p.positions[token] != 0;]==]
  TO [==[  const bool keep = !is_embedding || p.positions[block_index_x()] != 0;]==]
  CLASS [==[index by block instead of token]==]
  WHY [==[The mask of position 0 is looked up by the block's number. Right if a block has one row; wrong for a small hidden (a row fits one wave, four rows per block) when positions of tokens differ in being 0.]==])
plumb_unseen(all_q_head_eps_as_floor
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [==[  float r = rsqrt_approx(sum_of_lanes(squares) / static_cast<float>(kHeadDim) + p.eps);]==]
  TO [==[  const float mean = sum_of_lanes(squares) / static_cast<float>(kHeadDim);
  float r = rsqrt_approx(mean < p.eps ? p.eps : mean);]==]
  CLASS [==[eps as a clamp instead of a term]==]
  WHY [==[The root is of max(mean, eps) instead of mean + eps. Wrong, by up to sqrt(2), for heads whose mean square is within a few orders of eps; invisible for ordinary ones.]==])
plumb_unseen(all_remap_subtracts_exact_start
  OP remap_candidate_positions FILE top_k/remap_candidate_positions.cu
  FROM [==[      position = (blocks[column / size] - base) * size + column % size;]==]
  TO [==[      position = (blocks[column / size] - base) * size + column % size - p.row_starts[row] % size;]==]
  CLASS [==[start that is not a multiple]==]
  WHY [==[Positions are shifted by start mod sparse_block_size, as if sparse blocks began at multiples of their size. Wrong for a window whose start is no multiple of the sparse block.]==])
plumb_unseen(all_rms_mean_over_padded_width
  OP rms_norm FILE norm/row_norm.h
  FROM [==[  const float mean = sum_of_team(team, squares, wave_partials) / static_cast<float>(hidden);]==]
  TO [==[  const std::int64_t padded = (hidden + kBf16x8 - 1) / kBf16x8 * kBf16x8;
  const float mean = sum_of_team(team, squares, wave_partials) / static_cast<float>(padded);]==]
  CLASS [==[divisor is the vector-padded width]==]
  WHY [==[The mean of squares is divided by the width rounded up to whole vectors of 8. Wrong for a hidden size that is no multiple of 8, by a relative 7/(2 hidden) at most.]==])
plumb_unseen(all_scheduled_segments_of_first_row
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [==[  return (length_of(p, request * p.next_n + p.next_n - 1) + p.split_kv - 1) / p.split_kv;]==]
  TO [==[  return (length_of(p, request * p.next_n) + p.split_kv - 1) / p.split_kv;]==]
  CLASS [==[length of the wrong query row]==]
  WHY [==[With a schedule, segments are counted from a request's first query row. With next_n > 1 the last rows lose their last segment when only they reach into it (length just above a multiple of split_kv).]==])
plumb_unseen(all_topk_list_keeps_raw_bits
  OP top_k_per_row_decode FILE top_k/top_k_list.h
  FROM [==[          *next++ = {ordered_bits(row, bits.chunk[j].at[i]), column + i};]==]
  TO [==[          *next++ = {bits.chunk[j].at[i], column + i};]==]
  CLASS [==[one of two paths lacks a conversion]==]
  WHY [==[The list path for rows of several tiles compares raw bits: a -NaN under nan_order=all_nan_top sorts below -inf and is not selected (and -0 differs from +0 under zeros=equal). Short rows and the path without list are right.]==])
