# SPDX-License-Identifier: Apache-2.0
#
# Defects planted by people who had read the kernels and the list of missed defects, but neither the
# rows of cases nor the detectors. This file: sparse MLA, indexer and top-k.
plumb_unseen(amax_floor_divided_by_448
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [==[  const float ratio = at_least(p.amax_floor, amax) / quantisation_largest(p.dialect);]==]
  TO [==[  const float least = p.amax_floor / 448.0F;  // of all scales
  const float ratio = at_least(least, amax / quantisation_largest(p.dialect));]==]
  CLASS [==[constant of one dialect]==]
  WHY [==[The floor is turned into a least scale with the largest of e4m3fn: with dialect E4M3FNUZ and a head of zeros or with amax below amax_floor, scale and weights_out come out half as large as they should be (floor / 448 instead of floor / 224); e4m3fn and heads above the floor are right.]==])
plumb_unseen(amax_over_whole_eights_of_dims
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [==[  for (int d = group_lane(); d < dim; d += kGroupLanes) {]==]
  TO [==[  for (int d = group_lane(), left = dim / kGroupLanes; left > 0; d += kGroupLanes, --left) {]==]
  CLASS [==[tail]==]
  WHY [==[All lanes take the same number of rounds, so the last dim % 8 dimensions do not enter the largest: at dim 100 with the head's largest value at dimension 97, at least twice all others, the scale is too small and that code saturates.]==])
plumb_unseen(combine_adds_sink_outside_the_log_domain
  OP sparse_mla_decode FILE sparse_mla/mla_combine.h
  FROM [==[return lse + log2_approx(1.0F + exp2_approx(sink * kLog2E - lse));]==]
  TO [==[return log2_approx(exp2_approx(lse) + exp2_approx(sink * kLog2E));]==]
  CLASS [==[extremes of scores]==]
  WHY [==[The sink is added to 2^lse itself, which overflows or underflows: a split request with a sink and natural lse above 88.8 gets all-zero output, and with scores and sink all below about -104 it gets infinities or NaN.]==])
plumb_unseen(combine_sums_one_split_per_lane
  OP sparse_mla_decode FILE sparse_mla/mla_combine.h
  FROM [==[  float sum = 0;
  for (int i = lane_index(); i < splits; i += wave_size()) {
    sum += exp2_approx(lse[i * stride] - largest);
  }
]==]
  TO [==[  const float sum =
      lane_index() < splits ? exp2_approx(lse[lane_index() * stride] - largest) : 0.0F;
]==]
  CLASS [==[count above a wave's width]==]
  WHY [==[The sum over the splits takes one split per lane and no second round, so with more splits of one request than lanes in a wave (1 request, 8192 dense candidates, num_parts 256, overhead 5: 128 splits) the combined lse is too small and out too large.]==])
plumb_unseen(dequantised_by_adding_exponents
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [==[    load_group(p.cache, token, group, p.cache.dialect, out + (p.offset + i) * p.out_row_stride);
]==]
  TO [==[    std::uint16_t* const to = out + (p.offset + i) * p.out_row_stride;
    if (group == kTokenThreads - 1) {
      load_group(p.cache, token, group, p.cache.dialect, to);
      continue;
    }
    // Codes are exact in bf16, and a power of two only moves their exponent.
    const int moved = (token.scales[group] - 127) * 128;
    for (int d = 0; d < kGroup; ++d) {
      const std::uint8_t code = token.codes[group * kGroup + d];
      const std::uint16_t bits = store_bf16(decode_e4m3(code, p.cache.dialect));
      const int size = bits & 0x7fff;
      to[d] = static_cast<std::uint16_t>(size == 0 || size > 0x7f80 ? bits : bits + moved);
    }
]==]
  CLASS [==[extremes of scale bytes]==]
  WHY [==[The UE8M0 scale is applied by adding to the bf16 exponent field without underflow or overflow: scale byte 5 with code 2^-9 must give the subnormal 2^-131, but the exponent borrows from the sign bit and the result is a huge number of the other sign; scale bytes near 254 wrap likewise (448 * 2^127 must be infinity).]==])
plumb_unseen(gather_len_zero_taken_as_absent
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [==[  const std::int64_t gather_len = p.gather_lens != nullptr ? p.gather_lens[request] : seq_len;]==]
  TO [==[  const std::int64_t asked = p.gather_lens != nullptr ? p.gather_lens[request] : 0;
  const std::int64_t gather_len = asked > 0 ? asked : seq_len;]==]
  CLASS [==[optional input: zero taken as absent]==]
  WHY [==[A request with gather_lens[r] = 0 and seq_lens[r] = 30 must leave its workspace as it is, but all 30 tokens are gathered over rows that have to keep what they hold.]==])
plumb_unseen(interleaved_pairs_by_parity_of_the_dimension
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [==[  const bool first = interleaved ? i % 2 == 0 : i < half;]==]
  TO [==[  const bool first = interleaved ? d % 2 == 0 : i < half;]==]
  CLASS [==[dimension class: odd offset]==]
  WHY [==[Whether a dimension is the first of its interleaved pair is asked of the dimension and not of its place behind rope_offset: with an odd rope_offset (dim 97, rope_dim 64, offset 33) every pair is formed with the wrong neighbour; even offsets are right.]==])
plumb_unseen(k_scale_multiplied_into_the_key
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [==[  *logit = p.k_scale[key] * score_key(query, values);]==]
  TO [==[  for (int d = 0; d < dim; ++d) values[d] *= p.k_scale[key];
  *logit = score_key(query, values);]==]
  CLASS [==[extremes of scales]==]
  WHY [==[The scale is folded into the key's values in front of the sums: with a subnormal k_scale of 1e-42 the small codes lose most of their bits (2^-9 * 1e-42 rounds from 1.4 to 1 step) though the logit is a normal number, and with k_scale 1e36 the code 448 becomes infinite though q and weights are small and the logit finite.]==])
plumb_unseen(key_offset_in_32_bits
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [==[  decode_key(p.k + key * p.dim, kLogitsTile, dim, p.k_dialect, values);]==]
  TO [==[  const auto offset = static_cast<std::int32_t>(key * p.dim);
  decode_key(p.k + offset, kLogitsTile, dim, p.k_dialect, values);]==]
  CLASS [==[32-bit address]==]
  WHY [==[The byte offset of a key is kept in int32: for keys from 2^24 on at dim 128 (keys = 2^24 + 64, start 2^24, max_seqlen_k 64, so that logits stay small) it turns negative and other memory is read.]==])
plumb_unseen(kv_row_offset_in_unsigned_32_bits
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [==[  const std::uint16_t* from = params.kv + index * params.kv_row_stride;]==]
  TO [==[  const std::uint16_t* from = params.kv + static_cast<std::uint32_t>(index) *
                                              static_cast<std::uint32_t>(params.kv_row_stride);]==]
  CLASS [==[32-bit address]==]
  WHY [==[The offset of a workspace row wraps at 2^32 elements: a view of 5 kv rows with kv_row_stride 2^30 (or a workspace of more than 2^23 rows of 512) reads row 0 for index 4; spans between 2^31 and 2^32 elements are still right.]==])
plumb_unseen(listed_candidates_with_raw_nan_bits
  OP top_k_per_row_prefill FILE top_k/top_k_list.h
  FROM [==[          *next++ = {ordered_bits(row, bits.chunk[j].at[i]), column + i};]==]
  TO [==[          *next++ = {bits.chunk[j].at[i], column + i};]==]
  CLASS [==[special values on one of several paths]==]
  WHY [==[The list keeps the logit's own bits, so that with PLUMB_NAN_ALL_TOP in a window of two or more tiles (the list path) a NaN with its sign set (0xffc00000, listed as top) is then ordered below -inf and its column missing from the k largest; short rows and positive single NaNs are right.]==])
plumb_unseen(one_block_per_tile_of_large_pages
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [==[      p.block_table[row / p.next_n * p.block_table_row_stride + column / page];]==]
  TO [==[      p.block_table[row / p.next_n * p.block_table_row_stride +
                    (page < kLogitsBlock ? column : column / kLogitsBlock * kLogitsBlock) / page];]==]
  CLASS [==[dimension class: page not a multiple of the tile]==]
  WHY [==[For pages of 128 tokens and more the block of a tile's first column is taken for all 128 columns, which holds only for multiples of 128: at page 192 columns 192..255 read offsets 0..63 of the first block instead of the second.]==])
plumb_unseen(one_dimensional_context_lens_without_stride
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [==[  return lengths[0] - p.next_n + query + 1;]==]
  TO [==[  return p.context_lens[row / p.next_n] - p.next_n + query + 1;]==]
  CLASS [==[stride ignored in one of two forms]==]
  WHY [==[1-D lengths are read as if they lay side by side; with context_lens_dims 1 and context_lens_row_stride 2 (a column of a [requests, 2] tensor) and two or more requests, request 1 gets the length of something else; 2-D and stride 1 are right.]==])
plumb_unseen(out_of_later_head_tiles_by_512
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [==[params.out + row * params.out_row_stride + first_head * params.out_head_stride;]==]
  TO [==[params.out + row * params.out_row_stride + first_head * kValueDim;]==]
  CLASS [==[stride written as a constant]==]
  WHY [==[The start of a head tile assumes that heads lie 512 apart while heads inside the tile use the stride: with more than 16 heads and out_head_stride other than 512 (32 heads, stride 576) heads from 16 on land on wrong places; with 16 heads or less, or stride 512, all is right.]==])
plumb_unseen(partial_lse_kept_where_a_part_has_no_candidate
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu
  FROM [==[    *partial_lse_of(params, slot, work.query, head) = lonely ? -INFINITY : lse;]==]
  TO [==[    if (!lonely) *partial_lse_of(params, slot, work.query, head) = lse;]==]
  CLASS [==[state from the previous call]==]
  WHY [==[A part whose candidates are all -1 stores no log-sum-exp, so in a split request whose last blocks are only -1 the combine takes what the previous call left in that slot (finite there) and gives weight to a zero partial: out shrinks and lse is too large.]==])
plumb_unseen(prefill_stops_at_the_first_hole_of_a_tile
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [==[    stage_rows(params, indices, first, count, work);
]==]
  TO [==[    // Lists are filled up with -1: nothing follows a tile without a candidate.
    bool any = false;
    for (int i = first; i < first + kTokenTile && i < count; ++i) any |= indices[i] >= 0;
    if (!any) break;
    stage_rows(params, indices, first, count, work);
]==]
  CLASS [==[padding taken for the end of the list]==]
  WHY [==[The list is left at the first 16 candidates (from a multiple of 16) that are all -1, as if -1 stood only at the end: a dense list with a top-k part filled up with -1 to its width and window indices behind it (e.g. 20 valid, -1 up to 64, then 128 valid) loses the window.]==])
plumb_unseen(ragged_list_taken_to_start_at_its_first_row
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu
  FROM [==[  found.indices = indices_of(candidates, work.request, work.query);]==]
  TO [==[  found.indices = candidates.indptr == nullptr
                      ? indices_of(candidates, work.request, work.query)
                      : candidates.indices +
                            (candidates.indptr[work.request] - candidates.indptr[0]);]==]
  CLASS [==[offset of a view taken as zero]==]
  WHY [==[The ragged lists are read relative to indptr[0], although indptr counts from `indices` itself: a call on the tail of a batch (indptr = {40, 60, 90}, the whole indices array) attends to candidates 0..19 instead of 40..59; nothing shows while indptr[0] is 0.]==])
plumb_unseen(short_list_of_candidates_accepted
  OP top_k_per_row_decode FILE top_k/top_k_list.h
  FROM [==[  if (listed < wanted || listed > list.capacity) return false;]==]
  TO [==[  if (listed > list.capacity) return false;  // the sample leaves room for k by four deviations]==]
  CLASS [==[fallback dropped: sample not like the row]==]
  WHY [==[A list with fewer than k candidates is no longer refused: in a row of several tiles whose large logits stand just where the sample is taken (the middle of each quarter; 131072 columns, k 2048, a few hundred large ones there) the threshold is too high, fewer than k are listed and the rest of the indices is left-over shared memory.]==])
plumb_unseen(two_passes_behind_the_first_parts
  OP top_k_per_row_prefill FILE top_k/top_k_interval.h
  FROM [==[// The interval has at most 2^30 keys, and after each pass at most 2^19, 2^8 and one.
constexpr int kTopKPasses = 3;
]==]
  TO [==[// From the 2^18 keys of a first part to 2^7 and one.
constexpr int kTopKPasses = 2;
]==]
  CLASS [==[extremes of values: nearly equal ones outside the usual octaves]==]
  WHY [==[Two passes are enough for parts of 2^18 keys, not for the innermost and outermost ones: where the k-th largest lies below 2^-20 or above 2^12 in size, keys within 256 ulp of it are taken by column and not by value, e.g. of 1024 logits 8192 + (i % 200) / 1024 (one ulp apart, all in one bucket of 256 keys) with k = 10 the columns 0..9 are returned instead of those with the largest values.]==])
plumb_unseen(whole_rows_without_the_row_stride
  OP top_k_per_row_decode FILE top_k/top_k_select.h
  FROM [==[  const bool whole_rows =
      reinterpret_cast<std::uintptr_t>(p.logits) % 16 == 0 && p.logits_row_stride % kTopKChunk == 0;
]==]
  TO [==[  const bool whole_rows = reinterpret_cast<std::uintptr_t>(p.logits) % 16 == 0;
]==]
  CLASS [==[threshold of the launch with an alignment]==]
  WHY [==[Rows are taken to start at whole chunks if the first one does: with columns = 8192, row stride 8193 and a row 1 of length 8192 the row's lead of 1 makes it two tiles, but the kernel for one tile runs, and column 8191 is lost even if it is the largest.]==])
