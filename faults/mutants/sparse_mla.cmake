# SPDX-License-Identifier: Apache-2.0
#
# Mutants of this family (faults/CMakeLists.txt says what the words mean). Text stands
# between brackets.

plumb_mutant(mla_sink_per_split
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[const float sink = split ? 0.0F : sink_weight(params.attn_sink, head, softmax.largest);]]
  TO [[const float sink = sink_weight(params.attn_sink, head, softmax.largest);]]
  CASE sparse_mla_decode/more_parts_than_blocks/eager
  SAYS "elements in rows 0, 2-4, 6-7 of 8"
  WHY "the sink enters every split, and once more in the combination")

plumb_mutant(mla_extra_in_main_dialect
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu
  FROM [[found.dialect = found.cache->dialect;]]
  TO [[found.dialect = params.main_cache.dialect;]]
  CASE sparse_mla_decode/fnuz_main_fn_extra/eager
  SAYS "elements in rows 0-11 of 12"
  WHY "one FP8 flag for two caches (vLLM #42893)")

plumb_mutant(mla_block_offset_in_32_bits
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[cache.data + block * cache.block_stride_bytes;]]
  TO [[cache.data + static_cast<std::uint32_t>(block * cache.block_stride_bytes);]]
  CASE sparse_mla_decode/far_blocks/eager
  SAYS "elements in rows 4-7 of 16"
  WHY "block * stride wraps at 2^32 bytes (aiter #4774)")

plumb_mutant(mla_minus_one_read_as_slot_0
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[zero_group(to + group * kGroup);]]
  TO [[load_group(*block.cache, locate(*block.cache, 0), group, block.dialect,
                 to + group * kGroup);]]
  CASE sparse_mla_decode/holes/eager
  SAYS "elements in rows 0-31 of 32"
  WHY "-1 is clamped to slot 0 and only its score is masked: 0 * NaN (hazard A3)")

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
  SAYS "rows 0-23 of 24"
  WHY "a scale of V3.2 covers 128 dimensions, not 64 as in V4")

plumb_mutant(mla_v32_scale_truncated
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[if (reading == PLUMB_SCALE_BF16) return load_bf16(store_bf16(stored));]]
  TO [[if (reading == PLUMB_SCALE_BF16) return read_scale(stored, PLUMB_SCALE_E8M0);]]
  CASE sparse_mla_decode/v32_scales_read_as_bf16/eager
  SAYS "rows 0-23 of 24"
  WHY "the sm100 kernels' reading of a scale in a kernel that declares that of sm90")

plumb_mutant(mla_v32_scale_not_rounded
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[if (reading == PLUMB_SCALE_BF16) return load_bf16(store_bf16(stored));]]
  TO [[if (reading == PLUMB_SCALE_BF16) return stored;]]
  CASE sparse_mla_decode/v32_scales_read_as_bf16/eager
  SAYS "lse: 24 elements in rows 0-23 of 24"
  WHY "the scale is used whole in a kernel that declares to round it to bf16 first")

plumb_mutant(mla_v32_rope_as_fp8
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[if (group == key_groups(cache) - 1) {]]
  TO [[if (group == 7 && cache.layout == PLUMB_MLA_V4) {]]
  CASE sparse_mla_decode/v32_heads_128/eager
  SAYS "rows 0-255 of 256"
  WHY "the rope part is taken for one more group of codes")

plumb_mutant(mla_v32_values_include_rope
  OP sparse_mla_decode FILE sparse_mla/mla_attend.h
  FROM [[const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims;]]
  TO [[const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims + work.key_dims - kValueDim;]]
  CASE sparse_mla_decode/v32_page_1_ragged/eager
  SAYS "rows 0-15, 20-47 of 48"
  WHY "values are the last 512 dimensions of a key in V4 and the first in V3.2")

plumb_mutant(mla_v32_rope_not_scored
  OP sparse_mla_decode FILE sparse_mla/mla_attend.h
  FROM [[for (int d = 0; d < work.key_dims; ++d) {]]
  TO [[for (int d = 0; d < kValueDim; ++d) {]]
  CASE sparse_mla_decode/v32_tp8/eager
  SAYS "rows 0-31 of 32"
  WHY "a score over 512 dimensions where a key has 576")

plumb_mutant(mla_v32_blocks_taken_for_contiguous
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h
  FROM [[const std::uint8_t* token = base + offset * kV32TokenBytes;]]
  TO [[const std::uint8_t* token = cache.data + (block * cache.page + offset) * kV32TokenBytes;]]
  CASE sparse_mla_decode/v32_two_queries/eager
  SAYS "rows 0-101 of 102"
  WHY "slot * 656 instead of block * stride + offset * 656")

# ---- prefill ----

plumb_mutant(mla_prefill_index_past_the_end
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[index >= 0 && index < params.kv_rows;]]
  TO [[index >= 0;]]
  CASE sparse_mla_prefill/holes/eager
  SAYS "rows 0-31 of 32"
  WHY "an index at or past s_kv is read instead of skipped")

plumb_mutant(mla_prefill_lengths_ignored
  OP sparse_mla_prefill FILE sparse_mla/mla_candidates.h
  FROM [=[candidates.lengths != nullptr ? candidates.lengths[request]]=]
  TO [[false ? 0]]
  CASE sparse_mla_prefill/edge_lengths/eager
  SAYS "rows 0-23, 28-43 of 44"
  WHY "topk_length is not looked at: tokens behind it are attended to")

plumb_mutant(mla_prefill_length_of_first_row
  OP sparse_mla_prefill FILE sparse_mla/mla_candidates.h
  FROM [=[candidates.lengths != nullptr ? candidates.lengths[request]]=]
  TO [=[candidates.lengths != nullptr ? candidates.lengths[0]]=]
  CASE sparse_mla_prefill/edge_lengths/eager
  SAYS "rows 4-35 of 44"
  WHY "one length for all query rows, as a decode request has")

plumb_mutant(mla_prefill_max_with_sink
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[lonely ? -INFINITY : softmax.largest * kLn2;]]
  TO [[lonely                          ? -INFINITY
        : params.attn_sink == nullptr ? softmax.largest * kLn2
                                      : fmaxf(softmax.largest * kLn2, params.attn_sink[head]);]]
  CASE sparse_mla_prefill/infinite_sinks/eager
  SAYS "max_logits: 6 non-finite or missing non-finite elements in rows 0-2 of 5"
  WHY "the sink takes part in max_logits")

plumb_mutant(mla_prefill_lonely_lse
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[lonely ? INFINITY : lse_in_base_2(softmax) * kLn2;]]
  TO [[lse_in_base_2(softmax) * kLn2;]]
  CASE sparse_mla_prefill/holes/eager
  SAYS "lse: 8 non-finite or missing non-finite elements in rows 3, 7 of 8"
  WHY "a row without candidates reports lse = -infinity, the logarithm of its sum")

plumb_mutant(mla_prefill_lse_in_base_2
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[lonely ? INFINITY : lse_in_base_2(softmax) * kLn2;]]
  TO [[lonely ? INFINITY : lse_in_base_2(softmax);]]
  CASE sparse_mla_prefill/v4_flash/eager
  SAYS "lse: 32 elements in rows 0-3 of 4"
  WHY "lse is returned in the units of the kernel instead of natural ones")

plumb_mutant(mla_prefill_row_offset_in_32_bits
  OP sparse_mla_prefill FILE sparse_mla/sparse_mla_prefill.cu
  FROM [[params.kv + index * params.kv_row_stride;]]
  TO [[params.kv + static_cast<std::uint32_t>(2 * index * params.kv_row_stride) / 2;]]
  CASE sparse_mla_prefill/far_rows/eager
  SAYS "rows 0-3 of 4"
  WHY "row * stride wraps at 2^32 bytes")

# ---- gathering ----

plumb_mutant(gather_length_of_first_request
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[const std::int64_t seq_len = p.seq_lens[request];]]
  TO [[const std::int64_t seq_len = p.seq_lens[0];]]
  CASE dequantize_and_gather_k_cache/window_behind_states/eager
  SAYS "rows 143-160, 236-256, 329-368 of 372"
  WHY "the window ends where another request's sequence ends")

plumb_mutant(gather_from_the_front
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[const std::int64_t position = seq_len - gather_len + i;]]
  TO [[const std::int64_t position = i;]]
  CASE dequantize_and_gather_k_cache/page_256/eager
  SAYS "rows 0-49, 53-102 of 106"
  WHY "the first gather_len tokens instead of the last")

plumb_mutant(gather_without_gather_lens
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[p.gather_lens != nullptr ? p.gather_lens[request] : seq_len;]]
  TO [[seq_len < p.rows - p.offset ? seq_len : p.rows - p.offset;]]
  CASE dequantize_and_gather_k_cache/window_edges/eager
  SAYS "rows 5-36, 48-64"
  WHY "as many tokens as fit, whatever gather_lens says: rows that are somebody's are overwritten")

plumb_mutant(gather_fnuz_read_as_fn
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[load_group(p.cache, token, group, p.cache.dialect,]]
  TO [[load_group(p.cache, token, group, PLUMB_E4M3FN,]]
  CASE dequantize_and_gather_k_cache/fnuz_codes/eager
  SAYS "rows 0-47, 63-91, 126-135 of 189"
  WHY "use_fnuz is dropped on the way to the prefill (vLLM #42893): values are twice too large")

plumb_mutant(gather_clears_its_tile
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[  for (std::int64_t i = first; i < gather_len;]]
  TO [[  if (gather_len <= first && first < p.rows - p.offset) {
    for (int d = 0; d < kGroup; ++d) out[(p.offset + first) * p.out_row_stride + d] = 0;
  }
  for (std::int64_t i = first; i < gather_len;]]
  CASE dequantize_and_gather_k_cache/no_spare_rows/full_graph
  SAYS "rows 80-199 of 200"
  WHY "rows behind the gathered ones are zeroed: they may be another call's")

# ---- what a small decode step shows ----

plumb_mutant(mla_ragged_row_to_its_tile
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[  const bool listed = position < block.end && position < block.count;
  const std::int32_t slot = listed ? block.indices[position] : -1;]]
  TO [[  const int count = (block.count + kTokenTile - 1) / kTokenTile * kTokenTile;
  const std::int32_t beside = position < count ? block.indices[position] : -1;
  const std::int64_t slots = block.cache->num_blocks * block.cache->page;
  const std::int32_t slot = position < block.end && beside < slots ? beside : -1;]]
  CASE sparse_mla_decode/edge_lengths_ragged/eager
  SAYS "elements in rows 0-1, 3-4, 6-9 of 12 beyond their bound"
  WHY "a row is read up to the end of its tile: entries of the next row, or of an earlier step (vLLM #42604)")

plumb_mutant(mla_fnuz_with_bias_15
  OP sparse_mla_decode FILE fp8.h DECODE
  FROM [[const std::uint32_t bias_change = 127U - (fnuz ? 8U : 7U);]]
  TO [[const std::uint32_t bias_change = 127U - (fnuz ? 15U : 7U);]]
  CASE sparse_mla_decode/fnuz_main_fn_extra/eager
  SAYS "out: 6060 elements in rows 0-11 of 12 beyond their bound"
  WHY "fnuz bytes are read as e4b15, 2^-7 of what they are worth (vLLM #42604)")

plumb_mutant(mla_dead_rows_not_written
  OP sparse_mla_decode FILE sparse_mla/sparse_mla_decode.cu DECODE
  FROM [[    store_heads(call, work, slot, sums);]]
  TO [[    if (slot >= 0 || factors[0] != 0.0F) store_heads(call, work, slot, sums);]]
  CASE sparse_mla_decode/holes/eager
  SAYS "in rows 8-11 of 32"
  WHY "rows without candidates keep what was there instead of zeros (hazard A1)")

plumb_mutant(mla_block_offset_too_narrow
  OP sparse_mla_decode FILE sparse_mla/mla_cache.h DECODE
  FROM [[cache.data + block * cache.block_stride_bytes;]]
  TO [[cache.data + static_cast<std::uint16_t>(block * cache.block_stride_bytes);]]
  CASE sparse_mla_decode/v4_pro_c4a/eager
  SAYS "out: norm of rows 0-31 of 32 wrong"
  WHY "block * stride wraps, at 2^16 bytes where a served model has 2^32 (hazard F1)")

plumb_mutant(sched_meta_last_block_dropped
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[tile.end_block = at.block > 0 ? at.block : end_req_blocks;]]
  TO [[tile.end_block = at.block > 0 ? at.block : end_req_blocks - (end_req_blocks > 1);]]
  CASE get_decoding_sched_meta/one_part/eager
  SAYS "is in no part"
  WHY "a part stops one block in front of the end of its last request")

plumb_mutant(sched_meta_block_twice
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[MlaTile tile{at.request, 0, at.block, 0,]]
  TO [[MlaTile tile{at.request, 0, at.block - (at.block > 1), 0,]]
  CASE get_decoding_sched_meta/one_long/eager
  SAYS "is in part"
  WHY "a part begins with the block that the part in front of it ended with")

plumb_mutant(sched_meta_empty_request_without_block
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[return blocks > 1 ? blocks : 1;]]
  TO [[return blocks;]]
  CASE get_decoding_sched_meta/block_borders/eager
  SAYS "(1 block)"
  WHY "a request without candidates has no block, and nobody writes its output")

plumb_mutant(sched_meta_extra_not_padded
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[  return main_block_count(call, request) +
         ceil_div(candidate_count(call.params.extra, request), block_size_of(call));]]
  TO [[  const int both =
      candidate_count(call.params.main, request) + candidate_count(call.params.extra, request);
  return ceil_div(both > 1 ? both : 1, block_size_of(call));]]
  CASE get_decoding_sched_meta/v4_extra/eager
  SAYS "is in no part"
  WHY "both caches are counted as one list, without the padding between them")

plumb_mutant(sched_meta_split_of_part_lost
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[at.block, 0, at.split, at.block != 0,]]
  TO [[at.block, 0, 0, at.block != 0,]]
  CASE get_decoding_sched_meta/one_request/eager
  SAYS "write split 0"
  WHY "every part of a request writes its first split")

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
  SAYS "num_splits: row"
  WHY "the last part of a split request is not counted")

plumb_mutant(sched_meta_idle_part_unset
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[    take_blocks(call, payload, at);]]
  TO [[    if (at.request >= call.params.requests) break;
    take_blocks(call, payload, at);]]
  CASE get_decoding_sched_meta/idle_parts/eager
  SAYS "of request 0 (5 blocks) the blocks [0, 0)"
  WHY "parts without work are not written: they do what was there before")

plumb_mutant(sched_meta_lanes_of_first_wave_only
  OP get_decoding_sched_meta FILE sparse_mla/mla_plan.h
  FROM [[request < requests; request += wave_size()) {]]
  TO [[request < requests && request < 32; request += wave_size()) {]]
  CASE get_decoding_sched_meta/requests_512/eager
  SAYS "is in no part"
  WHY "only 32 requests count for the payload: the parts end in front of the last request")
