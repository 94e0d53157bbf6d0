# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(mla_sink_per_split
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[const float sink = split ? 0.0F : sink_weight(params.attn_sink, head, softmax.largest);]]
  TO [[const float sink = sink_weight(params.attn_sink, head, softmax.largest);]]
  CASE sparse_mla_decode/more_parts_than_blocks/eager
  SAYS "in 6 of 8 rows (rows 0, 2-4, 6-7)"
  WHY "the sink is added in every split, and once more by the combine kernel")

plumb_mutant(mla_extra_in_main_dialect
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu
  FROM [[found.dialect = found.cache->dialect;]]
  TO [[found.dialect = params.main_cache.dialect;]]
  CASE sparse_mla_decode/fnuz_main_fn_extra/eager
  SAYS "in 12 of 12 rows (rows 0-11)"
  WHY "both caches are read in the main cache's FP8 dialect (vLLM #42893)")

plumb_mutant(mla_block_offset_in_32_bits
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[cache.data + block * cache.block_stride_bytes;]]
  TO [[cache.data + static_cast<std::uint32_t>(block * cache.block_stride_bytes);]]
  CASE sparse_mla_decode/far_blocks/eager
  SAYS "in 4 of 16 rows (rows 4-7)"
  WHY "block * stride wraps at 2^32 bytes (aiter #4774)")

plumb_mutant(mla_minus_one_read_as_slot_0
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[zero_group(to + group * kGroup);]]
  TO [[load_group(*block.cache, locate(*block.cache, 0), group, block.dialect,
                 to + group * kGroup);]]
  CASE sparse_mla_decode/holes/eager
  SAYS "in 32 of 32 rows (rows 0-31)"
  WHY "-1 is clamped to slot 0 and only its score is masked: 0 * NaN gets into the output")

plumb_mutant(mla_partials_taken_for_contiguous
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu
  FROM [[return p.partial_out + slot * p.partial_out_slot_stride + query * p.partial_out_query_stride +
         head * p.partial_out_head_stride;]]
  TO [[return p.partial_out + ((slot * p.queries + query) * p.heads + head) * kValueDim;]]
  CASE sparse_mla_decode/strided_outputs/eager
  SAYS "partial_out: written between its rows"
  WHY "partial results are stored and read as if their rows were contiguous")

# ---- the V3.2 layout ----

plumb_mutant(mla_v32_scale_of_wrong_group
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [=[scales[group / kV32ScaleGroups]]=]
  TO [=[scales[group % 4]]=]
  CASE sparse_mla_decode/v32_scales_read_as_fp32/eager
  SAYS "24 of 24 rows (rows 0-23)"
  WHY "a scale of V3.2 is applied to the wrong group of 128 dimensions")

plumb_mutant(mla_v32_scale_truncated
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[if (reading == PLUMB_SCALE_BF16) return load_bf16(store_bf16(stored));]]
  TO [[if (reading == PLUMB_SCALE_BF16) return read_scale(stored, PLUMB_SCALE_E8M0);]]
  CASE sparse_mla_decode/v32_scales_read_as_bf16/eager
  SAYS "24 of 24 rows (rows 0-23)"
  WHY "the mantissa of scales is dropped, as in sm100 kernels, where rounding to bf16 is declared")

plumb_mutant(mla_v32_scale_not_rounded
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[if (reading == PLUMB_SCALE_BF16) return load_bf16(store_bf16(stored));]]
  TO [[if (reading == PLUMB_SCALE_BF16) return stored;]]
  CASE sparse_mla_decode/v32_scales_read_as_bf16/eager
  SAYS "lse: 24 elements beyond their bound in 24 of 24 rows (rows 0-23)"
  WHY "scales are not rounded to bf16 first, where that is declared")

plumb_mutant(mla_v32_rope_as_fp8
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[if (group == key_groups(cache) - 1) {]]
  TO [[if (group == 7 && cache.layout == PLUMB_MLA_V4) {]]
  CASE sparse_mla_decode/v32_heads_128/eager
  SAYS "256 of 256 rows (rows 0-255)"
  WHY "the RoPE part is read as one more group of fp8 codes")

plumb_mutant(mla_v32_values_include_rope
  OP sparse_mla_decode FILE sparse_mla/mla_attend.h
  FROM [[const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims;]]
  TO [[const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims + work.key_dims - kValueDim;]]
  CASE sparse_mla_decode/v32_page_1_ragged/eager
  SAYS "44 of 48 rows (rows 0-15, 20-47)"
  WHY "values are the last 512 dimensions of a V3.2 key instead of the first")

plumb_mutant(mla_v32_rope_not_scored
  OP sparse_mla_decode FILE sparse_mla/mla_attend.h
  FROM [[for (int d = 0; d < work.key_dims; ++d) {]]
  TO [[for (int d = 0; d < kValueDim; ++d) {]]
  CASE sparse_mla_decode/v32_tp8/eager
  SAYS "32 of 32 rows (rows 0-31)"
  WHY "scores use 512 dimensions of keys that have 576")

plumb_mutant(mla_v32_blocks_taken_for_contiguous
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[const std::uint8_t* token = base + offset * kV32TokenBytes;]]
  TO [[const std::uint8_t* token = cache.data + (block * cache.page + offset) * kV32TokenBytes;]]
  CASE sparse_mla_decode/v32_two_queries/eager
  SAYS "85 of 102 rows (rows 0-84)"
  WHY "a slot is read at slot * 656, without the block stride")

# ---- prefill ----

plumb_mutant(mla_prefill_index_past_the_end
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[index >= 0 && index < params.kv_rows;]]
  TO [[index >= 0;]]
  CASE sparse_mla_prefill/holes/eager
  SAYS "32 of 32 rows (rows 0-31)"
  WHY "an index at or past s_kv is read instead of skipped")

plumb_mutant(mla_prefill_lengths_ignored
  OP sparse_mla_prefill FILE sparse_mla/mla_candidates.h
  FROM [=[candidates.lengths != nullptr ? candidates.lengths[request]]=]
  TO [[false ? 0]]
  CASE sparse_mla_prefill/edge_lengths/eager
  SAYS "40 of 44 rows (rows 0-23, 28-43)"
  WHY "topk_length is ignored: tokens behind it are attended to")

plumb_mutant(mla_prefill_length_of_first_row
  OP sparse_mla_prefill FILE sparse_mla/mla_candidates.h
  FROM [=[candidates.lengths != nullptr ? candidates.lengths[request]]=]
  TO [=[candidates.lengths != nullptr ? candidates.lengths[0]]=]
  CASE sparse_mla_prefill/edge_lengths/eager
  SAYS "32 of 44 rows (rows 4-35)"
  WHY "all query rows have the length of the first one")

plumb_mutant(mla_prefill_max_with_sink
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[lonely ? -INFINITY : softmax.largest * kLn2;]]
  TO [[lonely                          ? -INFINITY
        : params.attn_sink == nullptr ? softmax.largest * kLn2
                                      : fmaxf(softmax.largest * kLn2, params.attn_sink[head]);]]
  CASE sparse_mla_prefill/infinite_sinks/eager
  SAYS "max_logits: 6 non-finite or missing non-finite elements in 3 of 5 rows (rows 0-2)"
  WHY "the sink takes part in max_logits")

plumb_mutant(mla_prefill_lonely_lse
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[lonely ? INFINITY : lse_in_base_2(softmax) * kLn2;]]
  TO [[lse_in_base_2(softmax) * kLn2;]]
  CASE sparse_mla_prefill/holes/eager
  SAYS "lse: 8 non-finite or missing non-finite elements in 2 of 8 rows (rows 3, 7)"
  WHY "a row without candidates has lse = -infinity instead of +infinity")

plumb_mutant(mla_prefill_lse_in_base_2
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[lonely ? INFINITY : lse_in_base_2(softmax) * kLn2;]]
  TO [[lonely ? INFINITY : lse_in_base_2(softmax);]]
  CASE sparse_mla_prefill/v4_flash/eager
  SAYS "lse: 32 elements beyond their bound in 4 of 4 rows (rows 0-3)"
  WHY "lse is in base 2 instead of natural units")

plumb_mutant(mla_prefill_row_offset_in_32_bits
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[params.kv + index * params.kv_row_stride;]]
  TO [[params.kv + static_cast<std::uint32_t>(2 * index * params.kv_row_stride) / 2;]]
  CASE sparse_mla_prefill/far_rows/eager
  SAYS "4 of 4 rows (rows 0-3)"
  WHY "row * stride wraps at 2^32 bytes")

# ---- gathering ----

plumb_mutant(gather_length_of_first_request
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[const std::int64_t seq_len = p.seq_lens[request];]]
  TO [[const std::int64_t seq_len = p.seq_lens[0];]]
  CASE dequantize_and_gather_k_cache/window_behind_states/eager
  SAYS "79 of 372 rows (rows 143-160, 236-256, 329-368)"
  WHY "the length of the first request's sequence is used for all requests: the gathered window ends at a wrong token")

plumb_mutant(gather_from_the_front
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[const std::int64_t position = seq_len - gather_len + i;]]
  TO [[const std::int64_t position = i;]]
  CASE dequantize_and_gather_k_cache/page_256/eager
  SAYS "100 of 106 rows (rows 0-49, 53-102)"
  WHY "the first gather_len tokens are gathered instead of the last")

plumb_mutant(gather_without_gather_lens
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[p.gather_lens != nullptr ? p.gather_lens[request] : seq_len;]]
  TO [[seq_len < p.rows - p.offset ? seq_len : p.rows - p.offset;]]
  CASE dequantize_and_gather_k_cache/window_edges/eager
  SAYS "(rows 5-36, 48-64"
  WHY "gather_lens is ignored: too many tokens are gathered, over rows that have to stay")

plumb_mutant(gather_fnuz_read_as_fn
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[load_group(p.cache, token, group, p.cache.dialect,]]
  TO [[load_group(p.cache, token, group, PLUMB_E4M3FN,]]
  CASE dequantize_and_gather_k_cache/fnuz_codes/eager
  SAYS "87 of 189 rows (rows 0-47, 63-91, 126-135)"
  WHY "fnuz codes are read as OCP (vLLM #42893): values are twice too large")

plumb_mutant(gather_clears_its_tile
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[  for (std::int64_t i = first; i < gather_len;]]
  TO [[  if (gather_len <= first && first < p.rows - p.offset) {
    for (int d = 0; d < kGroup; ++d) out[(p.offset + first) * p.out_row_stride + d] = 0;
  }
  for (std::int64_t i = first; i < gather_len;]]
  CASE dequantize_and_gather_k_cache/no_spare_rows/full_graph
  SAYS "120 of 200 rows (rows 80-199)"
  WHY "rows of the tile behind the gathered ones are set to 0: they may belong to another call")

# ---- mutants that a small decode step finds ----

plumb_mutant(mla_ragged_row_to_its_tile
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[  const bool listed = position < block.end && position < block.count;
  const std::int32_t slot = listed ? block.indices[position] : -1;]]
  TO [[  const int count = (block.count + kTokenTile - 1) / kTokenTile * kTokenTile;
  const std::int32_t beside = position < count ? block.indices[position] : -1;
  const std::int64_t slots = block.cache->num_blocks * block.cache->page;
  const std::int32_t slot = position < block.end && beside < slots ? beside : -1;]]
  CASE sparse_mla_decode/edge_lengths_ragged/eager
  SAYS "elements beyond their bound in 8 of 12 rows (rows 0-1, 3-4, 6-9)"
  WHY "a ragged row is read to the end of its tile, into the next row (vLLM #42604)")

plumb_mutant(mla_fnuz_with_bias_15
  OP sparse_mla_decode FILE fp8.h DECODE
  FROM [[const std::uint32_t bias_change = 127U - (fnuz ? 8U : 7U);]]
  TO [[const std::uint32_t bias_change = 127U - (fnuz ? 15U : 7U);]]
  CASE sparse_mla_decode/fnuz_main_fn_extra/eager
  SAYS "out: 6060 elements beyond their bound in 12 of 12 rows (rows 0-11)"
  WHY "fnuz codes are decoded with exponent bias 15: values are 2^-7 of the right ones (vLLM #42604)")

plumb_mutant(mla_dead_rows_not_written
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[    store_heads(call, work, slot, sums);]]
  TO [[    if (slot >= 0 || factors[0] != 0.0F) store_heads(call, work, slot, sums);]]
  CASE sparse_mla_decode/holes/eager
  SAYS "in 4 of 32 rows (rows 8-11)"
  WHY "rows without candidates are not written, where zeros are due")

plumb_mutant(mla_block_offset_too_narrow
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h DECODE
  FROM [[cache.data + block * cache.block_stride_bytes;]]
  TO [[cache.data + static_cast<std::uint16_t>(block * cache.block_stride_bytes);]]
  CASE sparse_mla_decode/v4_pro_c4a/eager
  SAYS "in 32 of 32 rows (rows 0-31)"
  WHY "block * stride wraps at 2^16 bytes, in real kernels at 2^32: small decode steps find this one")

plumb_mutant(sched_meta_last_block_dropped
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[tile.end_block = at.block > 0 ? at.block : end_req_blocks;]]
  TO [[tile.end_block = at.block > 0 ? at.block : end_req_blocks - (end_req_blocks > 1);]]
  CASE get_decoding_sched_meta/one_part/eager
  SAYS "is in no part"
  WHY "a part stops one block before the end of its last request"
  DECODE)

plumb_mutant(sched_meta_block_twice
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[MlaTile tile{at.request, 0, at.block, 0,]]
  TO [[MlaTile tile{at.request, 0, at.block - (at.block > 1), 0,]]
  CASE get_decoding_sched_meta/one_long/eager
  SAYS "is in part"
  WHY "a part begins with the block that the part before it ended with")

plumb_mutant(sched_meta_empty_request_without_block
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[return blocks > 1 ? blocks : 1;]]
  TO [[return blocks;]]
  CASE get_decoding_sched_meta/block_borders/eager
  SAYS "(1 block)"
  WHY "a request without candidates has no block, so that its output is not written")

plumb_mutant(sched_meta_extra_not_padded
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[  return main_block_count(call, request) +
         ceil_div(candidate_count(call.params.extra, request), block_size_of(call));]]
  TO [[  const int both =
      candidate_count(call.params.main, request) + candidate_count(call.params.extra, request);
  return ceil_div(both > 1 ? both : 1, block_size_of(call));]]
  CASE get_decoding_sched_meta/v4_extra/eager
  SAYS "is in no part"
  WHY "both caches count as one list, without the padding to whole blocks between them")

plumb_mutant(sched_meta_split_of_part_lost
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[at.block, 0, at.split, at.block != 0,]]
  TO [[at.block, 0, 0, at.block != 0,]]
  CASE get_decoding_sched_meta/one_request/eager
  SAYS "write split 0"
  WHY "every part of a request writes split 0")

plumb_mutant(sched_meta_first_part_whole
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[tile.first_split = tile.last_split = tile.first_split | tile.last_split;]]
  TO [[tile.last_split = tile.first_split | tile.last_split;]]
  CASE get_decoding_sched_meta/one_long/eager
  SAYS "says that it is whole, and other parts have it too"
  WHY "the first part of a split request writes the output instead of a partial result")

plumb_mutant(sched_meta_num_splits_of_parts_only
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[at.splits += at.split + 1;]]
  TO [[at.splits += at.split > 0 ? at.split : 1;]]
  CASE get_decoding_sched_meta/one_long/eager
  SAYS "num_splits: "
  WHY "num_splits does not count the last part of a split request")

plumb_mutant(sched_meta_idle_part_unset
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[    take_blocks(call, payload, at);]]
  TO [[    if (at.request >= call.params.requests) break;
    take_blocks(call, payload, at);]]
  CASE get_decoding_sched_meta/idle_parts/eager
  SAYS "of request 0 (5 blocks) the blocks [0, 0)"
  WHY "plan entries of parts without work are not written, so that these parts do what an older plan says")

plumb_mutant(sched_meta_lanes_of_first_wave_only
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[request < requests; request += wave_size()) {]]
  TO [[request < requests && request < 32; request += wave_size()) {]]
  CASE get_decoding_sched_meta/requests_512/eager
  SAYS "is in no part"
  WHY "only the first 32 requests count as work, so that parts end before the last request")
