# SPDX-License-Identifier: Apache-2.0
#
# Defects planted by people who had read the kernels and the list of missed defects, but neither the
# rows of cases nor the detectors. This file: kernels, each the counterpart of an
# entry of a survey of public defects.
plumb_unseen(each_thread_copies_one_entry
  OP copy_ragged_to_graph_buffers FILE metadata/copy_ragged_to_graph_buffers.cu
  FROM [==[  for (std::int64_t i = thread; i < entries; i += threads) p.indices_buffer[i] = p.indices[i];
]==]
  TO [==[  if (thread < entries) p.indices_buffer[thread] = p.indices[thread];
]==]
  CLASS [==[B7]==]
  WHY [==[The grid has a thread per entry only while max_per_row is at most 256 (row_shape caps the block): with 2 rows of max_per_row 1024 and indptr = {0, 1000, 2000} entries 512 .. 1999 of the persistent buffer keep an older step's valid-looking slots.]==])
plumb_unseen(extent_is_remembered_in_entries
  OP v32_paged_metadata FILE metadata/v32_paged_metadata.cu
  FROM [==[  p.extents[1] = static_cast<std::int32_t>(extent_of_indices(p, tokens));
]==]
  TO [==[  p.extents[1] = p.paged_kv_indptr[tokens];
]==]
  CLASS [==[D3]==]
  WHY [==[With PLUMB_EXTENT_N_TOPK the extent is tokens * topk, but the number of entries is remembered (the same with PLUMB_EXTENT_ENTRIES, and for rows that are all full): after 4 long rows, then 4 short ones, a step of one row clears only up to the short rows' entries, and slots of the first step stay behind its end.]==])
plumb_unseen(first_position_masks_the_hidden_streams_too
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu
  FROM [==[  const bool keep = !is_embedding || p.positions[token] != 0;
]==]
  TO [==[  const bool keep = p.positions[token] != 0;
]==]
  CLASS [==[J4]==]
  WHY [==[The mask of position 0 is meant for the embedding only and now also zeroes the previous hidden streams: a token at position 0 (the first of a prompt) gets zeros for hnorm in all hc_mult slots, every other token is right.]==])
plumb_unseen(floor_holds_for_the_scale_not_for_amax
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [==[  const float ratio = at_least(p.amax_floor, amax) / quantisation_largest(p.dialect);
]==]
  TO [==[  const float ratio = at_least(p.amax_floor, amax / quantisation_largest(p.dialect));
]==]
  CLASS [==[I5]==]
  WHY [==[The floor's operand is swapped: it is compared with amax / largest instead of amax, which changes nothing for ordinary heads, but a head whose amax is between 0 and 448 * amax_floor (0.01 with a floor of 1e-4) gets a scale that is several times too large, loses code bits, and a zero head gets 1e-4 in the place of 1e-4 / 448.]==])
plumb_unseen(four_sums_share_one_buffer
  OP hc_head FILE hyper_connection/hc_head.cu
  FROM [==[    const float sum = block_tree_sum(mixes[j], per_wave + (j + 1) * kMostWaves);
]==]
  TO [==[    const float sum = block_tree_sum(mixes[j], per_wave + kMostWaves);
]==]
  CLASS [==[G12]==]
  WHY [==[Write after read across the rounds of a loop: block_tree_sum has one barrier, so a wave that is ahead overwrites its partial with that of mix j + 1 while a slower wave still adds up mix j; it needs a block of several waves (hidden above 256 on wave32), then the slower wave's columns get another gate.]==])
plumb_unseen(key_alone_at_the_end_of_a_tile_is_skipped
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [==[  const bool empty = end <= start || first + kLogitsBlock + shift <= start || first + shift >= end;
]==]
  TO [==[  const bool empty =
      end <= start || first + kLogitsBlock - 1 + shift <= start || first + shift >= end;
]==]
  CLASS [==[E5]==]
  WHY [==[Off by one at the border of a tile of 128 columns: where a row's window starts at the last column of a tile (starts = 127, 255, ..., with clean_logits 0) that tile counts as empty, and the logit of the row's first key is never written, so that the top-k behind reads what stood there.]==])
plumb_unseen(outside_rows_are_masked_in_the_scores_only
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [==[  const std::uint16_t* from = params.kv + index * params.kv_row_stride;
  std::uint16_t* to = work.tokens + token * kTokenStride;
  for (int group = first_group; group * kGroup < work.key_dims; group += kStageThreads) {
    if (!inside) {
      zero_group(to + group * kGroup);
    } else {
      for (int d = group * kGroup; d < (group + 1) * kGroup; ++d) to[d] = from[d];
    }
  }
]==]
  TO [==[  // What is outside weighs nothing (its slot is -1), whatever is staged for it.
  const std::uint16_t* from = params.kv + (inside ? index : 0) * params.kv_row_stride;
  std::uint16_t* to = work.tokens + token * kTokenStride;
  for (int group = first_group; group * kGroup < work.key_dims; group += kStageThreads) {
    for (int d = group * kGroup; d < (group + 1) * kGroup; ++d) to[d] = from[d];
  }
]==]
  CLASS [==[K4]==]
  WHY [==[Skipped candidates and the places behind the last one fold to row 0, whose score is masked but whose value is multiplied by p = 0: where row 0 of the workspace was never written and holds NaN (the first request has no compressed state yet) 0 * NaN makes every row with such a place NaN; with a finite row 0 nothing changes.]==])
plumb_unseen(pad_byte_is_cleared_on_the_vector_path_only
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [==[    if (group_lane(kLanes) == 0 && p.pad == PLUMB_PAD_ZERO) slot.scales[kRopeGroup] = 0;
]==]
  TO [==[    if (whole && group_lane(kLanes) == 0 && p.pad == PLUMB_PAD_ZERO) slot.scales[kRopeGroup] = 0;
]==]
  CLASS [==[I10]==]
  WHY [==[The pad byte behind the seven scales stays uninitialised where rows or cache are not made of whole vectors (kv_row_stride 516, or block_stride_bytes not a multiple of 16, such as page 1 with 584 bytes): with PLUMB_PAD_ZERO an old 0xff there is a NaN scale to whoever reads eight of them.]==])
plumb_unseen(padded_rows_write_reserved_slot_0
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [==[    slots[i] = slot_of(p, token);
]==]
  TO [==[    slots[i] = live && p.slot_mapping[token] == -1 ? 0 : slot_of(p, token);
]==]
  CLASS [==[A3]==]
  WHY [==[A padded token (slot -1) is no longer skipped but lands in the sink, slot 0: with tokens = 5 and slot_mapping = {9, -1, 12, 3, 7} the 656 bytes of slot 0, which no token owns, are overwritten with what the dead row holds (NaN codes included), while every live slot is right.]==])
plumb_unseen(radix_select_stops_one_pass_early
  OP top_k_per_row_decode FILE top_k/top_k_interval.h
  FROM [==[// The interval has at most 2^30 keys, and after each pass at most 2^19, 2^8 and one.
constexpr int kTopKPasses = 3;
]==]
  TO [==[// From at most 2^30 keys to 2^19 and 2^8, which a row of scores hardly ever shares.
constexpr int kTopKPasses = 2;
]==]
  CLASS [==[E2]==]
  WHY [==[The outermost and innermost first parts hold 2^30 keys and need three passes; with two, up to 256 neighbouring floats stay one bin whose places go to the lowest columns: a row of scores 5000 + j / 2048 with distinct values (or of tiny ones below 2^-20) and k = 64 keeps smaller logits and drops larger ones, while scores between 2^-20 and 2^12 need two passes and are right.]==])
plumb_unseen(row_start_ignores_the_column_stride
  OP top_k_per_row_prefill FILE top_k/top_k_per_row_prefill.cu
  FROM [==[  const std::int64_t first = row * p.logits_row_stride + start * p.logits_column_stride;
]==]
  TO [==[  const std::int64_t first = row * p.logits_row_stride + start;
]==]
  CLASS [==[E1]==]
  WHY [==[The window's first logit is found as if columns were contiguous: right for row_starts = 0 or column stride 1, but in a view with logits_column_stride 2 the second request of a ragged prefill (row_starts = 300) selects among columns from 150 on.]==])
plumb_unseen(scales_of_a_block_lie_group_by_group
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [==[  const std::int64_t page = p.cache.page, groups = p.head_dim / p.quant_block_size;
  const auto [number, offset] = place_of(slot, static_cast<int>(p.cache.page));
  std::uint8_t* block = p.cache.data + number * p.cache.block_stride_bytes;
  if (group_lane() == 0) {
    reinterpret_cast<float*>(block + page * p.head_dim)[offset * groups + group] = scale;
  }
]==]
  TO [==[  const std::int64_t page = p.cache.page;
  const auto [number, offset] = place_of(slot, static_cast<int>(p.cache.page));
  std::uint8_t* block = p.cache.data + number * p.cache.block_stride_bytes;
  if (group_lane() == 0) {
    reinterpret_cast<float*>(block + page * p.head_dim)[group * page + offset] = scale;
  }
]==]
  CLASS [==[J1]==]
  WHY [==[Scales are stored [group][token] where readers take [token][group]; the same bytes are occupied, and with one group per key (quant_block_size = head_dim) or pages of one token it is the same place, but with head_dim 128, quant_block_size 64 and page 64 token 1 gets the scale of another token's group.]==])
plumb_unseen(small_expert_domain_ends_before_256
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [==[  return p.experts <= 256 && p.experts / p.n_group <= 32 && p.topk_group <= 4 && p.topk <= 8;
]==]
  TO [==[  return p.experts < 256 && p.experts / p.n_group <= 32 && p.topk_group <= 4 && p.topk <= 8;
]==]
  CLASS [==[N2]==]
  WHY [==[The dispatch threshold is off by one: with kernel_domain SMALL_EXPERTS_IN_FP32 exactly 256 experts in 8 groups (V3.2's own router) with bf16 logits are no longer computed in fp32 with ordered bits but in the logits' format, so that near ties choose other experts and weights are those of rounded scores.]==])
plumb_unseen(softmax_maximum_forgets_the_last_column
  OP mhc_pre FILE hyper_connection/sinkhorn.h
  FROM [==[  for (int k = 1; k < 4; ++k) most = row[k] > most ? row[k] : most;
]==]
  TO [==[  for (int k = 1; k < 3; ++k) most = row[k] > most ? row[k] : most;
]==]
  CLASS [==[J8]==]
  WHY [==[The largest logit is looked for among the first three of a row; softmax does not depend on what is subtracted until the fourth exceeds the others by more than 88.7 (nearly one-hot mixing, base[11] = 100 with the rest around 0), where exp overflows and comb is inf / inf = NaN instead of a row (0, 0, 0, 1).]==])
plumb_unseen(split_part_without_candidates_is_normalised
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu
  FROM [==[  return lonely ? 0.0F : 1.0F / (softmax.sum + sink);
]==]
  TO [==[  return lonely && !split ? 0.0F : 1.0F / (softmax.sum + sink);
]==]
  CLASS [==[K5]==]
  WHY [==[The guard of an empty owner holds for whole rows only: a part of a split request whose candidates are all -1 (512 columns of which the last 256 are holes, divided between two parts) multiplies zeros by 1 / 0, its partial result is NaN, and the combination adds 0 * NaN to the row.]==])
plumb_unseen(sqrsum_lane_guard_is_half_a_wave
  OP mhc_pre_broadcast FILE hyper_connection/mhc_mixing.h
  FROM [==[  if (lane_index() < kRowsPerWave && tile_row < rows_in_tile) {
]==]
  TO [==[  if (lane_index() < wave_size() / 2 && tile_row < rows_in_tile) {
]==]
  CLASS [==[G1]==]
  WHY [==[Half a wave is 16 rows on wave32 only: on wave64 lanes 16 .. 31 also store their copies, as the square sums of the next wave's 16 rows, a race that leaves row 16 + i with the sum of row i when wave 0 stores after wave 1 (more than 16 tokens, rows of different magnitude, blocks or waves not in ascending order).]==])
plumb_unseen(staged_tile_runs_over_the_end_of_its_block
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu
  FROM [==[  const bool listed = position < block.end && position < block.count;
]==]
  TO [==[  const bool listed = position < block.count;
]==]
  CLASS [==[K6]==]
  WHY [==[It is assumed that a plan's block is whole tiles of 16 candidates: with block_n 64 that is so, with block_n 24 (40, 8) the last tile of each block also takes the first candidates of the next one, which are then attended twice.]==])
plumb_unseen(vector_path_although_hidden_has_a_tail
  OP rms_norm FILE norm/rms_norm.cu
  FROM [==[  if (has_whole_vectors({p.hidden, p.x_row_stride, p.out_row_stride}, p.x, p.weight, p.out)) {
]==]
  TO [==[  if (has_whole_vectors({p.x_row_stride, p.out_row_stride}, p.x, p.weight, p.out)) {
]==]
  CLASS [==[F8]==]
  WHY [==[Divisibility is asked of the strides and no more of hidden: with hidden 769 in rows 776 apart the last vector is loaded and stored whole, so that seven elements of the gap enter the sum of squares and seven behind the row's end are written; hidden 768 or odd strides are right.]==])
