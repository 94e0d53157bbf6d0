# SPDX-License-Identifier: Apache-2.0
#
# Defects planted by people who had read the kernels and the list of missed defects, but neither the
# rows of cases nor the detectors. This file: compressor, planners, candidate blocks, MXFP4 indexer
# and index maps.
plumb_unseen(new_block_offset_in_32_unsigned_bits
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [==[p.cache + number * p.block_stride_bytes;]==]
  TO [==[p.cache + static_cast<std::uint32_t>(number) *
                                            static_cast<std::uint32_t>(p.block_stride_bytes);]==]
  CLASS [==[overflow of 32 bits]==]
  WHY [==[Block number times stride is unsigned with 32 bits: right up to 4 GiB (2 GiB and more included), but a block whose bytes begin at 2^32 or later is read from the start of the cache, whose keys give plausible logits.]==])
plumb_unseen(new_buffer_rows_continue_the_last_request
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [==[  const std::int64_t request =
      token < p.tokens ? request_of(p.query_start_loc, p.requests, token) : -1;
]==]
  TO [==[  const std::int64_t last = p.query_start_loc[p.requests] - 1;
  const std::int64_t request =
      token < p.tokens && last >= 0
          ? request_of(p.query_start_loc, p.requests, token < last ? token : last)
          : -1;
]==]
  CLASS [==[padding rows]==]
  WHY [==[Rows between the last token of the last request and `tokens` are clamped to the last request and get the positions behind its end: with own_slot IGNORED (or with a stale slot of their own) every ratio-th of them gets a slot of a state that does not exist, or of a page that the request does not own, in place of -1.]==])
plumb_unseen(new_duplicate_candidates_cancel
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [==[      if (marks[(column - begin) / p.block_size] != 0) continue;
]==]
  TO [==[      if (marks[(column - begin) / p.block_size] == 1) continue;
]==]
  CLASS [==[duplicates]==]
  WHY [==[A block that is listed twice has the mark 2 and counts as no candidate: its columns become -infinity, though the block is in the row's list. Lists without duplicates are right.]==])
plumb_unseen(new_edge_candidate_behind_the_columns
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [==[first >= p.columns) atomic_add(found, 1u);]==]
  TO [==[first > p.columns) atomic_add(found, 1u);]==]
  CLASS [==[boundary]==]
  WHY [==[With edge KEEP_LAST a candidate whose first column is exactly the number of columns no longer keeps the last column (start 0, 64 columns, block_size 8, candidate 8), which becomes -infinity; candidates further behind, and rows with several of them, are right.]==])
plumb_unseen(new_empty_request_at_the_start_of_a_key
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [==[    return request_of(p.cu_seq_lens, p.requests, key);
]==]
  TO [==[    if (key >= p.cu_seq_lens[p.requests]) return -1;
    std::int64_t low = 0, high = p.requests;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      if (p.cu_seq_lens[middle] == key) return middle;
      (p.cu_seq_lens[middle] < key ? low : high) = middle;
    }
    return low;
]==]
  CLASS [==[equal starts]==]
  WHY [==[The search ends at the first start that equals the key: if empty requests start there too, it may name one of them, and the first key of the next request is gathered from the empty request's row of the block table, which may hold anything. All keys but the first of a request behind an empty one are right.]==])
plumb_unseen(new_first_of_the_requests_with_equal_starts
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [==[  const std::int64_t row = p.requests > 0 ? request_of(p.cu_seqlens_q, p.requests, token) : token;
]==]
  TO [==[  std::int64_t row = token;
  if (p.requests > 0) {
    for (row = 0; row < p.requests && p.cu_seqlens_q[row] < token;) ++row;
    if (row == p.requests || p.cu_seqlens_q[row] != token) --row;
    if (token >= p.cu_seqlens_q[p.requests]) row = -1;
  }
]==]
  CLASS [==[equal starts]==]
  WHY [==[A lower bound over the starts: the first token of a request behind an empty one is found in the empty request, whose row of the page table is another one. Other tokens, and batches without empty requests, are right.]==])
plumb_unseen(new_given_slots_keep_the_block_size
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [==[                              : spanned(index, p.compressed_block_size, p.compressed_block_span);
]==]
  TO [==[                              : index;
]==]
  CLASS [==[stride]==]
  WHY [==[Slots of decode tokens that are given as slots (C128A) are copied as they are: with compressed_block_span above compressed_block_size, all entries from the second block on name other blocks' states; equal span and size, positions (C4A) and the window are right.]==])
plumb_unseen(new_grid_of_whole_blocks
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [==[  const std::int64_t grid = (p.columns + p.block_size - 1) / p.block_size;
]==]
  TO [==[  const std::int64_t grid = p.columns / p.block_size;
]==]
  CLASS [==[partial tile]==]
  WHY [==[With newest IN_GRID the number of blocks of the grid is rounded down: a newest block without columns whose index is columns / block_size, where columns is no multiple of block_size (start 8, 20 columns, block_size 8, end 32: newest 2, grid 3), is left out, and another block takes its place.]==])
plumb_unseen(new_idle_parts_are_not_written
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [==[    MlaTile tile{at.request, 0, at.block, 0, at.split, at.block != 0, 0, 0};
]==]
  TO [==[    if (at.request >= call.params.requests) return;  // nothing is left
    MlaTile tile{at.request, 0, at.block, 0, at.split, at.block != 0, 0, 0};
]==]
  CLASS [==[stale value]==]
  WHY [==[The planner stops when all requests are divided: parts without work keep the bytes of an older plan, which look like work, so blocks are in two parts. Plans in which every part has work are right.]==])
plumb_unseen(new_largest_score_starts_at_zero
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [==[  float largest = -INFINITY;
]==]
  TO [==[  float largest = 0;
]==]
  CLASS [==[all values negative]==]
  WHY [==[The running maximum starts at 0 and not below all scores: a channel whose scores are all far below zero (under -87 or so) gets weights that underflow, so the state loses bits and from about -104 on is 0 / 0 = NaN; with a score above -80 in the window nothing changes.]==])
plumb_unseen(new_last_block_reads_up_to_the_next_row
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [==[  const std::int64_t stop = last < row.window.stop ? last : row.window.stop;
]==]
  TO [==[  const std::int64_t stop = last < p.logits_row_stride ? last : p.logits_row_stride;
]==]
  CLASS [==[padding between rows]==]
  WHY [==[The last block is scored up to its whole size, with the padding behind the columns: engines fill it with -infinity, but elsewhere a large number or NaN in the gap of a strided row makes a partial last block win. Only where row_ends is above columns: otherwise the partial block is the newest one, whose logits do not count.]==])
plumb_unseen(new_last_entry_without_a_thread
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [==[  const std::int64_t blocks = p.slots / kScheduleThreads + 1;
]==]
  TO [==[  const std::int64_t blocks = (p.slots + kScheduleThreads - 1) / kScheduleThreads;
]==]
  CLASS [==[launch shape]==]
  WHY [==[The grid has a thread per slot, but there is one entry more: if slots is a multiple of 64, the entry behind the last slot keeps what it held, and the last slot ends there.]==])
plumb_unseen(new_last_part_of_a_request_alone
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [==[      tile.first_split = tile.last_split = tile.first_split | tile.last_split;
]==]
  TO [==[      tile.first_split = tile.last_split;
]==]
  CLASS [==[flag of the last part]==]
  WHY [==[A part that has nothing but the end of a split request is flagged as if it had the whole request: the attention kernel then writes the output of this piece over the combined one. Wrong for the last part of a split request if no other request follows in the same part; parts that begin a request, and those that go on to the next one, are right.]==])
plumb_unseen(new_length_of_the_request_for_the_token
  OP transform_index_page_table FILE index_maps/transform_index_page_table.cu
  FROM [==[p.seq_lens != nullptr ? p.seq_lens[token] : p.topk + 1;]==]
  TO [==[p.seq_lens != nullptr ? p.seq_lens[row < 0 ? token : row]
                                                      : p.topk + 1;]==]
  CLASS [==[two index spaces]==]
  WHY [==[seq_lens has an entry per token, but is read at the row of the page table: with cu_seqlens_q and requests of several tokens, a token gets the length of another one, and takes 0, 1, ... in place of its list, or reads a list that nobody wrote. Without cu_seqlens_q, and for one token per request, it is right.]==])
plumb_unseen(new_limit_of_splits_above_the_units
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [==[    parts = splits < parts ? splits : parts;
]==]
  TO [==[    parts = splits;
]==]
  CLASS [==[limit above a count]==]
  WHY [==[With 0 < max_split_per_batch < num_cu and more than num_cu splits over all rows, the payload is that of more units than there are: the units are full before the last rows, whose keys are in no item. Without a limit, or with few rows, plans are right.]==])
plumb_unseen(new_masked_by_adding_minus_infinity
  OP mask_candidate_logits FILE top_k/mask_candidate_logits.cu
  FROM [==[    static_cast<float*>(p.logits)[i] = bits_float(0xff800000u);
]==]
  TO [==[    static_cast<float*>(p.logits)[i] += bits_float(0xff800000u);
]==]
  CLASS [==[NaN and infinity under the mask]==]
  WHY [==[fp32 logits are masked by an addition, so masked columns that hold NaN or +infinity (garbage outside of the window) become NaN and not -infinity, and the top-k behind selects them first; finite logits and bf16 are right.]==])
plumb_unseen(new_mxfp4_floor_of_the_fp8_layouts
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [==[    return (amax < kLeastMx ? kLeastMx : amax) / kLargestE2m1;
]==]
  TO [==[    return (amax < kLeast ? kLeast : amax) / kLargestE2m1;
]==]
  CLASS [==[floor]==]
  WHY [==[Layout INDEXER_MXFP4 takes the floor of 1e-4 from the fp8 layouts: a group of 32 channels whose largest magnitude is below 1e-4 (small or zero weights of the norm) gets the scale byte 112 and codes near 0, in place of a scale that follows the group down to 2^-126.]==])
plumb_unseen(new_nan_rounds_like_a_number
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [==[    reinterpret_cast<std::uint16_t*>(to)[column] = store_bf16(value);
]==]
  TO [==[    const std::uint32_t bits = float_bits(value);
    reinterpret_cast<std::uint16_t*>(to)[column] =
        static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
]==]
  CLASS [==[NaN payload]==]
  WHY [==[The rounding to bf16 has no branch for NaN: 0x7fffffff, the NaN that NVIDIA's arithmetic makes, carries into the sign and is stored as -0, and 0x7f800001 as +infinity (form RAW_BF16); 0x7fc00000 and all numbers are right.]==])
plumb_unseen(new_negative_zero_of_mxfp4_dropped
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [==[                       PLUMB_NEGATIVE_ZERO_KEPT);
]==]
  TO [==[                       PLUMB_NEGATIVE_ZERO_DROPPED);
]==]
  CLASS [==[signed zero]==]
  WHY [==[Layout INDEXER_MXFP4 gives -0, and negative channels below a quarter of their scale, the code 0 in place of 8, as fp4 helpers without hardware conversion do; all other codes and all scales are right.]==])
plumb_unseen(new_online_softmax_from_minus_infinity
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [==[  float largest = -INFINITY;
  for_window(p, window, d,
             [&](float score, float) { largest = score > largest ? score : largest; });
  float weights = 0, sum = 0;
  for_window(p, window, d, [&](float score, float kv) {
    const float weight = weight_of(score, largest);
    weights += weight;
    sum += weight * kv;
  });
]==]
  TO [==[  float largest = -INFINITY, weights = 0, sum = 0;
  for_window(p, window, d, [&](float score, float kv) {
    const float before = largest;
    largest = score > before ? score : before;
    const float kept = weight_of(before, largest), weight = weight_of(score, largest);
    weights = weights * kept + weight;
    sum = sum * kept + weight * kv;
  });
]==]
  CLASS [==[minus infinity first]==]
  WHY [==[A legal online softmax, except that its maximum starts at -infinity: if the first place of a channel's window has the score -infinity, which has weight 0, then exp(-inf - -inf) is NaN and the whole state with it; -infinity at a later place and finite scores are right.]==])
plumb_unseen(new_only_minus_one_is_no_slot
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [==[  if (slot < 0) return;
]==]
  TO [==[  if (slot == kNoIndex) return;
]==]
  CLASS [==[other negative numbers]==]
  WHY [==[Only -1 is skipped: a token with another negative slot (-2, or the least int64) is written in front of the cache (-2: two rows in front of it), where another tensor lies; every state inside of the cache is right.]==])
plumb_unseen(new_own_slot_zero_is_no_slot
  OP compressed_slot_mapping FILE compressor/compressed_slot_mapping.cu
  FROM [==[p.slot_mapping[token] >= 0;]==]
  TO [==[p.slot_mapping[token] > 0;]==]
  CLASS [==[zero taken as absent]==]
  WHY [==[Slot 0 counts as no slot: with ratio 1, or where the token that closes a group has the own slot 0, its compressed slot is -1 and the state is never written; all other slots are right.]==])
plumb_unseen(new_page_of_one_key_is_tiled_too
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [==[  if (!p.shuffled || p.cache.page == 1) return offset * p.head_dim + column;
]==]
  TO [==[  if (!p.shuffled) return offset * p.head_dim + column;
]==]
  CLASS [==[page of one key]==]
  WHY [==[Pages of one key have no tiles, but are read as if they had: with shuffled 1 and page 1, codes from column 16 on come from the keys of the next blocks (byte 256 of the block for column 16); pages of 16 and more are right.]==])
plumb_unseen(new_payload_rounded_down
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [==[  return ceil_div(total, static_cast<int>(call.plan.num_parts)) + overhead_of(call);
]==]
  TO [==[  return total / static_cast<int>(call.plan.num_parts) + overhead_of(call);
]==]
  CLASS [==[rounding]==]
  WHY [==[The payload is rounded down. Parts usually leave enough of the overhead unused, but with fixed_overhead 0 (or where all parts are used up exactly) and a total that is no multiple of num_parts, the last blocks are in no part and num_splits of the last request is not written: 10 blocks, 4 parts, overhead 0.]==])
plumb_unseen(new_pinned_block_follows_the_columns
  OP select_candidate_blocks FILE top_k/select_candidate_blocks.cu
  FROM [==[          static_cast<std::int32_t>(block < row.window.blocks ? block : row.window.newest);
]==]
  TO [==[          static_cast<std::int32_t>(block);
]==]
  CLASS [==[row that ends behind the columns]==]
  WHY [==[With newest IN_GRID the newest block without columns is returned as the block right behind the last column: right if it is that one, but with start 16, 32 columns, block_size 8 and end 48 the result has block 2, and the newest block is 3.]==])
plumb_unseen(new_positions_below_minus_one_are_looked_up
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [==[  if (state < 0) return kNoIndex;
]==]
  TO [==[  if (state == kNoIndex) return kNoIndex;
]==]
  CLASS [==[other negative numbers]==]
  WHY [==[Only -1 counts as no entry: a chosen position of -2 or below is looked up in the block table, and gives a slot just below that of the request's first block (block 7 of 64: 446), a state of another request, in place of -1.]==])
plumb_unseen(new_row_behind_its_request_is_gathered
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [==[key < p.cu_seq_lens[request + 1];]==]
  TO [==[key <= p.cu_seq_lens[request + 1];]==]
  CLASS [==[boundary]==]
  WHY [==[With TOKEN_TO_SEQ the row right behind the range of its request is written: padding rows whose token_to_seq repeats the last request have one row (n = cu_seq_lens[B]) that must keep its bytes and gets those of the position behind the request's last key.]==])
plumb_unseen(new_rows_of_whole_blocks_of_threads
  OP compress_norm_rope_insert FILE compressor/compress_norm_rope_insert.cu
  FROM [==[  for (int d = thread_index(); d < p.head_dim; d += block_size()) row[d] = store_bf16(state[d]);
]==]
  TO [==[  for (int i = 0; i < p.head_dim / block_size(); ++i) {
    const int d = i * block_size() + thread_index();
    row[d] = store_bf16(state[d]);
  }
]==]
  CLASS [==[partial tile]==]
  WHY [==[Layout ROWS stores head_dim / 128 whole rounds: with head_dim 192, 320 or 448 (any odd multiple of 64) the last 64 channels, those with RoPE, keep what the cache held; 128, 256, 384 and 512 are right.]==])
plumb_unseen(new_scales_by_shifting_one
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [==[  const float factor = decode_ue8m0(scale);
]==]
  TO [==[  const int up = static_cast<int>(scale) - 127;
  const float power = static_cast<float>(1U << ((up < 0 ? -up : up) & 31));
  const float factor = up < 0 ? 1 / power : power;
]==]
  CLASS [==[extremes of scale bytes]==]
  WHY [==[The power of two is a shift of an integer with 32 bits: scale bytes 96 to 158 are right, but 2^32 becomes 1 and 2^-40 becomes 2^-8. The floor of the writer gives bytes down to 1 for groups of zeros, whose scale does not matter, but small groups have such bytes too.]==])
plumb_unseen(new_scores_at_the_row_stride_of_kv
  OP save_partial_states FILE compressor/save_partial_states.cu
  FROM [==[p.score + token * p.score_row_stride;]==]
  TO [==[p.score + token * p.kv_row_stride;]==]
  CLASS [==[stride]==]
  WHY [==[kv and score are taken for two halves of one projection: where score_row_stride differs from kv_row_stride, tokens from 1 on get scores of other rows or of the gap between rows; token 0 and equal strides are right.]==])
plumb_unseen(new_segments_by_shifting
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [==[  return (length + p.split_kv - 1) / p.split_kv;
]==]
  TO [==[  int shift = 0;
  while (p.split_kv >> (shift + 1) != 0) ++shift;
  return (length + p.split_kv - 1) >> shift;
]==]
  CLASS [==[not a power of two]==]
  WHY [==[The division is a shift by the logarithm of split_kv, rounded down: right for 64, 128 and 256, but with split_kv 192 or 96 a request has too many segments, and entries name segments that do not exist.]==])
plumb_unseen(new_starts_of_idle_slots_unclamped
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [==[  const std::int64_t share = total / p.slots, rest = total % p.slots;
  const std::int64_t larger = slot - (p.slots - rest);  // slots before this one that have one more
  std::int64_t left = slot * share + (larger > 0 ? larger : 0);
]==]
  TO [==[  const std::int64_t share = (total + p.slots - 1) / p.slots;
  std::int64_t left = slot * share;
]==]
  CLASS [==[idle slots]==]
  WHY [==[Each slot gets the rounded-up share, and nothing clamps the starts of slots behind the last segment: with 5 segments and 4 slots (share 2, starts 0, 2, 4, 6) slot 3 begins at an atom behind the end, so entries decrease at the end and a reader never stops there. Totals whose last share is in use by the last slot are right.]==])
plumb_unseen(new_states_of_missing_blocks_are_not_counted
  OP build_flashinfer_mixed_sparse_indices FILE index_maps/build_flashinfer_mixed_sparse_indices.cu
  FROM [==[    if (index >= 0) ++found;
]==]
  TO [==[    if (out[p.window + j] >= 0) ++found;
]==]
  CLASS [==[negative block]==]
  WHY [==[The length of a decode token (C4A) counts slots and not positions: where the block table has a negative block for a chosen position, sparse_topk_lens is too small, and the reader leaves out the last entries of the row; tables without negative blocks are right.]==])
plumb_unseen(new_tail_of_the_lists_in_one_round
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [==[  for (std::int64_t row = rows + 1 + lane_index(); row <= p.max_rows; row += wave_size()) {
    p.reduce_indptr[row] = listed;
  }
]==]
  TO [==[  const std::int64_t row = rows + 1 + lane_index();
  if (row <= p.max_rows) p.reduce_indptr[row] = listed;
]==]
  CLASS [==[count above the width of a wave]==]
  WHY [==[Each lane writes one entry of the tail of reduce_indptr: if max_rows is more than a wave (32 or 64) above the number of rows, entries from there on keep what an earlier step or nobody wrote, and the reduction takes old lists for rows of this plan.]==])
plumb_unseen(new_tiles_behind_the_length_stay_dirty
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [==[  if (first >= length && !p.clean_logits) return;
]==]
  TO [==[  if (first >= length) return;
]==]
  CLASS [==[early return]==]
  WHY [==[Whole tiles of 128 columns behind the length return before they are cleaned: with clean_logits 1 and max_context_len beyond the tile of the last token, columns of the later tiles keep an older step's logits; the tile with the last token is clean.]==])
plumb_unseen(new_unit_ends_where_a_row_ends
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [==[    if (left < cost) {
]==]
  TO [==[    if (left <= cost) {
]==]
  CLASS [==[boundary: exact fit]==]
  WHY [==[If the rest of a row uses up a unit's payload exactly, the row is cut behind its last block: it becomes a split row whose last item has no keys, or, with a partial last block, has items that reach into the next row's keys. Payloads that do not fit exactly are right.]==])
