# SPDX-License-Identifier: Apache-2.0
#
# Defects planted by people who had read the kernels and the list of missed defects, but neither the
# rows of cases nor the detectors. This file: metadata, caches, and combinations in other families.
plumb_unseen(build_ragged_negative_stays_without_bound
  OP build_ragged_indices_from_dense FILE metadata/build_ragged_indices_from_dense.cu
  FROM [==[  return index >= 0 && (p.num_rows < 0 || index < p.num_rows);
]==]
  TO [==[  return p.num_rows < 0 || (index >= 0 && index < p.num_rows);
]==]
  CLASS [==[combination of two parameters]==]
  WHY [==[Without a bound (num_rows -1) negative entries no longer count as holes: with PLUMB_HOLES_DROPPED, num_rows -1 and the row {3, -1, 5} the list is 3, -1, 5 and indptr grows by 3 instead of 3, 5 and 2; PLUMB_HOLES_KEPT and any bound are right.]==])
plumb_unseen(c128a_slot_zero_is_padding
  OP c128a_decode_metadata FILE metadata/c128a_decode_metadata.cu
  FROM [==[p.slot_mapping[token] >= 0 ? states_of(p, token) : 0;]==]
  TO [==[p.slot_mapping[token] > 0 ? states_of(p, token) : 0;]==]
  CLASS [==[boundary of a value]==]
  WHY [==[A decode token whose slot is 0 (block 0, offset 0) is legal but is taken for padding: with slot_mapping 0 and position 255 its length is 0 instead of 2 and its row is all -1.]==])
plumb_unseen(combine_missing_only_filled_where_minus_one_is_kept
  OP combine_topk_swa_indices_ragged FILE metadata/combine_topk_swa_indices_ragged.cu
  FROM [==[  if (p.missing == PLUMB_NO_VALUE_MINUS_ONE) {
]==]
  TO [==[  if (kept && p.missing == PLUMB_NO_VALUE_MINUS_ONE) {
]==]
  CLASS [==[two options taken for one]==]
  WHY [==[`missing` is heeded only together with PLUMB_MINUS_ONE_KEPT: with minus_one SHIFTED, missing MINUS_ONE, topk_width 4, top_k 8, ratio 4 and a token at position 63 the entries 4 .. 7 of its list keep what the buffer held instead of -1.]==])
plumb_unseen(concat_mla_floor_behind_power_of_two
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [==[  const float exact = at_least(p.scale_floor, amax / quantisation_largest(dialect));
  const bool power = p.scale_form == PLUMB_SCALE_POWER_OF_TWO;
  const float scale = power ? decode_ue8m0(encode_ue8m0(exact)) : exact;
]==]
  TO [==[  const float exact = amax / quantisation_largest(dialect);
  const bool power = p.scale_form == PLUMB_SCALE_POWER_OF_TWO;
  const float scale = at_least(p.scale_floor, power ? decode_ue8m0(encode_ue8m0(exact)) : exact);
]==]
  CLASS [==[extremes of values, order of two steps]==]
  WHY [==[The floor is applied after the scale has been rounded up to a power of two: with PLUMB_SCALE_POWER_OF_TWO, scale_floor 1e-12 and a tile of zeros (or of values below 1e-12) the stored scale is 1e-12 instead of 2^-39.]==])
plumb_unseen(fused_add_rms_norm_long_rows_added_twice
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [==[    return round_bf16x8(sums);
  }
  PLUMB_METHOD static Bits reload(const Bits& bits) { return reloaded(bits); }
]==]
  TO [==[    const Bits bits = round_bf16x8(sums);
    store_bf16x8(residual + column, bits, count, whole);  // early: nobody waits for the norm
    return bits;
  }
  PLUMB_METHOD static Bits reload(const Bits& bits) { return reloaded(bits); }
]==]
  CLASS [==[width above a threshold together with an in-place update]==]
  WHY [==[The residual is stored while it is loaded, but rows longer than what the team keeps in registers are loaded a second time: with PLUMB_SUM_BF16 and hidden 20480 the columns from 16384 on get residual + 2 x in place of residual + x, and are normalised from that.]==])
plumb_unseen(indexer_k_group_of_first_round_in_all_rounds
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [==[    group[i] = static_cast<int>(index - token * groups);
]==]
  TO [==[    group[i] = static_cast<int>(first % groups);  // kGroupsAtOnce are whole keys
]==]
  CLASS [==[dimension class]==]
  WHY [==[A thread takes the quant block number of its first round for all four, which holds only where the number of blocks per key divides 16: with head_dim 384, quant_block_size 128, aligned rows and 8 tokens, index 16 is block 1 of token 5 but block 0 is written again and block 1 is not written by it.]==])
plumb_unseen(insert_k_row_offset_in_32_unsigned_bits
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [==[    bits[i] =
        load_columns(p.kv + token * p.kv_row_stride + lane * kLaneColumns, token < p.tokens, whole);
]==]
  TO [==[    // Unsigned offsets: one register each instead of two for a pointer.
    const auto at = static_cast<std::uint32_t>(token * p.kv_row_stride + lane * kLaneColumns);
    bits[i] = load_columns(p.kv + at, token < p.tokens, whole);
]==]
  CLASS [==[32-bit address]==]
  WHY [==[The element offset of a row of kv is cut to 32 bits: in a strided view with kv_row_stride 2^31 token 2 lies 2^32 elements from the start, and row 0 is quantised in its place.]==])
plumb_unseen(mhc_broadcast_too_few_sinkhorn_blocks
  OP mhc_pre_broadcast FILE hyper_connection/mhc_pre_broadcast.cu
  FROM [==[  const LaunchShape outputs = outputs_shape(mixing, device.wave_size);
]==]
  TO [==[  LaunchShape outputs = token_shape(p.tokens, p.hidden, device.wave_size);
  outputs.grid_x += (p.tokens + kMostTokenThreads - 1) / kMostTokenThreads;  // iterate Sinkhorn
]==]
  CLASS [==[two dimensions at once, second block of a grid]==]
  WHY [==[The blocks in front that iterate Sinkhorn are counted for 256 threads, but blocks are as wide as hidden needs: with hidden 7168 a block has 224 threads, and of 240 tokens the last 16 get no comb; with hidden 4096 no number of tokens shows it.]==])
plumb_unseen(mhc_fused_square_sum_of_bf16_operands
  OP mhc_fused_post_pre FILE hyper_connection/mhc_mixing.h
  FROM [==[      square_sum += x * x;
      const float operand = p.bf16_split ? load_bf16(store_bf16(x)) : x;
]==]
  TO [==[      const float operand = p.bf16_split ? load_bf16(store_bf16(x)) : x;
      square_sum += operand * operand;
]==]
  CLASS [==[rounding, combination of two parameters]==]
  WHY [==[The square sum is of the bf16 operands instead of the fp32 streams, which differs only with tokens <= unrounded_rows and PLUMB_GEMM_OPERAND_BF16_SPLIT: with hidden 8 and splits 32 every part is one element and partial_square_sums are off by up to 2^-8 of themselves.]==])
plumb_unseen(mla_combine_one_split_per_lane
  OP sparse_mla_decode FILE sparse_mla/mla_combine.h
  FROM [==[  float largest = -INFINITY;
  for (int i = lane_index(); i < splits; i += wave_size()) {
    largest = lse[i * stride] > largest ? lse[i * stride] : largest;
  }
  largest = wave_max(largest);
  if (largest == -INFINITY) return INFINITY;
  float sum = 0;
  for (int i = lane_index(); i < splits; i += wave_size()) {
    sum += exp2_approx(lse[i * stride] - largest);
  }
  return log2_approx(wave_sum(sum)) + largest;
]==]
  TO [==[  const float own = lane_index() < splits ? lse[lane_index() * stride] : -INFINITY;
  const float largest = wave_max(own);
  if (largest == -INFINITY) return INFINITY;
  return log2_approx(wave_sum(exp2_approx(own - largest))) + largest;
]==]
  CLASS [==[count above a threshold]==]
  WHY [==[Each lane takes one split, so that those behind the wave size do not count: one request of 2560 candidates in blocks of 64 with num_parts 45 has 40 splits of one block each, and in waves of 32 its lse lacks 8 of them and its outputs are some 5/4 too large.]==])
plumb_unseen(mtp_input_position_by_block_number
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu
  FROM [==[p.positions[token] != 0;]==]
  TO [==[p.positions[block_index_x()] != 0;]==]
  CLASS [==[wrong row's value, several rows in a block]==]
  WHY [==[The position that zeroes an embedding is read by the number of the block, which is the token only where a block has one row: with hidden 512 (four rows per block), 8 tokens and positions {0, 5, 6, 7, 8, 9, 10, 11} the embeddings of tokens 1 to 3 are zeroed as well.]==])
plumb_unseen(q_head_rope_in_place_reads_contiguous_heads
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [==[  const std::uint16_t* q = p.q ? p.q + token * p.q_token_stride + head * kHeadDim : out;
]==]
  TO [==[  const std::uint16_t* of_token =
      p.q ? p.q + token * p.q_token_stride : p.out + token * p.out_token_stride;
  const std::uint16_t* q = of_token + head * kHeadDim;
]==]
  CLASS [==[optional input together with a stride]==]
  WHY [==[In place (q null) the heads are read as if they were contiguous: with out_head_stride 576 head 1 is normalised from elements 512 .. 1023 of the token instead of 576 .. 1087; with q given, or out_head_stride 512, all is right.]==])
plumb_unseen(sqrt_softplus_padding_without_token_expert_indices
  OP sqrt_softplus_topk FILE router/sqrt_softplus_topk.cu
  FROM [==[  if (p.token_expert_indices && lane < p.topk) {
    p.token_expert_indices[token * p.token_expert_indices_row_stride + lane] =
        static_cast<std::int32_t>(lane * p.tokens + token);
  }
  if (p.is_padding && p.is_padding[token]) {
    if (lane >= p.topk) return;
    return store_expert(p, token, -1, 0.0F);
  }
]==]
  TO [==[  if (p.is_padding && p.is_padding[token]) {
    if (lane >= p.topk) return;
    return store_expert(p, token, -1, 0.0F);
  }
  if (p.token_expert_indices && lane < p.topk) {
    p.token_expert_indices[token * p.token_expert_indices_row_stride + lane] =
        static_cast<std::int32_t>(lane * p.tokens + token);
  }
]==]
  CLASS [==[two optional tensors together]==]
  WHY [==[Padded tokens return before token_expert_indices are stored: with is_padding and token_expert_indices both given the rows of padded tokens keep what the buffer held instead of k * tokens + t; with only one of the two all is right.]==])
plumb_unseen(swa_request_search_stops_at_empty_request
  OP swa_decode_metadata FILE metadata/swa_decode_metadata.cu
  FROM [==[PLUMB_KERNEL void swa_tokens_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int64_t request = request_of(p.query_start_loc, p.requests, token);
]==]
  TO [==[// The request of a token, -1 behind the last one. Decode requests are short: as a rule the search
// meets the start of one and ends early.
PLUMB_DEVICE std::int64_t request_at(const Params& p, std::int64_t token) {
  const std::int32_t origin = p.query_start_loc[0];
  if (token >= p.query_start_loc[p.requests] - origin) return -1;
  std::int64_t low = 0, high = p.requests;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    const std::int64_t start = p.query_start_loc[middle] - origin;
    if (start == token) return middle;
    (start < token ? low : high) = middle;
  }
  return low;
}

PLUMB_KERNEL void swa_tokens_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int64_t request = request_at(p, token);
]==]
  CLASS [==[empty rows between full ones]==]
  WHY [==[The search returns the first probed request that starts at the token, which may be an empty one: with query_start_loc {0, 1, 1, 2} token 1 belongs to request 2 but gets request 1, its sequence length and its block table row.]==])
plumb_unseen(top_k_kept_tile_by_columns_in_place_of_stride
  OP top_k_per_row_decode FILE top_k/top_k_select.h
  FROM [==[      reinterpret_cast<std::uintptr_t>(p.logits) % 16 == 0 && p.logits_row_stride % kTopKChunk == 0;
]==]
  TO [==[      reinterpret_cast<std::uintptr_t>(p.logits) % 16 == 0 && p.columns % kTopKChunk == 0;
]==]
  CLASS [==[width at a threshold together with a stride]==]
  WHY [==[Whether all rows start at whole chunks is asked of the columns instead of the stride: with columns 8192 and logits_row_stride 8193 row 1 has a lead of one, does not fit its one tile of 8192, and column 8191 is not seen: where it holds the largest logit it is missing from the result.]==])
plumb_unseen(topk_dense_bound_in_32_bits
  OP compute_global_topk_indices_and_lens FILE metadata/compute_global_topk_indices_and_lens.cu
  FROM [==[  return position / p.block_size < p.blocks_per_request;
]==]
  TO [==[  const auto covered = static_cast<std::int32_t>(p.blocks_per_request * p.block_size);
  return position < covered;  // without a division
]==]
  CLASS [==[32-bit count]==]
  WHY [==[The number of positions that a block table row covers is formed in 32 bits: with PLUMB_BOUNDS_CHECKED, block_size 2^20 and blocks_per_request 2048 it becomes negative, so that every position has no slot and every length is 0.]==])
plumb_unseen(topk_ragged_valid_flag_compared_with_one
  OP compute_global_topk_ragged_indices_and_indptr FILE metadata/compute_global_topk_ragged_indices_and_indptr.cu
  FROM [==[  if (p.is_valid_token[token] != 0) {
]==]
  TO [==[  if (p.is_valid_token[token] == 1) {
]==]
  CLASS [==[range of a flag]==]
  WHY [==[Only 0 means an invalid token, but flags other than 1 are dropped too: a token with is_valid_token 255 (a byte mask) and four positions gets length 0 and no entries.]==])
plumb_unseen(unpack_seq_pairs_of_bytes_with_odd_row_stride
  OP unpack_seq FILE metadata/unpack_seq.cu
  FROM [==[  const auto& p = *static_cast<const plumb_unpack_seq_params*>(params);
  if (!is_legal_packing(p, p.out_row_stride)) return PLUMB_INVALID_ARGUMENT;
]==]
  TO [==[  auto p = *static_cast<const plumb_unpack_seq_params*>(params);
  if (!is_legal_packing(p, p.out_row_stride)) return PLUMB_INVALID_ARGUMENT;
  const auto starts = reinterpret_cast<std::uintptr_t>(p.x) | reinterpret_cast<std::uintptr_t>(p.out);
  // Bytes move in pairs where rows are made of such.
  if (p.element_bytes == 1 && p.columns % 2 == 0 && starts % 2 == 0) {
    p.element_bytes = 2;
    p.columns /= 2;
    p.out_row_stride /= 2;
  }
]==]
  CLASS [==[dimension class together with a stride]==]
  WHY [==[The wider accesses look at columns and addresses but not at the stride: with element_bytes 1, columns 4 and out_row_stride 5 row r is stored at byte 4 r instead of 5 r.]==])
plumb_unseen(v32_kv_indices_table_bound_for_page_64
  OP v32_paged_kv_indices FILE metadata/v32_paged_kv_indices.cu
  FROM [==[topk[j] >= 0 && topk[j] / p.page < p.blocks_per_request;]==]
  TO [==[topk[j] >= 0 && topk[j] / 64 < p.blocks_per_request;]==]
  CLASS [==[parameter written as a constant]==]
  WHY [==[The check whether a position is in the block table takes the page for 64: with page 1, blocks_per_request 100 and position 150 the slot comes from behind the row of the table instead of being 0 or -1.]==])
plumb_unseen(v32_metadata_idle_step_clears_nothing
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [==[  const bool full = p.extent == PLUMB_EXTENT_FULL_FILL;
]==]
  TO [==[  if (tokens == 0) return;  // an idle step: nothing to refresh
  const bool full = p.extent == PLUMB_EXTENT_FULL_FILL;
]==]
  CLASS [==[state of the previous call]==]
  WHY [==[A replay without live tokens leaves request ids and entries of the step before in the buffers while the extents become 0, so that no later step clears them either: a step of 5 tokens, then one with query_start_loc all 0, and ids 0 .. 4 and the entries are still there instead of 0.]==])
